// How far an answer moves without each head alone (ui/views/attention_sweep.py):
// a cell a head, its colour and number the KL. A click or Space switches the head
// off in the view, as in the grid of maps. One tab stop; arrows move.
const ROOM = 34; // pixels a cell must be wide for its number

export default function (component) {
  const { parentElement, data } = component;
  const state = unpack(data);
  const box = child(parentElement, "section", "fx-box", { "aria-label": "How far the answer moves without each head" });
  child(box, "h2", "fx-title").replaceChildren("How far the answer moves without each head ",
    make("span", "fx-quiet fx-asked", state.title), make("span", "fx-quiet", "layer ↓  head →", { "aria-hidden": "true" }));
  putText(child(box, "p", "fx-hint"), "Each head is off alone, in the whole model, whatever is off now. Click a cell to switch its head off; keys: arrows and Space.");
  const grid = child(box, "div", "fx-grid", { role: "listbox", "aria-multiselectable": "true",
    "aria-label": `${state.layers} layers by ${state.heads} heads; arrow keys move, Space switches a head off or on` });
  grid.style.setProperty("--heads", state.heads);
  const line = child(box, "p", "fx-says"), scale = child(box, "div", "fx-scale");
  const view = { ...state, grid, line, component, at: Math.min(grid.__bwAt ?? strongest(state), state.first.length - 1) };
  const draw = () => {
    view.look = theme(parentElement);
    drawCells(view);
    scale.replaceChildren(make("span", "", "KL of the answer, nats"), colourScale(view.look, state.end, 0));
  };
  draw();
  onWidthChange(grid, draw);
  listen(view);
  hear(box, `${state.title}. Without it the answer moves most: ${inWords(view, strongest(state), false)}`, true);
  numbersTable(box, `${state.title}: each head off alone, the strongest first`,
    ["layer, head", "KL, nats", `“${state.answer}” (${percent(state.before)})`, "first then"], () => ranked(state).map((cell) =>
      [`${where(state, cell)[0]}, ${where(state, cell)[1]}`, state.arrays.divergence.data[cell], state.arrays.after.data[cell], state.first[cell]]));
  onThemeChange(parentElement, draw);
}

function where({ heads }, cell) { return [Math.floor(cell / heads) + 1, (cell % heads) + 1]; }

function ranked({ arrays }) {
  const values = arrays.divergence.data;
  return [...values.keys()].sort((a, b) => values[b] - values[a]);
}

function strongest(state) { return ranked(state)[0]; }

function offNow({ grid, off }) { return new Set(chosenNow(grid, off)); }

// The names of the columns, then each layer's name before its cells.
function drawCells(view) {
  const { grid, layers, heads } = view, off = offNow(view);
  grid.classList.toggle("fx-narrow", grid.clientWidth / (heads + 1) < ROOM);
  const items = [{ name: "" }, ...Array.from({ length: heads }, (_, head) => ({ name: head + 1 }))];
  for (let layer = 0; layer < layers; layer++) {
    items.push({ name: layer + 1 });
    for (let head = 0; head < heads; head++) items.push({ cell: layer * heads + head });
  }
  each(grid, items, () => make("span"), (element, { name, cell }) => {
    if (cell === undefined) nameLine(element, name); else fillCell(element, cell, view, off.has(cell));
  });
  view.line.textContent = inWords(view, view.at, off.has(view.at));
}

function nameLine(element, name) {
  put(element, "class", "fx-name");
  put(element, "aria-hidden", "true");
  putText(element, String(name));
}

function fillCell(element, cell, view, isOff) {
  const value = view.arrays.divergence.data[cell], colour = signedColour(value, view.end, view.look);
  put(element, "class", `fx-cell${isOff ? " fx-off" : ""}`);
  put(element, "role", "option");
  put(element, "data-cell", String(cell));
  put(element, "aria-selected", String(isOff));
  put(element, "aria-label", inWords(view, cell, isOff));
  put(element, "style", `background-color:${rgb(colour)};color:${inkOn(colour)}`);
  element.tabIndex = cell === view.at ? 0 : -1;
  putText(element, value.toFixed(2));
}

function inWords(view, cell, isOff) {
  const [layer, head] = where(view, cell), { divergence, after } = view.arrays;
  const first = view.first[cell] === view.answer ? "" : `, ${quoted(view.first[cell])} comes first`;
  return `Layer ${layer}, head ${head}${isOff ? " (switched off now)" : ""}: ${readNumber(divergence.data[cell])} nats; `
    + `${quoted(view.answer)} ${percent(view.before)} → ${percent(after.data[cell])}${first}`;
}

function listen(view) {
  const { grid } = view, at = (event) => Number(event.target.closest(".fx-cell")?.dataset.cell ?? NaN);
  grid.onpointerover = (event) => { if (!Number.isNaN(at(event))) view.line.textContent = inWords(view, at(event), offNow(view).has(at(event))); };
  grid.onpointerleave = () => { view.line.textContent = inWords(view, view.at, offNow(view).has(view.at)); };
  grid.onclick = (event) => { if (!Number.isNaN(at(event))) { goTo(view, at(event)); toggle(view, view.at); } };
  grid.onkeydown = (event) => {
    if (Number.isNaN(at(event))) return;
    const to = stepFrom(view, at(event), plainKey(event));
    if (to !== undefined) goTo(view, to);
    else if (event.key === " " || event.key === "Enter") toggle(view, at(event));
    else return;
    event.preventDefault();
  };
}

// The cell where an arrow leads, the same one at an edge; undefined for other keys.
function stepFrom({ layers, heads }, cell, key) {
  const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[key];
  if (!step) return undefined;
  const within = (n, count) => Math.max(0, Math.min(count - 1, n));
  return within(Math.floor(cell / heads) + step[0], layers) * heads + within((cell % heads) + step[1], heads);
}

function goTo(view, cell) {
  view.at = view.grid.__bwAt = cell;
  drawCells(view);
  view.grid.querySelector(`[data-cell="${cell}"]`).focus({ preventScroll: true });
}

function toggle(view, cell) {
  const off = offNow(view);
  if (!off.delete(cell)) off.add(cell);
  const heads = [...off].sort((a, b) => a - b);
  if (isFixed(view.component)) return;
  noteChoice(view.grid, heads);
  send(view.component, { heads });
  drawCells(view);
}
