// One head of every reader side by side, and how much of each head looks right
// (ui/views/compare_masks.py). What a mask forbids is left empty. One row is
// looked along in all maps at once; a click on the small grid opens that head.
const SIZE = 320, GUTTER = 64, RIGHT = 20, TOP = 58;
const ONE_ROW = 640; // pixels: the heads of four readers side by side, or in two rows

export default function (component) {
  const { parentElement, data } = component;
  const state = unpack(data);
  const all = child(parentElement, "div", "cmp-all"), panels = child(all, "div", "cmp-panels");
  const says = child(all, "div", "cmp-says"), hint = child(says, "p", "cmp-hint");
  hint.textContent = state.hint;
  const scale = child(says, "div", "cmp-scale");
  all.classList.toggle("cmp-many", state.readers[0].drawn.length > 16);
  const shares = foldedHeads(parentElement);
  const view = (all.__view ??= { row: null }); // null: each reader's own guessing row; it stays while heads are looked through
  if (view.of !== state.readers[0].tokens.join(" ")) Object.assign(view, { row: null, of: state.readers[0].tokens.join(" ") });
  const draw = () => keepFocus(all, () => {
    const look = theme(parentElement);
    panels.replaceChildren(...state.readers.map(panel));
    scale.replaceChildren(make("span", "", "Weight"), colourScale(look));
    state.readers.forEach((reader, n) => wireMap(panels.children[n], reader, n, state, look, view, move));
    drawShares();
  });
  const drawShares = () => {
    const look = theme(parentElement), { layer, head } = state.readers[0], at = chosenNow(shares, [layer, head]);
    each(shares, state.readers, headsOf, nameHeads);
    state.readers.forEach((_, n) => drawHeads(shares.children[n], n, state, look, at, open)); // once all have their width
  };
  const move = (row) => {
    if (row === view.row) return;
    view.row = row;
    const look = theme(parentElement);
    state.readers.forEach((reader, n) => drawReader(panels.children[n], reader, n, state, look, view));
    fillTable();
  };
  const open = (layer, head) => {
    noteChoice(shares, [layer, head]);
    drawShares();
    send(component, { layer, head });
  };
  draw();
  onThemeChange(parentElement, draw);
  onWidthChange(panels, draw);
  onWidthChange(shares, drawShares); // also when it is unfolded
  const listed = state.readers.map((reader, n) => [reader, n]).filter(([reader]) => reader.in_table);
  const fillTable = numbersTable(parentElement, state.caption, ["looked at", ...listed.map(([reader]) => reader.title)], () =>
    state.readers[0].tokens.map((token, k) => [`${token} ${k}`, ...listed.map(([reader, n]) =>
      (allowed(state, n, reader, rowOf(view, reader), k) ? weight(state, n, reader, rowOf(view, reader), k) : "not allowed"))]));
}

// Which of a reader's drawn rows is looked along: view.row is a position in the input, and readers differ in length.
function rowOf(view, reader) {
  const wanted = view.row ?? reader.row;
  let best = 0;
  reader.drawn.forEach((position, i) => {
    if (Math.abs(position - wanted) < Math.abs(reader.drawn[best] - wanted)) best = i;
  });
  return best;
}
// i: a drawn row; k: a position in the input.
function weight(state, n, reader, i, k) { return state.arrays[`weights${n}`].data[i * reader.tokens.length + k]; }
function allowed(state, n, reader, i, k) { return state.arrays[`allowed${n}`].data[i * reader.tokens.length + k] === 1; }

// A place for the small grids of every head: open where there is room for them in one row, and as the visitor left it.
function foldedHeads(parent) {
  const fold = child(parent, "details", "cmp-fold");
  if (!fold.firstChild) {
    fold.append(make("summary", "", "Looks right, by layer and head"));
    fold.open = parent.host?.clientWidth >= ONE_ROW;
  }
  return child(fold, "div", "cmp-shares");
}

// They stay while heads are looked through: the picture with the keyboard is not told anew.
function headsOf() {
  const box = make("section", "cmp-panel");
  box.append(make("h3"), make("div", "cmp-heads-box"), make("p", "cmp-share"));
  return box;
}

function nameHeads(box, reader) {
  const names = { "aria-label": `${reader.title}: looks right`, "data-reader": reader.reader, "data-accent": reader.accent };
  for (const [name, value] of Object.entries(names)) put(box, name, value);
  putText(box.firstChild, reader.title);
}

function panel(reader) {
  const box = make("section", "cmp-panel", "", {
    "aria-label": reader.title, "data-reader": reader.reader, "data-accent": reader.accent,
  });
  box.append(make("h2", "", reader.title), make("p", "cmp-models", `${reader.model} · ${reader.what}`));
  if (reader.drawn.length < reader.tokens.length) {
    box.append(make("p", "cmp-models", `${reader.drawn.length} of ${reader.tokens.length} tokens are drawn; the sentence below counts all`));
  }
  box.append(make("div", "cmp-map-box"), make("p", "cmp-said"));
  return box;
}

// Draw a panel's map, once it has its place on the page, and let a row be chosen in it.
function wireMap(box, reader, n, state, look, view, move) {
  drawReader(box, reader, n, state, look, view);
  const element = box.querySelector(".cmp-map"), count = reader.drawn.length;
  const size = (SIZE - GUTTER - RIGHT) / count;
  element.onpointermove = element.onpointerdown = (event) => {
    const place = element.getBoundingClientRect();
    const row = Math.floor((((event.clientY - place.top) / place.height) * (TOP + size * count) - TOP) / size);
    if (row >= 0 && row < count) move(reader.drawn[row]);
  };
  element.onkeydown = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[plainKey(event)];
    if (!step) return;
    event.preventDefault();
    move(reader.drawn[Math.max(0, Math.min(count - 1, rowOf(view, reader) + step))]);
  };
}

function drawReader(box, reader, n, state, look, view) {
  const count = reader.drawn.length, size = (SIZE - GUTTER - RIGHT) / count, row = rowOf(view, reader);
  const { element, context } = canvas(box.querySelector(".cmp-map-box"), "cmp-map", SIZE, TOP + size * count,
    `${reader.title}: ${count} by ${count} map, rows look at columns; up and down choose a row`, 1.6);
  for (let q = 0; q < count; q++) reader.drawn.forEach((k, column) => {
    if (!allowed(state, n, reader, q, k)) return;
    context.fillStyle = rgb(mix(probabilityColour(weight(state, n, reader, q, k), look), look.ink, 0.05));
    context.fillRect(GUTTER + column * size + 0.5, TOP + q * size + 0.5, size - 1, size - 1);
  });
  drawLeftOut(context, reader.drawn, size, look);
  drawLabels(context, reader, size, look, row, (box.clientWidth || SIZE) / SIZE);
  context.strokeStyle = rgb(MEANING.mask);
  context.lineWidth = 2.5;
  context.strokeRect(GUTTER + 1, TOP + row * size, SIZE - GUTTER - RIGHT - 2, size);
  const says = spoken(state, n, reader, row); // all maps change at once: only the one with the focus reads it out
  putText(box.querySelector(".cmp-said"), says);
  sayPlace(element, row, count, says);
}

// A dotted line wherever tokens between two that are drawn are not.
function drawLeftOut(context, drawn, size, look) {
  const end = size * drawn.length;
  context.save();
  context.strokeStyle = rgb(mix(look.paper, look.ink, 0.7));
  context.lineWidth = 1.5;
  context.setLineDash([2, 3]);
  context.beginPath();
  drawn.forEach((position, i) => {
    if (i === 0 || position - drawn[i - 1] === 1) return;
    context.moveTo(GUTTER + i * size, TOP);
    context.lineTo(GUTTER + i * size, TOP + end);
    context.moveTo(GUTTER, TOP + i * size);
    context.lineTo(GUTTER + end, TOP + i * size);
  });
  context.stroke();
  context.restore();
}

// Token texts left and on top, never under 12 pixels on the page; of many only those that fit, the chosen ones always.
function drawLabels(context, reader, size, look, row, shown) {
  const font = Math.max(12 / shown, Math.min(13, size)), most = Math.floor((GUTTER - 6) / (0.5 * font));
  const [lines, slanted] = [0.95, 1.2].map((room) => withRoom(reader, row, Math.ceil((room * font) / size)));
  context.textBaseline = "middle";
  context.fillStyle = rgb(look.ink);
  reader.drawn.forEach((k, i) => {
    const token = reader.tokens[k], text = token.length > most ? `${token.slice(0, most - 1)}…` : token;
    context.font = `${i === row ? 700 : 400} ${font}px ${look.font}`;
    context.textAlign = "right";
    if (lines(i)) context.fillText(text, GUTTER - 5, TOP + (i + 0.5) * size, GUTTER - 6);
    if (!slanted(i)) return;
    context.save();
    context.translate(GUTTER + (i + 0.5) * size, TOP - 5);
    context.rotate(-Math.PI / 3);
    context.textAlign = "left";
    context.fillText(text, 0, 0);
    context.restore();
  });
}

// Which drawn tokens are named, where one in `every` has room: the chosen row, then the hidden place, then tokens that
// stand alone ([CLS] far from the rest); of the others each so manyth that is not too near to these.
function withRoom({ drawn, place }, row, every) {
  const isFree = (named, i) => named.every((other) => Math.abs(other - i) >= every);
  const alone = drawn.map((_, i) => i).filter((i) => !(drawn[i] - drawn[i - 1] === 1 || drawn[i + 1] - drawn[i] === 1));
  const first = [row];
  for (const i of [drawn.indexOf(place), ...alone]) if (isFree(first, i)) first.push(i);
  return (i) => first.includes(i) || (i % every === 0 && isFree(first, i));
}

function spoken(state, n, reader, q) {
  const seen = reader.tokens.map((token, k) => [token, k]).filter(([, k]) => allowed(state, n, reader, q, k));
  const named = (k) => nameAmong(reader.tokens, k), name = `${quoted(reader.tokens[reader.drawn[q]])} (${reader.drawn[q]})`;
  if (reader.what.startsWith("mask")) return `${name} may see ${seen.length} of ${reader.tokens.length} tokens.`;
  const best = seen.sort((a, b) => weight(state, n, reader, q, b[1]) - weight(state, n, reader, q, a[1])).slice(0, 3);
  return `${name} looks at ${best.map(([, k]) => `${quoted(named(k))} ${percent(weight(state, n, reader, q, k)).replace(" ", "\u00a0")}`).join(", ")}.`;
}

// at: the head that is framed, or the nearest that this reader has.
function drawHeads(box, n, state, look, at, open) {
  const reader = state.readers[n], [layers, heads] = state.arrays[`right${n}`].shape;
  const now = [Math.min(at[0], layers - 1), Math.min(at[1], heads - 1)], shares = state.arrays[`right${n}`].data;
  const type = 13 / Math.min(1, (box.clientWidth || SIZE) / SIZE); // 13 pixels on the page, however small the canvas is shown
  const left = 1.7 * type, size = (SIZE - left) / heads, height = layers * size + 1.25 * type;
  const { element, context } = canvas(box.querySelector(".cmp-heads-box"), "cmp-heads", SIZE, height,
    `${reader.title}: share of each head's attention that goes right of the hidden word; arrow keys choose a head`, 1.6);
  context.font = `${type}px ${look.font}`;
  context.textBaseline = "middle";
  for (let layer = 0; layer < layers; layer++) for (let head = 0; head < heads; head++) {
    context.fillStyle = rgb(mix(probabilityColour(shares[layer * heads + head], look), look.ink, 0.05));
    context.fillRect(left + head * size + 1, layer * size + 1, size - 2, size - 2);
    context.fillStyle = rgb(mix(look.paper, look.ink, 0.7));
    context.textAlign = "center";
    if (head === 0) context.fillText(layer + 1, left / 2, (layer + 0.5) * size);
    if (layer === 0 && head % Math.ceil((1.4 * type) / size) === 0) context.fillText(head + 1, left + (head + 0.5) * size, height - 0.55 * type);
  }
  context.strokeStyle = rgb(MEANING.mask);
  context.lineWidth = 2.5;
  context.strokeRect(left + now[1] * size + 1, now[0] * size + 1, size - 2, size - 2);
  const choose = (layer, head) => {
    if (layer >= 0 && layer < layers && head >= 0 && head < heads) open(layer, head);
  };
  put(element, "data-chooses", "");
  const says = `Layer ${now[0] + 1}, head ${now[1] + 1}: ${percent(shares[now[0] * heads + now[1]]).replace(" ", "\u00a0")} goes right.`;
  putText(box.querySelector(".cmp-share"), says);
  sayPlace(element, now[0] * heads + now[1], layers * heads, says);
  element.onclick = (event) => {
    const place = element.getBoundingClientRect(), scale = SIZE / place.width;
    choose(Math.floor(((event.clientY - place.top) * scale) / size),
      Math.floor(((event.clientX - place.left) * scale - left) / size));
  };
  element.onkeydown = (event) => {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[plainKey(event)];
    if (!step) return;
    event.preventDefault();
    choose(now[0] + step[0], now[1] + step[1]);
  };
}
