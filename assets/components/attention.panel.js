// Beside the pictures: the controls, the open head's card, the lit token's weights, the tables.

// [key of HeadNumbers, what it says, unit]; the order of the payload's numbers.
function cardRows(data) {
  const { "[CLS]": first = "[CLS]", "[SEP]": separator = "[SEP]" } = data.called;
  return [
    ["entropy", "Entropy", "nats"], ["distance", "Mean distance", "tokens"],
    ["cls", `On ${first}`, "share"], ["sep", `On ${separator}`, "share"],
    ["previous", "On the token before", "share"], ["following", "On the token after", "share"], ["itself", "On itself", "share"],
  ];
}

const SPECIALS_SAY = {
  show: "shown as any token", hide: "hidden: weights as they are, so rows sum to less than 1",
  renormalise: "hidden and rows rescaled to 1: not what the model used",
};

function saySpecials(data, how) {
  const names = [...new Set(Object.values(data.called))];
  return names.length ? `${names.join(" and ")} ${SPECIALS_SAY[how]}` : "This input has no special tokens";
}

// Shares of a special token that the model has none of are NaN.
const NONE = "none";

function exactly(p) { return p > 0 && p < 0.00005 ? "<0.0001" : p.toFixed(4); }

// --- controls --------------------------------------------------------------------

function drawControls(view, parent) {
  const { look, data } = view;
  const set = (field, value) => { look[field] = value; view.draw(); view.tellView(); };
  segmented(parent, "att-draw", "Drawn as", [["lines", "Lines"], ["map", "Map"]], drawKind(view), (v) => set("draw", v));
  select(parent, "att-words", "Rows and columns", [["", "Word pieces"], ["words", "Whole words"]],
    look.words ? "words" : "", (v) => set("words", v === "words"), "Words: columns of their pieces summed, rows averaged");
  select(parent, "att-specials", "Special tokens", [["show", "Shown"], ["hide", "Hidden"],
    ["renormalise", "Hidden, rescaled"]], look.specials, (v) => set("specials", v), saySpecials(data, look.specials));
  const segments = select(parent, "att-segments", "Sentences", [["all", "All"], ["aa", "A to A"], ["ab", "A to B"],
    ["ba", "B to A"], ["bb", "B to B"]], look.segments, (v) => set("segments", v));
  segments.hidden = !data.segments.includes(1) && look.segments === "all";
  select(parent, "att-top", "Strongest per row", [["0", "All"], ...STRONGEST.map((n) => [String(n), String(n)])],
    String(look.top), (v) => set("top", Number(v)));
  range(parent, "att-min", "At least", 0, LEAST, Math.round(100 * look.min), (v) => `${v} %`, (v) => set("min", v / 100));
}

function field(parent, name, label, tag) {
  const box = child(parent, "label", name);
  if (!box.firstChild) box.append(make("span", "att-label", label), make(tag));
  return [box, box.lastChild];
}

function select(parent, name, label, options, value, onChange, help = "") {
  const [box, input] = field(parent, name, label, "select");
  if (!input.options.length) options.forEach(([key, text]) => input.append(make("option", "", text, { value: key })));
  if (help) box.title = help;
  input.value = value;
  input.onchange = () => onChange(input.value);
  return box;
}

function range(parent, name, label, low, high, value, say, onChange) {
  const [box, input] = field(parent, name, label, "input");
  Object.assign(input, { type: "range", min: low, max: high, step: 1, value });
  box.firstChild.textContent = `${label} ${say(value)}`;
  input.oninput = () => onChange(Number(input.value));
  return box;
}

function segmented(parent, name, label, options, value, onChange) {
  const box = child(parent, "div", name, { role: "group", "aria-label": label });
  box.classList.add("att-group");
  if (!box.firstChild) options.forEach(([key, text]) => box.append(make("button", "", text, { type: "button", "data-value": key })));
  for (const button of box.children) {
    button.setAttribute("aria-pressed", String(button.dataset.value === value));
    button.onclick = () => onChange(button.dataset.value);
  }
  return box;
}

// --- layers and heads in turn -----------------------------------------------------------

function drawScrub(view, parent) {
  const { layers, heads } = view.data;
  range(parent, "att-layer", "Layer", 1, layers, view.layer + 1, (v) => `${v} of ${layers}`, (v) => openHead(view, v - 1, view.head));
  range(parent, "att-which", "Head", 1, heads, view.head + 1, (v) => `${v} of ${heads}`, (v) => openHead(view, view.layer, v - 1));
  const play = child(parent, "button", "att-play", { type: "button" });
  play.textContent = view.tour ? "❚❚ Pause" : wantsStill() ? "▶ Next head" : "▶ Play";
  play.title = wantsStill() ? "Opens the next head" : "Opens every head in turn";
  play.onclick = () => (view.tour ? stopTour(view) : startTour(view));
}

function startTour(view) {
  const next = () => {
    if (!view.root.isConnected) return stopTour(view);
    const { layers, heads } = view.data, place = (view.layer * heads + view.head + 1) % (layers * heads);
    openHead(view, Math.floor(place / heads), place % heads);
    return undefined;
  };
  if (!wantsStill()) view.tour = setInterval(next, 900);
  next();
}

function stopTour(view) {
  clearInterval(view.tour);
  view.tour = null;
  if (view.root.isConnected) view.draw();
}

// --- the open head's card ------------------------------------------------------------

function drawCard(view, parent) {
  const { numbers } = view.data.arrays, count = view.data.layers * view.data.heads;
  const at = view.layer * view.data.heads + view.head;
  parent.replaceChildren(make("h2", "att-card-title", `Layer ${view.layer + 1}, head ${view.head + 1}`));
  if (view.data.roles) parent.append(make("p", "att-role", view.data.roles[at]));
  const list = make("dl"), { places } = view.data;
  list.classList.toggle("att-two", Boolean(places));
  if (places) list.append(cardLine("", ["this text", `${places.read} sentences`], make("span")));
  cardRows(view.data).forEach(([key, title, unit], row) => {
    const values = numbers.data.subarray(row * count, (row + 1) * count), value = values[at];
    const both = places ? [value, view.data.arrays.means.data[row * count + at]] : [value];
    const word = unit === "share" ? "" : ` ${unit}`;
    const shown = both.map((number) => sayNumber(number, unit) + (places || Number.isNaN(number) ? "" : word));
    const line = cardLine(places && word ? `${title},${word}` : title, shown, Number.isNaN(value) ? "" : rankMeter(values, value, count));
    line.dataset.number = key;
    list.append(line);
  });
  parent.append(list, make("p", "att-quiet", "The dot: where this head stands among all heads, lowest to highest, on this text."));
  if (places) drawPlaces(view, parent);
}

function sayNumber(value, unit) {
  return Number.isNaN(value) ? NONE : unit === "share" ? percent(value) : value.toFixed(2);
}

function cardLine(title, numbers, rank) {
  const line = make("div"), place = make("dd", "att-place");
  place.append(rank);
  line.append(make("dt", "", title), ...numbers.map((number) => make("dd", "", number)), place);
  return line;
}

// Where a value stands among those of all heads.
function rankMeter(values, value, count) {
  const below = values.reduce((sum, other) => sum + (other < value), 0), says = `higher than ${below} of the other ${count - 1} heads`;
  const meter = make("span", "att-rank", "", { role: "img", "aria-label": says, title: says });
  meter.style.setProperty("--at", `${(100 * below) / Math.max(count - 1, 1)}%`);
  return meter;
}

// --- the lit token's exact weights -----------------------------------------------------

function drawDetails(view, parent) {
  const { items } = currentMaps(view)[0], focus = focusOf(view);
  writeDetails(view, parent);
  sayPlace(view.canvas.element, focus?.item ?? 0, items.length, parent.querySelector(".att-says").textContent);
}

function writeDetails(view, parent) {
  const maps = currentMaps(view), map = maps[0], focus = focusOf(view);
  const says = child(parent, "p", "att-says");
  const lists = child(parent, "div", "att-lists");
  const exact = map.exact ? "" : view.data.standalone ? " Thumbnail only: this file has the exact numbers of another layer." :
    " Thumbnail only; the exact layer is on its way.";
  const pinned = view.token !== null && !view.hover;
  if (!focus) {
    putText(says, `Point at a token, or use the arrow keys, to see its exact weights in both directions.${exact}`);
    lists.replaceChildren(strongestPairs(map));
    return;
  }
  const { items, n, values } = map, item = items[focus.item];
  const looks = Array.from({ length: n }, (_, k) => [k, values[focus.item * n + k]]);
  const seen = Array.from({ length: n }, (_, q) => [q, values[q * n + focus.item]]);
  const pair = focus.other === undefined ? "" :
    ` From “${named(items, focus.item)}” to “${named(items, focus.other)}”: ${exactly(values[focus.item * n + focus.other])}.`;
  const most = [...(focus.side === "to" ? seen : looks)].sort((one, other) => other[1] - one[1]).slice(0, 2).filter(([, p]) => p > 0);
  const best = pair || !most.length ? "" : ` Most ${focus.side === "to" ? "from" : "at"} ${most.map(([k, p]) => `“${named(items, k)}” ${exactly(p)}`).join(", ")}.`;
  putText(says, `“${item.text}”, position ${item.pieces[0]}${pinned ? ", pinned" : ""}.${pair}${best}${exact}`);
  lists.replaceChildren(weightList("looks at", looks, items, "from"), weightList("is looked at by", seen, items, "to"));
}

// What a row or column is called where its place in the picture doesn't tell it from another.
function named(items, i) { return nameAmong(items.map((item) => item.text), i, items[i].pieces[0]); }

// With no token lit: the largest weights of the map as it is shown.
function strongestPairs({ items, n, values }) {
  const best = [];
  for (let i = 0; i < n * n; i++) {
    if (best.length === 6 && values[i] <= best[5][1]) continue;
    best.push([i, values[i]]);
    best.sort((a, b) => b[1] - a[1]);
    best.length = Math.min(best.length, 6);
  }
  const box = make("div", "att-list att-wide"), list = make("ol");
  for (const [i, p] of best) if (p > 0) list.append(weightLine(arrow(named(items, Math.floor(i / n)), named(items, i % n)), p, i));
  box.append(make("h3", "", "Strongest pairs of this head"), list);
  return box;
}

function weightLine(text, p, position) {
  const line = make("li", "", "", { "data-position": position, "data-weight": p }), bar = make("span", "att-bar");
  bar.style.setProperty("--p", `${100 * Math.min(1, p)}%`);
  line.append(make("span", "att-token", text), bar, make("span", "att-number", exactly(p)));
  return line;
}

function weightList(title, pairs, items, side) {
  const box = make("div", `att-list att-${side}`);
  const total = pairs.reduce((sum, [, p]) => sum + p, 0);
  box.append(make("h3", "", title), make("p", "att-quiet", `sum ${total.toFixed(3)}`));
  const list = make("ol");
  for (const [i, p] of pairs.sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, 6)) {
    if (p > 0) list.append(weightLine(named(items, i), p, items[i].pieces[0]));
  }
  box.append(list);
  return box;
}

// --- tables ------------------------------------------------------------------------

function drawTables(view, gridBox, headBox) {
  const { layers, heads, arrays } = view.data, count = layers * heads;
  const rows = cardRows(view.data), act = view.data.mode === "act";
  numbersTable(gridBox, "Every head on this text", ["head", ...(act ? ["switched off"] : []), ...rows.map(([, title, unit]) => `${title} (${unit})`)],
    () => Array.from({ length: count }, (_, i) => [`${Math.floor(i / heads) + 1}-${(i % heads) + 1}`, ...(act ? [view.off.has(i) ? "yes" : "no"] : []),
      ...rows.map((_, row) => arrays.numbers.data[row * count + i]).map((value) => (Number.isNaN(value) ? NONE : value))]));
  const map = currentMaps(view)[0], { items, n, values } = map;
  const name = `Attention of layer ${view.layer + 1}, head ${view.head + 1}, as shown`;
  if (n <= 64) {
    numbersTable(headBox, `${name}: from rows to columns`, ["from \\ to", ...items.map((_, i) => named(items, i))],
      () => items.map((_, q) => [named(items, q), ...Array.from(values.subarray(q * n, (q + 1) * n), inTable)]));
    return;
  }
  const at = focusOf(view)?.item ?? 0;
  numbersTable(headBox, `${name}: “${items[at].text}” and every token; other tokens when lit, all of them under Export`,
    ["token", "position", "it looks at", "it is looked at by"],
    () => items.map((item, i) => [item.text, item.pieces[0], inTable(values[at * n + i]), inTable(values[i * n + at])]));
}
