// Several accounts of one answer on one strip: a column a token, a cell an
// account. Signed accounts are blue to red about 0, attention is the one-hue ramp.
// One tab stop; arrows move; the line below says the focused column in words.
export default function (component) {
  const { parentElement, data } = component;
  const payload = unpack(data);
  const root = child(parentElement, "div", "bw-influence");
  const strip = child(root, "div", "bw-strip", { role: "listbox", "aria-label": payload.label });
  const line = child(root, "p", "bw-says"); // the column's name says the same
  const draw = () => keepFocus(strip, () => drawStrip(strip, line, payload, theme(parentElement)));
  draw();
  strip.onkeydown = (event) => moveFocus(event, strip);
  numbersTable(root, payload.label, ["token", ...payload.rows.map((row) => row.name)],
    () => payload.tokens.map((token, t) => [`${t} ${token.t}`, ...payload.rows.map((_, r) => valueAt(payload, r, t))]));
  onThemeChange(parentElement, draw);
}

function valueAt({ arrays, tokens }, row, token) { return arrays.values.data[row * tokens.length + token]; }

function drawStrip(strip, line, payload, look) {
  const legend = make("div", "bw-legend", "", { "aria-hidden": "true" });
  legend.append(make("span", "bw-column-token", "\u00a0"), ...payload.rows.map((row) => make("span", "bw-cell", row.name)));
  const columns = payload.tokens.map((token, t) => drawColumn(payload, t, look));
  columns.forEach((column, t) => {
    column.tabIndex = t === 0 ? 0 : -1;
    column.setAttribute("aria-selected", String(t === 0));
    column.onfocus = column.onpointerenter = () => { line.textContent = sentence(payload, t); };
  });
  strip.replaceChildren(legend, ...columns);
  line.textContent = payload.mark === null ? payload.hint : sentence(payload, payload.mark);
}

function drawColumn(payload, t, look) {
  const { t: text, k: kind } = payload.tokens[t];
  const column = make("div", `bw-column bw-is-${kind}${payload.mark === t ? " bw-marked" : ""}`, "", {
    role: "option", "aria-label": sentence(payload, t),
  });
  column.appendChild(make("span", "bw-column-token", text));
  payload.rows.forEach((row, r) => {
    const value = valueAt(payload, r, t);
    const cell = make("span", "bw-cell", shown(row, value));
    const colour = row.signed ? signedColour(value, row.limit, look) : probabilityColour(value, look);
    cell.style.background = rgb(colour);
    cell.style.color = inkOn(colour);
    column.appendChild(cell);
  });
  return column;
}

function shown(row, value) {
  if (!row.signed) return percent(value);
  const size = Math.abs(value).toFixed(2);
  return Number(size) === 0 ? size : `${value < 0 ? "−" : "+"}${size}`;
}

function sentence(payload, t) {
  const parts = payload.rows.map((row, r) => `${row.name} ${shown(row, valueAt(payload, r, t))}`);
  const text = payload.tokens[t].t, again = payload.tokens.some((other, n) => n !== t && other.t === text);
  return `${quoted(text)}${again ? ` (${t})` : ""}: ${parts.join(", ")}`;
}

function moveFocus(event, strip) {
  const columns = [...strip.querySelectorAll(".bw-column")];
  const n = columns.indexOf(event.target), last = columns.length - 1;
  const to = { ArrowRight: n + 1, ArrowLeft: n - 1, Home: 0, End: last }[plainKey(event)];
  if (to === undefined || n < 0) return;
  event.preventDefault();
  const next = columns[Math.max(0, Math.min(last, to))];
  for (const column of columns) {
    column.tabIndex = column === next ? 0 : -1;
    column.setAttribute("aria-selected", String(column === next));
  }
  next.focus();
}
