// What reaches one token of the last layer, as a stream from left to right: a column for the input and one for each
// layer, in it a bar for each token, as high as its share; between two columns a band for what a token takes from
// another. Every column is 100 %. Point, click or use the arrows: the line below says a bar in words.
export default function (component) {
  const { parentElement, data } = component;
  const state = readFlow(unpack(data));
  const button = child(parentElement, "button", "bw-flow-play", { type: "button", title: "Layer by layer, from the last to the input" });
  const box = child(parentElement, "div", "bw-flow-box");
  const line = child(parentElement, "p", "bw-readout");
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
  const stop = () => { clearInterval(button.__bwTimer); button.__bwTimer = null; };
  const show = (from) => {
    state.from = from;
    if (from === 0) stop();
    button.textContent = button.__bwTimer ? "❚❚ Pause" : wantsStill() ? "◀ Next layer" : "▶ Build up";
    draw();
  };
  const grow = () => show(button.isConnected ? state.from - 1 : 0);
  button.onclick = () => {
    const isWhole = state.from === 0, isPlaying = Boolean(button.__bwTimer);
    if (isPlaying) stop();
    else if (!wantsStill()) button.__bwTimer = setInterval(grow, LAYER_MS);
    show(isWhole ? state.columns.length - 1 : wantsStill() ? state.from - 1 : state.from);
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
  const at = (box.__bwAt ??= { c: 0, r: null }); // the bar that is read: its column, and its row or none
  at.c = Math.max(state.from, Math.min(at.c, state.columns.length - 1));
  if (at.r !== null) at.r = Math.min(at.r, state.rows.length - 1);
  const show = () => {
    paint(context, state, place, all, at, look);
    line.textContent = at.r === null ? hint(state, place) : inWords(state, at);
    const count = state.rows.length;
    sayPlace(element, at.c * count + (at.r ?? 0), state.columns.length * count, line.textContent);
  };
  flowEvents(element, state, place, at, show);
  show();
}

function hint(state, place) {
  const name = quoted(rowName(state, state.target)), answers = state.lens.map(([piece], c) => `${c || "input"} ${quoted(piece)}`);
  const lens = !answers.length ? "" : place.small ? ` What the head would answer for ${name} after each layer: ${answers.join(", ")}.`
    : ` Under each layer: what the head would answer for ${name} there.`;
  return `Point at a bar, or tap it: where it comes from, and where it goes.${lens}`;
}

function flowEvents(element, state, place, at, show) {
  const last = state.columns.length - 1;
  const go = ({ c, r }) => {
    if (c === at.c && r === at.r) return;
    Object.assign(at, { c, r: r !== null && share(state, c, r) === 0 ? state.target : r }); // where there is no bar: its own
    show();
  };
  element.onpointermove = element.onclick = (event) => go(barUnder(event, element, state, place));
  element.onpointerleave = () => go({ c: at.c, r: null });
  element.onkeydown = (event) => {
    const step = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[plainKey(event)];
    if (!step) return;
    event.preventDefault();
    const r = at.r === null ? state.target : at.r + step[1];
    go({ c: Math.max(state.from, Math.min(last, at.c + step[0])), r: Math.max(0, Math.min(state.rows.length - 1, r)) });
  };
}

function barUnder(event, element, state, place) {
  const frame = element.getBoundingClientRect();
  const x = ((event.clientX - frame.left) * place.width) / frame.width, y = ((event.clientY - frame.top) * place.height) / frame.height;
  const c = Math.max(state.from, nearest(place.x, x - place.bar / 2));
  const ends = (r) => place.tops[c][r] + share(state, c, r) * place.tall + place.gap / 2;
  const r = state.rows.findIndex((_, r) => share(state, c, r) > 0 && y <= ends(r));
  return { c, r: r < 0 ? state.rows.length - 1 : r };
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
  const guess = state.lens[c] && r === state.target ? ` The head would answer ${quoted(state.lens[c][0])} here, ${percent(state.lens[c][1])}.` : "";
  return `${where}, ${name}: ${percent(share(state, c, r))} of all.${from && `${from}.`}${to && `${to}.`}${guess}`;
}
