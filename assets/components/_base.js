// Shared by every component: payloads, theme, colour ramps, canvases, tables; _base.chips.js has the token chips.
// Plain functions; a component's own file follows and exports.

// --- payloads ----------------------------------------------------------------

const VIEWS = {
  uint8: Uint8Array, int8: Int8Array, uint16: Uint16Array, int16: Int16Array,
  uint32: Uint32Array, int32: Int32Array, float32: Float32Array,
};

// 4 bytes length, JSON header, arrays (ui/components.py: pack). Returns the
// header with `arrays`: name -> {shape, data}.
function unpack(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = view.getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const arrays = {};
  for (const [name, dtype, shape, offset, size] of header.arrays || []) {
    const start = 4 + length + offset;
    const copy = bytes.slice(start, start + size).buffer;
    arrays[name] = { shape, data: new VIEWS[dtype](copy) };
  }
  return { ...header, arrays };
}

// round(255 sqrt(p)) of a thumbnail and round(65535 sqrt(p)) of an open layer, back to a probability (docs/adr/0001).
function fromQuantised(q) { return (q / 255) ** 2; }
function fromQuantised16(q) { return (q / 65535) ** 2; }

// Tell Python: one message, handled by `on_event` of components.mount. A fixed picture says nothing.
function send(component, message) { if (!isFixed(component)) component.setTriggerValue("event", message); }

// Whether a teacher's link fixes this picture (presenter.js): it can be read and not changed.
function isFixed({ parentElement }) { return parentElement instanceof ShadowRoot && parentElement.host.hasAttribute("data-fixed"); }

// A choice is drawn at once and told. The answer to an older message must not undo it: the next choice would be made
// from what is no longer so. An answer that changes nothing never comes; after ANSWER_MS none is waited for.
const ANSWER_MS = 5000;

// Keep what is sent. place: an object that lasts, such as an element; of: what the choice is made from.
function noteChoice(place, choice, of = 0) { (place.__bwSent ??= []).push({ choice, of, at: Date.now() }); }

// What is chosen now: `given` by Python, or the last choice while it is not answered.
function chosenNow(place, given, of = 0) {
  let sent = (place.__bwSent ?? []).filter((one) => one.of === of && Date.now() - one.at < ANSWER_MS);
  if (String(given) !== place.__bwGiven) {
    const answered = sent.findIndex((one) => String(one.choice) === String(given));
    sent = answered < 0 ? [] : sent.slice(answered + 1); // none of these: it was chosen elsewhere
  }
  Object.assign(place, { __bwGiven: String(given), __bwSent: sent });
  return sent.at(-1)?.choice ?? given;
}

// --- elements ----------------------------------------------------------------

// The child of `parent` with this class, made once: the default export runs
// again on each change with the same parent.
function child(parent, tag, name, attributes = {}) {
  const first = name.split(" ")[0]; // ":scope >" finds nothing in a shadow root
  let element = [...parent.children].find((one) => one.classList.contains(first));
  if (!element) {
    element = document.createElement(tag);
    element.className = name;
    parent.appendChild(element);
  }
  for (const [key, value] of Object.entries(attributes)) put(element, key, value);
  return element;
}

// What a key says to a picture. With Alt, Ctrl or Meta it is the browser's: Alt and an arrow lead back and forward.
function plainKey(event) { return event.altKey || event.ctrlKey || event.metaKey ? "" : event.key; }

// Set a text or an attribute only if it changed: unchanged nodes are not painted again.
function putText(element, text) { if (element.textContent !== text) element.textContent = text; }
function put(element, name, value) {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

// Children of `parent`, one an item: existing ones are updated in place.
// build() makes an element, fill(element, item, index) writes an item into it.
function each(parent, items, build, fill) {
  while (parent.children.length > items.length) parent.lastChild.remove();
  items.forEach((item, n) => {
    const element = parent.children[n] ?? parent.appendChild(build());
    fill(element, item, n);
  });
}

function make(tag, name = "", text = "", attributes = {}) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== "") element.textContent = text;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

// Put other elements in `parent`, and give the focus back to what stands where the focused one stood.
function keepFocus(parent, redraw) {
  const stops = () => [...parent.querySelectorAll("button, canvas, [tabindex]")];
  const at = stops().indexOf(parent.getRootNode().activeElement);
  redraw();
  if (at >= 0) stops()[at]?.focus({ preventScroll: true });
}

// A line that is heard and not seen, whenever its words change; what was asked for just now comes a moment after its line.
const HEARD = "position:absolute; width:1px; height:1px; margin:0; overflow:hidden; clip-path:inset(50%)";
function hear(parent, words, isAsked = false) {
  const count = parent.children.length, line = child(parent, "p", "bw-heard", { role: "status", style: HEARD });
  if (isAsked && parent.children.length > count) setTimeout(putText, 300, line, words);
  else putText(line, words);
}

function svg(tag, attributes = {}, text = "") {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== "") element.textContent = text;
  return element;
}

// "The numbers as a table": a closed disclosure whose rows are built when it is
// opened. caption: text, or () => text; columns: names; rows: () => array of
// arrays (numbers are rounded). Returns what fills an open table again.
function numbersTable(parent, caption, columns, rows, shown = true) {
  const box = child(parent, "details", "bw-numbers");
  if (!box.firstChild) box.appendChild(make("summary", "", "The numbers as a table"));
  box.hidden = !shown;
  const fill = () => {
    if (!box.open) { box.querySelector(".bw-scroll")?.remove(); return; }
    const table = make("table"), title = typeof caption === "function" ? caption() : caption;
    table.appendChild(make("caption", "", title));
    const head = table.createTHead().insertRow();
    for (const name of columns) head.appendChild(name ? make("th", "", name, { scope: "col" }) : make("td"));
    const body = table.createTBody();
    for (const row of rows()) {
      const line = body.insertRow();
      row.forEach((value, i) => {
        const cell = i === 0 ? make("th", "", "", { scope: "row" }) : make("td");
        cell.textContent = typeof value === "number" ? formatNumber(value) : value;
        line.appendChild(cell);
      });
    }
    child(box, "div", "bw-scroll", { tabindex: "0", role: "region", "aria-label": title }).replaceChildren(table);
  };
  box.ontoggle = fill;
  fill();
  return fill;
}

function formatNumber(value) {
  if (Number.isNaN(value)) return "–";
  if (Number.isInteger(value)) return String(value);
  const size = Math.abs(value);
  return size !== 0 && (size < 0.001 || size >= 1e5) ? value.toExponential(2) : value.toFixed(size < 1 ? 4 : 3);
}

// A weight that came in 16 bits, where it may be copied: no more places travelled; 0.0000 is little, 0 is nothing.
function inTable(p) { return Number.isInteger(p) ? p : p.toFixed(4); }

// The same to be read, not copied: a minus sign, and 0.00072 instead of 7.20e-4.
function readNumber(value) {
  const size = Math.abs(value), text = size < 0.001 && size >= 1e-6 ? value.toPrecision(2) : formatNumber(value);
  return text.replace("-", "−").replace("e-", "e−");
}

// "a → b" for texts of any direction: two right-to-left words would else change places about the arrow.
function arrow(from, to) { return `\u2068${from}\u2069 → \u2068${to}\u2069`; }

// A text that stands among others: in the same marks if its script runs from right to left.
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;
function isolate(text) { return RIGHT_TO_LEFT.test(text) ? `\u2068${text}\u2069` : text; }
function quoted(text) { return isolate(`“${text}”`); }

// One of many texts by name: with its position where another is written the same.
function nameAmong(texts, i, position = i) {
  return texts.indexOf(texts[i]) === texts.lastIndexOf(texts[i]) ? texts[i] : `${isolate(texts[i])} (${position})`;
}

// 0.0713 -> "7.1 %"; what is not certain is not rounded up to 100 %.
function percent(p) {
  if (p > 0 && p < 0.001) return "<0.1 %";
  if (p >= 0.9995 && p < 1 - 1e-6) return ">99.9 %";  // nearer to 1 is 1 but for the rounding of float32
  const close = p < 0.0995 || (p >= 0.995 && p < 0.9995);
  return `${(100 * p).toFixed(close ? 1 : 0)} %`;
}

// --- theme and colours -------------------------------------------------------

function cssValue(element, name) {
  const node = element instanceof ShadowRoot ? element.host : element;
  return getComputedStyle(node).getPropertyValue(name).trim();
}

function parseColour(text) {
  const hex = /^#([0-9a-f]{6})/i.exec(text);
  if (hex) return [0, 2, 4].map((i) => parseInt(hex[1].slice(i, i + 2), 16));
  const parts = text.match(/[\d.]+/g);
  return parts ? parts.slice(0, 3).map(Number) : [255, 255, 255];
}

// {dark, ink, paper, soft, line, primary, font}: the page's colours as [r, g, b]
// and its font for canvases; sets data-theme on the component so that tokens.css follows.
function theme(parent) {
  const host = parent instanceof ShadowRoot ? parent.host : parent, style = getComputedStyle(host);
  const read = (name) => parseColour(style.getPropertyValue(name).trim());
  const paper = read("--st-background-color");
  const dark = 0.299 * paper[0] + 0.587 * paper[1] + 0.114 * paper[2] < 128;
  put(host, "data-theme", dark ? "dark" : "light");
  return {
    dark, paper, ink: read("--st-text-color"), soft: read("--st-secondary-background-color"),
    line: read("--st-border-color"), primary: read("--st-primary-color"),
    font: style.getPropertyValue("--st-font").trim() || "sans-serif",
  };
}

// Call `draw` again when the element gets wider or narrower. Idempotent.
function onWidthChange(element, draw) {
  if (element.__bwResize) element.__bwResize.disconnect();
  let width = element.clientWidth;
  element.__bwResize = new ResizeObserver(() => {
    if (Math.abs(element.clientWidth - width) > 2) { width = element.clientWidth; draw(); }
  });
  element.__bwResize.observe(element);
}

// Call `draw` again when the visitor changes between light and dark, or looks at it on a screen of another
// sharpness (zoom, another monitor). Idempotent.
function onThemeChange(parent, draw) {
  const host = parent instanceof ShadowRoot ? parent.host : parent;
  const look = () => `${cssValue(host, "--st-background-color")}|${window.devicePixelRatio}`;
  host.__bwDraw = draw;
  if (host.__bwWatch) return;
  let last = look();
  host.__bwWatch = setInterval(() => {
    if (!host.isConnected) { clearInterval(host.__bwWatch); host.__bwWatch = null; return; }
    const now = look();
    if (now !== last) { last = now; host.__bwDraw(); }
  }, 1000);
}

// How much larger than usual the page's type is (presenter mode): for what a canvas writes.
function typeScale() { return Math.max(1, parseFloat(getComputedStyle(document.documentElement).fontSize) / 18 || 1); }

// Whether the visitor asked for no motion: what would play by itself goes a step at each press.
function wantsStill() { return matchMedia("(prefers-reduced-motion: reduce)").matches; }

function mix(a, b, t) { return a.map((x, i) => Math.round(x + (b[i] - x) * t)); }
function rgb(c, alpha = 1) { return alpha === 1 ? `rgb(${c.join(",")})` : `rgba(${c.join(",")},${alpha})`; }

// One meaning, one colour (Okabe-Ito); the same as bert_core/figures/theme.py.
const MEANING = {
  token: [0, 114, 178], segment: [230, 159, 0], position: [0, 158, 115],
  both: [0, 114, 178], oneway: [213, 94, 0], mask: [204, 121, 167],
  off: [214, 39, 60],
};

// Kinds that are only told apart, as theme.KINDS on a light and on a dark page.
const KINDS = {
  light: ["#A3123F", "#1E857D", "#5B3A16", "#6A5ACD", "#9A8AC8", "#6B8E23", "#1F2A5A", "#C97B69"],
  dark: ["#E8466F", "#8CEBE2", "#B5895C", "#8F8FFF", "#C9A8FF", "#86B32D", "#7585B0", "#FFC4B5"],
};
function kindColour(n, look) { return KINDS[look.dark ? "dark" : "light"][n % KINDS.light.length]; }

// Probability and attention: one hue, fixed 0 to 1, from the paper's colour.
// Through sqrt(p), so that 0.02 can be told from 0.
function probabilityColour(p, look) {
  const top = look.dark ? [126, 200, 246] : [0, 78, 130];
  return mix(look.paper, top, Math.sqrt(Math.min(1, Math.max(0, p))));
}

// Signed values: blue below 0, red above, paper at 0, symmetric about 0.
function signedColour(v, limit, look) {
  const t = Math.max(-1, Math.min(1, limit > 0 ? v / limit : 0));
  const end = t < 0 ? (look.dark ? [86, 160, 233] : [33, 102, 172]) : (look.dark ? [240, 110, 90] : [178, 24, 43]);
  return mix(look.paper, end, Math.abs(t) ** 0.8);
}

// A strip of the colours between the ends of a scale: probabilities 0 to 1, signed values about 0, or values from `low`.
function colourScale(look, limit = null, low = null) {
  const at = (t) => (limit === null ? probabilityColour(t, look)
    : low === null ? signedColour(2 * t - 1, 1, look) : signedColour(t, 1, look));
  const box = make("div", "bw-scale"), strip = make("span", "bw-ramp");
  strip.style.background = `linear-gradient(90deg, ${[0, 0.25, 0.5, 0.75, 1].map((t) => rgb(at(t))).join(",")})`;
  const ends = limit === null ? ["0", "1"] : [readNumber(low ?? -limit), readNumber(limit)];
  box.append(make("span", "", ends[0]), strip, make("span", "", ends[1]));
  return box;
}

// Ink that can be read on a colour: black or white, of which one always has a contrast of 4.5 or more.
function inkOn(colour) {
  return (luminance(colour) + 0.05) ** 2 > 1.05 * 0.05 ? "#000000" : "#FFFFFF";
}

// Relative luminance of an sRGB colour, 0 to 1 (WCAG 2.2).
function luminance(colour) {
  const [r, g, b] = colour.map((part) => (part / 255 <= 0.04045 ? part / 3294.6 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

// --- canvases ----------------------------------------------------------------

// A canvas of width x height CSS pixels (`stretch`: how much wider its style may make it), sharp on any screen. Keys lead
// through it: a slider. Screen readers keep the arrows of an image; an application Orca and iPhones pass over.
function canvas(parent, name, width, height, label, stretch = 1) {
  const says = { role: "slider", "aria-roledescription": "picture", "aria-label": label, tabindex: "0" };
  const element = child(parent, "canvas", name, says);
  if (!element.hasAttribute("aria-valuenow")) sayPlace(element, 0, 1, "");
  const ratio = Math.min((window.devicePixelRatio || 1) * stretch, 3);
  element.width = Math.round(width * ratio);
  element.height = Math.round(height * ratio);
  element.style.width = `${width}px`;
  element.style.height = `${height}px`;
  const context = element.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { element, context };
}

// Where the keys are in a picture: place `at` of `count`, and in words what is there, read out when it changes. Other words
// of the same place Orca reads out only where the number is another too: half a place more, and back.
function sayPlace(element, at, count, words) {
  const [before, said] = [Number(element.getAttribute("aria-valuenow") ?? -1), element.getAttribute("aria-valuetext")];
  const isThere = Math.floor(before) === at, isSaid = words === said;
  const place = { min: 0, max: count, now: isThere && (isSaid || before === at) ? before + (isSaid ? 0 : 0.5) : at, text: words };
  for (const [name, value] of Object.entries(place)) put(element, `aria-value${name}`, String(value));
}

// Fill a (rows, columns) map from `colour(row, column)` as one image, scaled by
// whole-cell rectangles (no smoothing).
function drawMap(context, x, y, width, height, rows, columns, colour) {
  const image = new ImageData(columns, rows);
  for (let r = 0; r < rows; r++) for (let c = 0; c < columns; c++) {
    const rgbValue = colour(r, c), at = 4 * (r * columns + c);
    if (rgbValue === null) continue;
    image.data[at] = rgbValue[0]; image.data[at + 1] = rgbValue[1]; image.data[at + 2] = rgbValue[2];
    image.data[at + 3] = 255;
  }
  const small = new OffscreenCanvas(columns, rows);
  small.getContext("2d").putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(small, x, y, width, height);
}
