// token + segment + position = sum -> LayerNorm, as strips of real values, a
// block a token. Hover, click or arrows read a cell out (ui/views/embeddings.py).
const STRIPS = ["token", "segment", "position", "sum", "output"];
const NAMES = { token: "token", segment: "segment", position: "position", sum: "= sum", output: "LayerNorm" };
const BLOCK_GAP = 16;
// In so many decimals the float32 values hold; who adds them up by hand is off by one in the last at most.
const DECIMALS = 5;
let STRIP = 17, NAME_WIDTH = 96, HEAD = 24;

export default function (component) {
  const { parentElement, data } = component;
  const state = unpack(data);
  state.arrays.sum = sumOf(state);
  state.strips = STRIPS.filter((name) => state.arrays[name]);
  state.width = state.arrays.sum.shape[1];
  const cell = { t: Math.min(state.cell[0], state.tokens.length - 1), d: Math.min(state.cell[1], state.width - 1) };
  const readout = child(parentElement, "div", "bw-readout");
  const scroller = child(parentElement, "div", "bw-scroller");
  const spacer = child(scroller, "div", "bw-spacer");
  const key = child(parentElement, "p", "bw-key");

  const draw = () => {
    const look = theme(parentElement), scale = typeScale();
    [STRIP, NAME_WIDTH, HEAD] = [17 * scale, 96 * scale, 24 * scale];
    const block = state.strips.length * STRIP + HEAD + BLOCK_GAP;
    const room = innerWidth > 640 ? 620 : Math.max(2 * block, innerHeight - readout.offsetHeight - 140); // a phone shows both at once
    const height = Math.min(block * state.tokens.length, 620, room);
    scroller.style.height = `${height}px`;
    spacer.style.height = `${block * state.tokens.length}px`;
    const width = Math.max(240, spacer.clientWidth);
    const { element, context } = canvas(spacer, "bw-strips", width, height,
      `Embedding values of ${state.tokens.length} tokens in ${state.width} dimensions; arrow keys move from cell to cell`);
    drawBlocks(context, state, look, width, height, block, scroller.scrollTop, cell);
    key.textContent = `Blue is negative, red positive, faint near 0. Addends and sum: ±${formatNumber(state.limit)}; after LayerNorm: ±${formatNumber(state.output_limit)}.`;
    return { element, block, width };
  };
  let listed = cell.t; // the token whose numbers the table holds
  const read = () => {
    readCell(readout, state, cell);
    sayPlace(spacer.querySelector("canvas"), cell.t * state.width + cell.d, state.tokens.length * state.width,
      cellInWords(state, cell));
    if (listed !== cell.t) { listed = cell.t; fillTable(); }
  };
  const update = (inside) => {
    const { block } = draw();
    if (inside) keepInSight(scroller, cell.t * block, block);
    read();
  };
  const first = draw();
  read();
  const at = (event) => {
    const box = first.element.getBoundingClientRect();
    const { block, width } = draw();
    const t = Math.floor((event.clientY - box.top + scroller.scrollTop) / block);
    const d = Math.floor(((event.clientX - box.left - NAME_WIDTH) / (width - NAME_WIDTH)) * state.width);
    if (t < 0 || t >= state.tokens.length || d < 0 || d >= state.width) return false;
    cell.t = t; cell.d = d;
    return true;
  };
  const tell = () => send(component, { token: cell.t, dimension: cell.d });
  scroller.onscroll = () => draw();
  first.element.onpointermove = (event) => { if (at(event)) { draw(); read(); } };
  first.element.onclick = (event) => { if (at(event)) tell(); };
  first.element.onkeydown = (event) => {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0], Enter: [0, 0] }[plainKey(event)];
    if (!step) return;
    event.preventDefault();
    cell.t = Math.max(0, Math.min(state.tokens.length - 1, cell.t + step[0]));
    cell.d = Math.max(0, Math.min(state.width - 1, cell.d + step[1]));
    update(true);
    if (event.key === "Enter") tell();
  };
  const fillTable = numbersTable(parentElement, () => `All dimensions of ${state.tokens[cell.t] ?? ""}`, ["dimension", ...state.strips.map((s) => NAMES[s])], () =>
    Array.from({ length: state.width }, (_, d) => [d, ...state.strips.map((s) => value(state, s, cell.t, d))]));
  onThemeChange(parentElement, draw);
  onWidthChange(spacer, draw);
}

// Of an addend each different row comes once; `NAME_at` says which one a token has.
function value(state, strip, t, d) {
  const array = state.arrays[strip], row = state.arrays[`${strip}_at`]?.data[t] ?? t;
  return d < array.shape[1] ? array.data[row * array.shape[1] + d] : NaN;
}

// The model's own sum, to the last bit: float32 added up in its order.
function sumOf({ arrays, tokens }) {
  const width = arrays.token.shape[1], data = new Float32Array(tokens.length * width);
  for (const strip of STRIPS.filter((name) => arrays[`${name}_at`])) {
    const rows = arrays[strip].data;
    arrays[`${strip}_at`].data.forEach((row, t) => {
      for (let d = 0; d < width; d++) data[t * width + d] += rows[row * width + d];
    });
  }
  return { shape: [tokens.length, width], data };
}

function drawBlocks(context, state, look, width, height, block, top, cell) {
  const from = Math.floor(top / block), to = Math.min(state.tokens.length, Math.ceil((top + height) / block));
  const span = width - NAME_WIDTH;
  for (let t = from; t < to; t++) {
    const y = t * block - top;
    context.fillStyle = rgb(look.ink);
    context.font = `600 ${0.94 * STRIP}px ${look.font}`;
    context.fillText(`${state.tokens[t]}  ${t}`, 0, y + 0.94 * STRIP, width);
    state.strips.forEach((strip, n) => {
      const at = y + HEAD + n * STRIP, limit = strip === "output" ? state.output_limit : state.limit;
      context.font = `${0.85 * STRIP}px ${look.font}`;
      context.fillStyle = MEANING[strip] ? rgb(mix(MEANING[strip], look.ink, 0.45)) : rgb(look.ink, 0.8);
      context.fillText(NAMES[strip], 0, at + STRIP - 4, NAME_WIDTH - 8);
      drawMap(context, NAME_WIDTH, at, span, STRIP - 2, 1, state.arrays[strip].shape[1],
        (_, d) => signedColour(value(state, strip, t, d), limit, look));
    });
    if (t === cell.t) markCell(context, look, NAME_WIDTH + (cell.d / state.width) * span, y + HEAD - 2, Math.max(3, span / state.width), state.strips.length * STRIP + 2);
  }
}

function markCell(context, look, x, y, width, height) {
  context.strokeStyle = rgb(look.ink);
  context.lineWidth = 2;
  context.strokeRect(x - 1, y, width + 2, height);
}

function keepInSight(scroller, top, block) {
  if (top < scroller.scrollTop) scroller.scrollTop = top;
  if (top + block > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = top + block - scroller.clientHeight;
}

function signed(x) { return `${x < 0 ? "−" : "+"}${Math.abs(x).toFixed(DECIMALS)}`; }

// The chosen cell and its numbers, to be heard: the page writes them in columns.
function cellInWords(state, { t, d }) {
  return `Dimension ${d} of “${state.tokens[t]}” at position ${t}: `
    + state.strips.map((strip) => `${NAMES[strip].replace("= ", "")} ${signed(value(state, strip, t, d))}`).join(", ");
}

// The chosen cell's addends, its sum, and LayerNorm worked out term by term.
function readCell(readout, state, cell) {
  const { t, d } = cell;
  const term = (strip) => {
    const span = make("span", `bw-term bw-term-${strip}`);
    span.append(make("b", "", signed(value(state, strip, t, d))), make("span", "", NAMES[strip].replace("= ", "")));
    return span;
  };
  const line = make("div", "bw-sum");
  for (const strip of state.strips.filter((s) => s !== "output")) {
    if (strip === "sum") line.append(make("span", "bw-break"), make("span", "bw-sign", "="));
    else if (strip !== "token") line.append(make("span", "bw-sign", "+"));
    line.append(term(strip));
  }
  line.append(make("span", "bw-sign", "→"), term("output"));
  readout.replaceChildren(make("p", "bw-where", `Dimension ${d} of “${state.tokens[t]}” at position ${t}`), line,
    make("p", "bw-norm", normLine(state, t, d)));
}

function normLine(state, t, d) {
  const width = state.width, row = Array.from({ length: width }, (_, i) => value(state, "sum", t, i));
  const mean = row.reduce((a, b) => a + b, 0) / width;
  const sd = Math.sqrt(row.reduce((a, b) => a + (b - mean) ** 2, 0) / width + state.epsilon);
  const weight = state.arrays.weight.data[d], bias = state.arrays.bias.data[d];
  const done = ((row[d] - mean) / sd) * weight + bias;
  return `LayerNorm: (${signed(row[d])} − mean ${signed(mean)}) / deviation ${sd.toFixed(DECIMALS)} × weight ${weight.toFixed(DECIMALS)} + bias ${signed(bias)} = ${signed(done)}`;
}
