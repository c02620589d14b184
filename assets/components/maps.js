// Maps of one quantity side by side: rows by columns, one shared cursor, a line
// that reads the cell out, and the numbers as a table. Hover, click or arrows; `at`
// is the cell that is read first, where the corner says nothing.
export default function (component) {
  const { parentElement, data } = component;
  const state = unpack(data);
  const panels = child(child(parentElement, "div", "bw-panelbox"), "div", "bw-panels");
  const readout = parentElement.querySelector(".bw-readout") ?? child(parentElement, "p", "bw-readout"); // it may stand in the profile
  const cursor = (parentElement.__bwCursor ??= { r: state.at?.[0] ?? 0, c: state.at?.[1] ?? 0 });
  const rows = state.rows.length, columns = state.columns.length;
  cursor.r = Math.min(cursor.r, rows - 1);
  cursor.c = Math.min(cursor.c, columns - 1);

  const draw = () => keepFocus(panels, () => {
    const look = theme(parentElement);
    if (state.ticks) panels.style.setProperty("--names", `${widest([...state.ticks, ...(state.column_ticks ?? [])], look)}px`);
    panels.replaceChildren(...state.panels.map((panel) => mapPanel(panel, state, look, cursor, move)));
    if (hasProfile(state)) panels.append(profileBox(state, readout, move, cursor));
    for (const frame of panels.querySelectorAll(".bw-ticked")) mapTicks(frame, state);
    read();
  });
  const read = () => {
    for (const mark of panels.querySelectorAll(".bw-cursor")) placeCursor(mark, cursor, rows, columns);
    readout.textContent = rows === 0 ? "" : `${state.row_word} ${state.rows[cursor.r]}, ${state.column_word} ${state.columns[cursor.c]}: `
      + state.panels.map((p) => `${p.title.toLowerCase()} ${readNumber(cell(state, p, cursor.r, cursor.c))}`).join(", ");
    const profile = panels.querySelector(".bw-profile");
    if (profile) readProfile(profile, state, cursor);
    for (const map of panels.querySelectorAll("canvas")) {
      sayPlace(map, cursor.r * columns + cursor.c, rows * columns, readout.textContent);
    }
  };
  const move = (r, c) => {
    const left = cursor.r;
    cursor.r = Math.max(0, Math.min(rows - 1, r));
    cursor.c = Math.max(0, Math.min(columns - 1, c));
    read();
    if (cursor.r !== left && !isWhole(state)) fillTable();
  };
  draw();
  onWidthChange(panels, draw);
  const fillTable = mapTable(parentElement, state, cursor);
  onThemeChange(parentElement, draw);
}

// Of a symmetric map only the lower triangle may come (panel.triangle): as exact in half the bytes.
function cell(state, panel, r, c) {
  const [low, high] = r < c ? [r, c] : [c, r];
  const at = panel.triangle ? (high * (high + 1)) / 2 + low : r * state.columns.length + c;
  return state.arrays[panel.name].data[at] * (panel.scale ?? 1);
}

function mapPanel(panel, state, look, cursor, move) {
  const box = make("figure", "bw-panel");
  const title = make("figcaption", "", panel.title);
  title.appendChild(make("span", "bw-axes", `${state.row_word} ↓  ${state.column_word} →`));
  box.appendChild(title);
  const frame = make("div", "bw-frame");
  box.appendChild(frame);
  const rows = state.rows.length, columns = state.columns.length;
  if (rows === 0) return box;
  const width = state.size, height = Math.round(width * Math.min(1, Math.max(0.2, rows / columns))); // a text against a word too
  const { element, context } = canvas(frame, "bw-map", width, height,
    `${panel.title}: ${rows} rows (${state.row_word}) by ${columns} columns (${state.column_word}); arrow keys read the cells`);
  element.style.height = "auto";
  drawMap(context, 0, 0, width, height, rows, columns, (r, c) => {
    const value = cell(state, panel, r, c);
    const from = panel.low ?? 0; // above 0, a map's own least value may be where its colours begin
    return panel.signed ? signedColour(value - from, panel.limit - from, look) : probabilityColour(value, look);
  });
  frame.appendChild(make("span", "bw-cursor"));
  frame.classList.add("bw-ticked");
  frame.classList.toggle("bw-worded", state.ticks !== undefined);
  const at = (event) => {
    const place = element.getBoundingClientRect();
    move(Math.floor(((event.clientY - place.top) / place.height) * rows),
      Math.floor(((event.clientX - place.left) / place.width) * columns));
  };
  element.onpointermove = at;
  element.onclick = at;
  element.onkeydown = (event) => {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[plainKey(event)];
    if (!step) return;
    event.preventDefault();
    move(cursor.r + step[0], cursor.c + step[1]);
  };
  box.appendChild(colourScale(look, panel.signed ? panel.limit : null, panel.low ?? null));
  return box;
}

// Pixels that the longest name takes in the largest type of the names: no more room than that is kept for them.
function widest(names, look) {
  const context = make("canvas").getContext("2d");
  context.font = `${15.3 * typeScale()}px ${look.font}`;
  return Math.ceil(Math.max(0, ...names.map((name) => context.measureText(name).width)));
}

// Names along the top and the left: of every line where they fit, else of every second, fourth, and so on. A profile
// has numbers of its own along the left.
function mapTicks(frame, state) {
  const sides = [["top", state.column_ticks ?? state.ticks ?? state.columns], ["left", state.ticks ?? state.rows]];
  for (const [side, names] of frame.closest(".bw-profile") ? sides.slice(0, 1) : sides) {
    const pitch = frame.clientWidth / names.length, room = (state.ticks ? 13.5 : 40) * typeScale(); // a line of type, or a number
    const every = state.ticks ? Math.ceil(room / pitch) : 2 ** Math.ceil(Math.log2(Math.max(1, room / pitch)));
    const axis = make("span", `bw-ticks bw-ticks-${side}`, "", { "aria-hidden": "true" });
    axis.style.fontSize = `${Math.min(15.3 * typeScale(), Math.max(12.5 * typeScale(), 0.87 * pitch * every))}px`;
    for (let n = 0; n < names.length; n += every) {
      const tick = make("span", "", String(names[n]));
      tick.style[side === "top" ? "left" : "top"] = `${(100 * (n + 0.5)) / names.length}%`;
      axis.appendChild(tick);
    }
    frame.appendChild(axis);
  }
}

function placeCursor(mark, cursor, rows, columns) {
  mark.style.left = `${(100 * cursor.c) / columns}%`;
  mark.style.top = `${(100 * cursor.r) / rows}%`;
  mark.style.width = `${100 / columns}%`;
  mark.style.height = `${100 / rows}%`;
}

// The table holds each panel's whole matrix up to 64 columns; beyond, the cursor's row.
function isWhole(state) { return state.columns.length <= 64; }

function mapTable(parent, state, cursor) {
  const small = isWhole(state);
  return numbersTable(parent, small ? state.caption : `${state.caption}, the row under the cursor`,
    ["map", state.row_word, ...state.columns], () => state.panels.flatMap((panel) =>
      (small ? state.rows.map((_, r) => r) : [cursor.r]).map((r) =>
        [panel.title, state.rows[r], ...state.columns.map((_, c) => cell(state, panel, r, c))])));
}
