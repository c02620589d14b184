// Start x end: each cell is P(start) x P(end) of one possible answer. The end may
// not stand before the start, nor further away than the longest answer: those
// cells are hatched. One tab stop; arrows move the crosshair; hover does too.
const NAMES = 86; // pixels that a token's name takes beside the grid

export default function (component) {
  const { parentElement, data } = component;
  const payload = unpack(data);
  const root = child(parentElement, "div", "bw-startend");
  const frame = child(root, "div", "bw-frame");
  const line = child(root, "p", "bw-says");
  const state = { at: [payload.top[0].i, payload.top[0].j], look: null };
  const draw = () => {
    state.look = theme(parentElement);
    drawGrid(frame, line, payload, state);
  };
  draw();
  onWidthChange(frame, draw);
  numbersTable(root, "The likeliest answers: P(start) × P(end)", ["answer", "start token", "end token", "P(start)", "P(end)", "product"],
    () => payload.top.map(({ text, i, j }) => [text, `${i} ${payload.tokens[i]}`, `${j} ${payload.tokens[j]}`,
      payload.arrays.start.data[i], payload.arrays.end.data[j], product(payload, i, j)]));
  onThemeChange(parentElement, draw);
}

function product({ arrays }, i, j) { return arrays.start.data[i] * arrays.end.data[j]; }
function allowed({ longest }, i, j) { return j >= i && j - i < longest; }

function geometry(frame, payload) {
  const count = payload.tokens.length, width = Math.min(frame.clientWidth || 640, 720); // all of it on one screen
  let margin = count <= 48 && width > 500 ? NAMES + 40 : 34;
  const cell = Math.min(34, (width - margin - 4) / count);
  if (cell < 11) margin = 34;
  const side = Math.max(1, Math.min(width - margin - 4, cell * count));
  const labels = cell >= 11 && margin > 50;
  return { count, margin, side, cell: side / count, labels, names: labels ? NAMES : 0 };
}

function drawGrid(frame, line, payload, state) {
  const g = geometry(frame, payload);
  const size = g.margin + g.side + 2;
  const label = `Start by end grid, ${g.count} by ${g.count} tokens; likeliest answer: ${payload.top[0].text}`;
  const { element, context } = canvas(frame, "bw-grid", size, size, label);
  context.save();
  drawMap(context, g.margin, g.margin, g.side, g.side, g.count, g.count, (i, j) =>
    allowed(payload, i, j) ? probabilityColour(product(payload, i, j), state.look) : null);
  hatch(context, g, payload, state.look);
  margins(context, g, payload, state.look);
  crosshair(context, g, state);
  context.restore();
  line.textContent = spanSentence(payload, ...state.at);
  sayPlace(element, state.at[0] * g.count + state.at[1], g.count * g.count, line.textContent);
  const move = (i, j) => {
    state.at = [clamp(i, g.count), clamp(j, g.count)];
    drawGrid(frame, line, payload, state);
  };
  element.onpointermove = element.onpointerdown = (event) => {
    const box = element.getBoundingClientRect();
    const j = Math.floor((event.clientX - box.left - g.margin) / g.cell), i = Math.floor((event.clientY - box.top - g.margin) / g.cell);
    if (i >= 0 && j >= 0 && i < g.count && j < g.count && (i !== state.at[0] || j !== state.at[1])) move(i, j);
  };
  element.onkeydown = (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[plainKey(event)];
    if (!step) return;
    event.preventDefault();
    move(state.at[0] + step[0], state.at[1] + step[1]);
  };
}

function clamp(n, count) { return Math.max(0, Math.min(count - 1, n)); }

// What the constraint rules out: below the diagonal, and beyond the longest answer.
function hatch(context, g, payload, look) {
  context.save();
  context.beginPath();
  for (let i = 0; i < g.count; i++) {
    context.rect(g.margin, g.margin + i * g.cell, i * g.cell, g.cell);
    const from = Math.min(g.count, i + payload.longest);
    context.rect(g.margin + from * g.cell, g.margin + i * g.cell, (g.count - from) * g.cell, g.cell);
  }
  context.clip();
  context.strokeStyle = rgb(look.line);
  for (let x = -g.side; x < g.side; x += 7) {
    context.beginPath();
    context.moveTo(g.margin + x, g.margin + g.side);
    context.lineTo(g.margin + x + g.side, g.margin);
    context.stroke();
  }
  context.restore();
  context.strokeStyle = rgb(look.line);
  context.strokeRect(g.margin, g.margin, g.side, g.side);
}

// Tokens where they fit, and outside of them P(start) as bars along the rows, P(end) along the columns.
function margins(context, g, payload, look) {
  const { start, end } = payload.arrays, hue = look.dark ? [86, 180, 233] : [0, 114, 178];
  context.font = `${Math.min(15, Math.max(12, g.cell - 1))}px ${look.font}`;
  context.textBaseline = "middle";
  for (let t = 0; t < g.count; t++) {
    const at = g.margin + t * g.cell, foot = g.margin - g.names - 2, bar = foot - (g.names ? 2 : 12);
    context.fillStyle = rgb(hue, 0.55);
    const s = bar * Math.sqrt(start.data[t]), e = bar * Math.sqrt(end.data[t]);
    context.fillRect(foot - s, at + 0.5, s, Math.max(1, g.cell - 1));
    context.fillRect(at + 0.5, foot - e, Math.max(1, g.cell - 1), e);
    if (g.labels) token(context, payload.tokens[t], at + g.cell / 2, g, look);
  }
  context.fillStyle = rgb(look.ink);
  context.font = `15px ${look.font}`;
  context.textAlign = "left";
  context.fillText("end →", g.labels ? g.margin - 48 : g.margin, 8);
  context.fillText("start ↓", 0, g.labels ? g.margin - 10 : 22);
}

function token(context, text, at, g, look) {
  context.fillStyle = rgb(look.ink);
  context.textAlign = "right";
  context.fillText(text.slice(0, 12), g.margin - 5, at, g.names - 6);
  context.save();
  context.translate(at, g.margin - 5);
  context.rotate(-Math.PI / 2);
  context.textAlign = "left";
  context.fillText(text.slice(0, 12), 0, 0, g.names - 6);
  context.restore();
}

function crosshair(context, g, { at, look }) {
  const [i, j] = at, x = g.margin + j * g.cell, y = g.margin + i * g.cell;
  context.strokeStyle = rgb([213, 94, 0]);
  context.lineWidth = 2;
  context.strokeRect(x - 1, y - 1, g.cell + 2, g.cell + 2);
  context.lineWidth = 1;
  context.strokeStyle = rgb(look.ink, 0.35);
  context.beginPath();
  context.moveTo(g.margin, y + g.cell / 2);
  context.lineTo(x - 1, y + g.cell / 2);
  context.moveTo(x + g.cell / 2, g.margin);
  context.lineTo(x + g.cell / 2, y - 1);
  context.stroke();
}

function spanSentence(payload, i, j) {
  const { tokens, arrays, longest } = payload;
  const numbers = `P(start ${quoted(tokens[i])}) ${percent(arrays.start.data[i])} × P(end ${quoted(tokens[j])}) ${percent(arrays.end.data[j])}`;
  if (j < i) return `${numbers}: not allowed, the end stands before the start`;
  if (j - i >= longest) return `${numbers}: not allowed, longer than ${longest} tokens`;
  const from = payload.offsets[i][0], to = payload.offsets[j][1];
  return `${quoted(Array.from(payload.context).slice(from, to).join(""))}: ${numbers} = ${percent(product(payload, i, j))}`;
}
