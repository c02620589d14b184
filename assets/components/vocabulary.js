// Every piece of the vocabulary by its probability in two sentences: likely ones
// as points to read, the rest as counts (ui/views/masking.py).
export default function (component) {
  const { parentElement, data } = component;
  const state = unpack(data);
  const body = child(parentElement, "div", "bw-two");
  const words = child(body, "div", "bw-contrast");
  words.replaceChildren(wordList(`More likely in ${state.first_name}`, state.down, "bw-down"),
    wordList(`More likely in ${state.second_name}`, state.up, "bw-up"));
  const picture = child(body, "div", "bw-picture");
  const figure = child(picture, "figure", "bw-scatter");
  const readout = child(picture, "p", "bw-readout");
  let chosen = 0;
  const order = [...state.tokens.keys()].sort((a, b) => state.arrays.second.data[b] - state.arrays.second.data[a]);
  const read = () => {
    const n = order[chosen];
    if (n === undefined) return;
    readout.textContent = `${quoted(state.tokens[n])}: ${percent(10 ** state.arrays.first.data[n])} in ${state.first_name}, `
      + `${percent(10 ** state.arrays.second.data[n])} in ${state.second_name}`;
    sayPlace(figure.querySelector("canvas"), chosen, order.length, readout.textContent);
  };
  const draw = () => drawScatter(figure, state, order[chosen]);
  const bind = () => {
    const element = draw();
    element.onpointermove = element.onpointerdown = (event) => {
      const next = order.indexOf(nearest(event, element, state));
      if (next === chosen) return;
      chosen = next;
      draw();
      read();
    };
    element.onkeydown = (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[plainKey(event)];
      if (!step) return;
      event.preventDefault();
      chosen = Math.max(0, Math.min(order.length - 1, chosen + step));
      draw();
      read();
    };
  };
  bind();
  read();
  numbersTable(parentElement, "The likeliest pieces in either sentence", ["piece", state.first_name, state.second_name], () =>
    order.map((n) => [state.tokens[n], 10 ** state.arrays.first.data[n], 10 ** state.arrays.second.data[n]]));
  onThemeChange(parentElement, bind);
  onWidthChange(figure, draw);
}

function wordList(title, rows, way) {
  const box = make("section", way);
  box.appendChild(make("h2", "", title));
  const list = make("ol");
  for (const row of rows) {
    const line = make("li");
    line.append(make("span", "bw-piece", row.t), make("span", "bw-p", `${percent(row.a)} → ${percent(row.b)}`));
    list.appendChild(line);
  }
  if (!rows.length) list.appendChild(make("li", "", "none"));
  box.appendChild(list);
  return box;
}

const EDGE = 78;

function scatterSize(figure) {
  return Math.max(260, Math.min(620, figure.clientWidth || 620));
}

// log10 p -> pixels; x to the right, y upwards.
function place(state, size, logFirst, logSecond) {
  const span = size - EDGE - 12;
  return [EDGE + (1 - logFirst / state.low) * span, 12 + (logSecond / state.low) * span];
}

function drawScatter(figure, state, marked) {
  const look = theme(figure.getRootNode()), size = scatterSize(figure), span = size - EDGE - 12;
  const { element, context } = canvas(figure, "bw-plot", size, size,
    `Each piece of the vocabulary: probability in ${state.first_name} to the right, in ${state.second_name} upwards, logarithmic; arrow keys read the likeliest`);
  const counts = state.arrays.counts, cells = counts.shape[0], top = Math.log1p(Math.max(...counts.data, 1));
  drawMap(context, EDGE, 12, span, span, cells, cells, (r, c) => {
    const n = counts.data[(cells - 1 - r) * cells + c];
    return n ? mix(look.paper, look.ink, 0.06 + (0.3 * Math.log1p(n)) / top) : null;
  });
  context.strokeStyle = rgb(look.line);
  context.strokeRect(EDGE, 12, span, span);
  context.beginPath();
  context.moveTo(EDGE, 12 + span);
  context.lineTo(EDGE + span, 12);
  context.stroke();
  axes(context, state, look, size, span);
  state.tokens.forEach((_, n) => {
    const a = state.arrays.first.data[n], b = state.arrays.second.data[n], [x, y] = place(state, size, a, b);
    context.fillStyle = Math.abs(b - a) < 0.3 ? rgb(look.ink, 0.55) : rgb(signedColour(2 * Math.sign(b - a), 2, look), 0.85);
    context.beginPath();
    context.arc(x, y, n === marked ? 6 : 2.6, 0, 7);
    context.fill();
  });
  labelBest(context, state, look, size);
  return element;
}

function axes(context, state, look, size, span) {
  context.fillStyle = rgb(look.ink, 0.75);
  context.font = `16px ${look.font}`;
  context.textAlign = "center";
  for (let power = 0; power >= state.low; power -= state.low < -8 ? 4 : 2) {
    const [x] = place(state, size, power, 0), [, y] = place(state, size, 0, power);
    const label = power < -4 ? `10${[...String(power + 2)].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]).join("")} %` : `${100 * 10 ** power} %`;
    context.textAlign = power === 0 ? "right" : "center";
    context.fillText(label, x, 12 + span + 18);
    context.textAlign = "right";
    context.fillText(label, EDGE - 6, y + 4);
    context.textAlign = "center";
  }
  context.fillText(`probability in ${state.first_name}`, EDGE + span / 2, size - 8);
  context.save();
  context.translate(11, 12 + span / 2);
  context.rotate(-Math.PI / 2);
  context.fillText(`probability in ${state.second_name}`, 0, 0);
  context.restore();
}

// Names of the pieces that changed most, beside their points.
function labelBest(context, state, look, size) {
  context.font = `600 17px ${look.font}`;
  context.fillStyle = rgb(look.ink);
  const taken = [];
  const spot = (row) => {
    const n = state.tokens.indexOf(row.t);
    return n < 0 ? null : place(state, size, state.arrays.first.data[n], state.arrays.second.data[n]);
  };
  const listed = [...state.up, ...state.down].map(spot).filter(Boolean); // dots that no name may lie on
  const changed = [...state.up.slice(0, 4), ...state.down.slice(0, 4)];
  for (const row of changed.sort((one, other) => Math.max(other.a, other.b) - Math.max(one.a, one.b))) {
    const dot = spot(row), wide = context.measureText(row.t).width;
    if (!dot) continue;
    const [x, y] = dot;
    const fits = ([from, at]) => from >= EDGE && from + wide <= size - 2 && at >= 14
      && !taken.some(([a, b, w]) => from < a + w && a < from + wide && Math.abs(b - at) < 17); // one over another reads as neither
    const free = ([from, at]) => fits([from, at])
      && !listed.some(([a, b]) => from - 4 < a && a < from + wide + 4 && Math.abs(b - at) < 10);
    const middle = Math.min(x - wide / 2, size - 2 - wide), near = [[middle, y - 16], [middle, y + 16]];
    const label = [[x + 8, y], [x - 8 - wide, y], ...near].find(free) ?? near.find(fits);
    if (!label) continue;
    taken.push([...label, wide]);
    context.lineWidth = 4;
    context.strokeStyle = rgb(look.paper, 0.85);
    context.textAlign = "left";
    context.strokeText(row.t, label[0], label[1] + 4);
    context.fillText(row.t, label[0], label[1] + 4);
  }
}

function nearest(event, element, state) {
  const box = element.getBoundingClientRect(), size = box.width;
  let best = 0, closest = Infinity;
  state.tokens.forEach((_, n) => {
    const [x, y] = place(state, size, state.arrays.first.data[n], state.arrays.second.data[n]);
    const distance = (x - (event.clientX - box.left)) ** 2 + (y - (event.clientY - box.top)) ** 2;
    if (distance < closest) { closest = distance; best = n; }
  });
  return best;
}
