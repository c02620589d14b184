// What reaches one token of the last layer, as a stream from left to right: a column for the input and one for each
// layer, in it a bar for each token, as high as its share; between two columns a band for what a token takes from
// another. Every column is 100 %. Point, click or use the arrows: the line below says a bar in words.
export default function (component) {
  const { parentElement, data } = component;
  const state = readFlow(unpack(data));
  const button = child(parentElement, "button", "bw-flow-play", { type: "button", title: "Layer by layer, from the last to the input" });
  const box = child(parentElement, "div", "bw-flow-box");
  const line = child(parentElement, "p", "bw-readout", { "aria-live": "polite" });
  const draw = () => keepFocus(box, () => drawFlow(box, line, state, theme(parentElement)));
  build(button, state, draw);
  numbersTable(parentElement, `Share of each token in what reaches ${rowName(state, state.target)} of the last layer`,
    ["token", ...state.columns], () => state.rows.map((row, r) =>
      [rowName(state, r), ...state.columns.map((_, c) => share(state, c, r))]));
  onWidthChange(box, draw);
  onThemeChange(parentElement, draw);
}

function readFlow(state) {
  const layers = state.arrays.shares.shape[0] - 1;
  state.columns = ["input", ...Array.from({ length: layers }, (_, l) => `layer ${l + 1}`)];
  state.texts = state.rows.map((row) => row.t);
  return state;
}
// The picture grows from the last layer to the input, a layer at a time: `state.from` is the leftmost column drawn.
const LAYER_MS = 1100;
function build(button, state, draw) {
  const show = (from) => {
    state.from = from;
    if (from === 0) clearInterval(button.__bwTimer), (button.__bwTimer = null);
    button.textContent = button.__bwTimer ? "❚❚ Pause" : wantsStill() ? "◀ Next layer" : "▶ Build up";
    draw();
  };
  button.onclick = () => {
    const last = state.columns.length - 1, begins = state.from === 0;
    if (button.__bwTimer) { clearInterval(button.__bwTimer); button.__bwTimer = null; show(state.from); return; }
    if (!wantsStill()) button.__bwTimer = setInterval(() => show(button.isConnected ? Math.max(0, state.from - 1) : 0), LAYER_MS);
    show(begins ? last : wantsStill() ? state.from - 1 : state.from);
  };
  show(0);
}

function share({ arrays, rows }, column, row) { return arrays.shares.data[column * rows.length + row]; }
// What row `to` after layer `layer` + 1 takes from row `from` below it.
function band({ arrays, rows }, layer, to, from) { return arrays.edges.data[(layer * rows.length + to) * rows.length + from]; }
// In marks that keep a right-to-left word from turning the numbers beside it round.
function rowName({ rows, texts }, r) { return rows[r].i === undefined ? texts[r] : `\u2068${nameAmong(texts, r, rows[r].i)}\u2069`; }

// Where everything stands, in CSS pixels. tops[c][r] and heights: the bars; a column is as high as `tall` and its gaps.
function layOut(state, width, look) {
  const type = 16 * typeScale(), small = width < 560, count = state.rows.length, last = state.columns.length - 1;
  const pen = make("canvas").getContext("2d");
  pen.font = `${type}px ${look.font}`;
  const widest = Math.max(...state.texts.map((text) => pen.measureText(text).width));
  const left = Math.min(widest + pen.measureText(" 99.9 %").width + 16, width * (small ? 0.36 : 0.2));
  const gap = Math.max(2, Math.min(7, 76 / count)), tall = Math.max(300, Math.min(430, 20 * count));
  const top = 3.1 * type, bar = small ? 7 : 12;
  const x = state.columns.map((_, c) => left + (c * (width - left - bar - 2)) / Math.max(1, last));
  const tops = x.map((_, c) => {
    let y = top + (c === last ? (gap * (count - 1)) / 2 : 0); // the last column is one bar
    return state.rows.map((_, r) => { const at = y; y += share(state, c, r) * tall + (c === last ? 0 : gap); return at; });
  });
  return { type, small, left, gap, tall, top, bar, x, tops, width, height: top + tall + gap * (count - 1) + 6 };
}

// Bands start where the one before ended: those of a bar lie side by side on both of its sides, in the tokens' order.
function bands(state, place) {
  const found = [], count = state.rows.length;
  for (let layer = 0; layer < state.columns.length - 1; layer++) {
    const down = place.tops[layer].slice(), up = place.tops[layer + 1].slice();
    for (let to = 0; to < count; to++) for (let from = 0; from < count; from++) {
      const value = band(state, layer, to, from), high = value * place.tall;
      if (value > 0) found.push({ layer, to, from, value, high, y0: down[from], y1: up[to] });
      down[from] += high; up[to] += high;
    }
  }
  return found;
}

function drawFlow(box, line, state, look) {
  const place = layOut(state, Math.max(280, box.clientWidth), look), all = bands(state, place);
  const { element, context } = canvas(box, "bw-flow", place.width, place.height,
    `What reaches ${rowName(state, state.target)} of the last layer, from the input on the left through ${state.columns.length - 1} layers; arrow keys read the bars`);
  const last = state.columns.length - 1, at = (box.__bwAt ??= { c: 0, r: null });
  at.c = Math.max(state.from, Math.min(at.c, last));
  if (at.r !== null) at.r = Math.min(at.r, state.rows.length - 1);
  const show = () => {
    paint(context, state, place, all, at, look);
    line.textContent = at.r === null ? "Point at a bar, or tap it: where it comes from, and where it goes." : inWords(state, at);
  };
  const find = (event) => {
    const frame = element.getBoundingClientRect();
    const px = ((event.clientX - frame.left) * place.width) / frame.width, py = ((event.clientY - frame.top) * place.height) / frame.height;
    const c = Math.max(state.from, nearest(place.x, px - place.bar / 2));
    const r = state.rows.findIndex((_, r) => share(state, c, r) > 0 && py <= place.tops[c][r] + share(state, c, r) * place.tall + place.gap / 2);
    return { c, r: r < 0 ? state.rows.length - 1 : r };
  };
  const go = (to) => { if (to.c !== at.c || to.r !== at.r) { Object.assign(at, to); if (share(state, at.c, at.r) === 0) at.r = state.target; show(); } };
  element.onpointermove = (event) => go(find(event));
  element.onclick = (event) => go(find(event));
  element.onpointerleave = () => go({ c: at.c, r: null });
  element.onkeydown = (event) => {
    const step = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
    if (!step) return;
    event.preventDefault();
    const r = at.r === null ? state.target : at.r + step[1];
    go({ c: Math.max(state.from, Math.min(last, at.c + step[0])), r: Math.max(0, Math.min(state.rows.length - 1, r)) });
  };
  show();
}

function nearest(places, x) { return places.reduce((best, at, n) => (Math.abs(at - x) < Math.abs(places[best] - x) ? n : best), 0); }

function inWords(state, { c, r }) {
  const name = rowName(state, r), where = c === 0 ? "At the input" : `After layer ${c}`;
  const parts = (of, word) => {
    const most = state.rows.map((_, n) => [n, of(n)]).filter(([, value]) => value > 0).sort((a, b) => b[1] - a[1]).slice(0, 3);
    return most.length ? ` ${word} ${most.map(([n, value]) => `${n === r ? "itself" : rowName(state, n)} ${percent(value)}`).join(", ")}` : "";
  };
  const from = c > 0 ? parts((n) => band(state, c - 1, r, n), "It comes from") : "";
  const to = c < state.columns.length - 1 ? parts((n) => band(state, c, n, r), "It goes to") : "";
  const guess = state.lens[c] && r === state.target ? ` The head would answer “${state.lens[c][0]}” here, ${percent(state.lens[c][1])}.` : "";
  return `${where}, ${name}: ${percent(share(state, c, r))} of all.${from && `${from}.`}${to && `${to}.`}${guess}`;
}

// --- painting ----------------------------------------------------------------

function paint(context, state, place, all, at, look) {
  const hue = flowHue(state.kind, look), quiet = mix(look.paper, look.ink, 0.66);
  context.clearRect(0, 0, place.width, place.height);
  for (const one of all) {
    if (one.layer < state.from) continue;
    const lit = at.r !== null && ((one.layer === at.c && one.from === at.r) || (one.layer === at.c - 1 && one.to === at.r));
    const own = one.to === one.from, strong = lit ? 0.85 : at.r === null ? (own ? 0.34 : 0.42) : 0.13;
    paintBand(context, place, one, rgb(own && !lit ? mix(look.ink, look.paper, 0.45) : hue, strong));
  }
  context.textBaseline = "middle";
  state.columns.forEach((name, c) => c >= state.from && paintColumn(context, state, place, c, name, { ink: rgb(look.ink), hue: rgb(hue), quiet: rgb(quiet), at, look }));
  paintNames(context, state, place, look, quiet);
}

// The colour of both ways or of one way, as --bw-both and --bw-oneway of tokens.css.
function flowHue(kind, { dark }) {
  if (kind === "causal") return dark ? [240, 137, 74] : MEANING.oneway;
  return dark ? [86, 180, 233] : MEANING.both;
}

function paintBand(context, place, { layer, high, y0, y1 }, colour) {
  if (high < 0.15) return;
  const a = place.x[layer] + place.bar, b = place.x[layer + 1], half = (a + b) / 2;
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(a, y0);
  context.bezierCurveTo(half, y0, half, y1, b, y1);
  context.lineTo(b, y1 + high);
  context.bezierCurveTo(half, y1 + high, half, y0 + high, a, y0 + high);
  context.fill();
}

function paintColumn(context, state, place, c, name, { ink, hue, quiet, at, look }) {
  state.rows.forEach((_, r) => {
    context.fillStyle = r === state.target ? hue : at.c === c && at.r === r ? ink : quiet;
    context.fillRect(place.x[c], place.tops[c][r], place.bar, Math.max(share(state, c, r) * place.tall, share(state, c, r) > 0 ? 0.5 : 0));
  });
  const count = state.columns.length - 1, last = c === count, pitch = place.x[1] - place.x[0], narrow = place.small || pitch < 100;
  if (place.small && pitch < 36 && c % 3) return; // twelve layers on a phone
  const middle = place.x[c] + (last ? place.bar : c === 0 ? 0 : place.bar / 2);
  context.textAlign = last ? "right" : c === 0 ? "left" : "center";
  context.font = `600 ${place.type * (place.small ? 0.84 : 0.94)}px ${look.font}`;
  context.fillStyle = ink;
  context.fillText(narrow && c > 0 ? String(c) : name, middle, 0.7 * place.type);
  const guess = state.lens[c];
  const every = narrow ? Math.max(2, Math.ceil(100 / pitch)) : 1; // of twelve layers every second has room for its guess
  if (place.small || !guess || (count - c) % every) return;
  const room = pitch * (narrow ? every * (c === 0 || last ? 0.58 : 0.68) : 0.94);
  context.font = `${0.9 * place.type}px ${look.font}`;
  context.fillStyle = quiet;
  context.fillText(fitText(context, `\u2068${guess[0]}\u2069 ${percent(guess[1])}`, room), middle, 2 * place.type);
}

// The tokens left of the first column, each beside its bar; one that has no room there is left to the line and the table.
function paintNames(context, state, place, look, quiet) {
  let free = place.top - 1;
  const c = state.from;
  context.textAlign = "right";
  state.rows.forEach((row, r) => {
    const high = share(state, c, r) * place.tall, y = place.tops[c][r] + high / 2, size = Math.min(place.type, Math.max(0.8 * place.type, high + place.gap));
    if (high === 0 || y - 0.42 * size < free) return;
    free = y + 0.42 * size;
    context.font = `${r === state.target ? 600 : 400} ${size}px ${look.font}`;
    context.fillStyle = row.k === "special" || row.k === "others" ? rgb(quiet) : rgb(look.ink);
    const said = percent(share(state, c, r)), wide = context.measureText(` ${said}`).width;
    context.fillText(`${fitText(context, row.t, place.left - wide - 10)}`, place.x[c] - 8 - wide, y);
    context.fillStyle = rgb(quiet);
    context.fillText(said, place.x[c] - 8, y);
  });
}

// As much of a text as fits, with a dot for the rest.
function fitText(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  const signs = [...text];
  while (signs.length > 1 && context.measureText(`${signs.join("")}…`).width > room) signs.pop();
  return `${signs.join("")}…`;
}
