// What is open and how it is shown, and the maps as they are shown. The same
// steps in the same order as shown_map in bert_core/measures/attention.py.

const SPECIAL_WAYS = ["show", "hide", "renormalise"];
const SEGMENT_WAYS = ["all", "aa", "ab", "ba", "bb"];
const STRONGEST = [1, 2, 3, 5, 10], LEAST = 50; // what the controls offer, in keys and per cent
const HEAD_COLOURS = [[0, 114, 178], [213, 94, 0], [0, 158, 115], [204, 121, 167], [230, 159, 0], [86, 180, 233]];

// 'map.words.hide.ab.t5.n3.h2-5': what differs from the start, in this order.
function readLook(text, heads) {
  const look = { draw: null, words: false, specials: "show", segments: "all", min: 0, top: 0, more: new Set() };
  for (const part of (text || "").slice(0, 200).split(".")) {
    const number = Number(part.slice(1));
    if (part === "map" || part === "lines") look.draw = part;
    else if (part === "words") look.words = true;
    else if (SPECIAL_WAYS.includes(part)) look.specials = part;
    else if (SEGMENT_WAYS.includes(part)) look.segments = part;
    else if (/^t\d{1,2}$/.test(part) && number <= LEAST) look.min = number / 100;
    else if (/^n\d{1,2}$/.test(part) && STRONGEST.includes(number)) look.top = number;
    else if (/^h\d+(-\d+)*$/.test(part)) part.slice(1).split("-").forEach((h) => h >= 1 && h <= heads && look.more.add(h - 1));
  }
  return look;
}

function writeLook(look) {
  return [
    look.draw, look.words && "words", look.specials !== "show" && look.specials,
    look.segments !== "all" && look.segments, look.min > 0 && `t${Math.round(100 * look.min)}`,
    look.top > 0 && `n${look.top}`,
    look.more.size > 0 && `h${inOrder(look.more).map((h) => h + 1).join("-")}`,
  ].filter(Boolean).join(".");
}

// The weights of one head as the Trace has them: (T*T), or a thumbnail blown up
// while the exact layer is on its way.
function rawMap(data, layer, head) {
  const length = data.tokens.length, slot = data.exact.indexOf(layer);
  if (slot >= 0) {
    const start = (slot * data.heads + head) * length * length;
    return { values: data.arrays.exact.data.subarray(start, start + length * length), exact: true };
  }
  const size = data.size, thumb = thumbnail(data, layer, head), values = new Float32Array(length * length);
  for (let q = 0; q < length; q++) for (let k = 0; k < length; k++) {
    values[q * length + k] = fromQuantised(thumb[Math.floor((q * size) / length) * size + Math.floor((k * size) / length)]);
  }
  return { values, exact: false };
}

function thumbnail(data, layer, head) {
  const area = data.size * data.size, start = (layer * data.heads + head) * area;
  return data.arrays.thumbs.data.subarray(start, start + area);
}

// Rows and columns of the picture: tokens, or words with their pieces.
function itemsOf(data, look) {
  if (!look.words) return data.tokens.map((text, i) => ({ text, pieces: [i] }));
  const items = [];
  data.words.forEach((word, i) => {
    if (items[word]) {
      items[word].text += data.tokens[i].replace(/^##/, "");
      items[word].pieces.push(i);
    } else items[word] = { text: data.tokens[i], pieces: [i] };
  });
  return items;
}

// {items, n, values (n*n), exact} of one head as it is shown.
function shownMap(data, look, layer, head) {
  const items = itemsOf(data, look), n = items.length, length = data.tokens.length;
  const raw = rawMap(data, layer, head);
  let values = Float32Array.from(raw.values);
  if (look.words) values = mergeWords(raw.values, length, items);
  const first = items.map((item) => item.pieces[0]);
  if (look.specials !== "show") hideSpecials(values, n, first.map((i) => data.special[i]), look.specials === "renormalise");
  if (look.segments !== "all") {
    const [from, to] = [...look.segments].map((side) => (side === "a" ? 0 : 1));
    keepWhere(values, n, (q, k) => data.segments[first[q]] === from && data.segments[first[k]] === to);
  }
  if (look.top > 0) keepStrongest(values, n, look.top);
  for (let i = 0; i < values.length; i++) if (values[i] < look.min) values[i] = 0;
  return { items, n, values, exact: raw.exact };
}

// Columns of a word's pieces are summed, rows averaged.
function mergeWords(values, length, items) {
  const n = items.length, merged = new Float32Array(n * n);
  items.forEach((query, q) => items.forEach((key, k) => {
    let sum = 0;
    for (const i of query.pieces) for (const j of key.pieces) sum += values[i * length + j];
    merged[q * n + k] = sum / query.pieces.length;
  }));
  return merged;
}

function hideSpecials(values, n, special, renormalise) {
  keepWhere(values, n, (q, k) => !special[q] && !special[k]);
  if (!renormalise) return;
  for (let q = 0; q < n; q++) {
    const row = values.subarray(q * n, (q + 1) * n), total = row.reduce((sum, p) => sum + p, 0);
    if (total > 0) for (let k = 0; k < n; k++) row[k] /= total;
  }
}

function keepWhere(values, n, test) {
  for (let q = 0; q < n; q++) for (let k = 0; k < n; k++) if (!test(q, k)) values[q * n + k] = 0;
}

function keepStrongest(values, n, top) {
  for (let q = 0; q < n; q++) {
    const row = values.subarray(q * n, (q + 1) * n);
    const order = [...row.keys()].sort((a, b) => row[b] - row[a] || a - b);
    for (const k of order.slice(top)) row[k] = 0;
  }
}

// The heads in the picture: the open one, and those added to it, in the order in which a link names them.
function headsShown(view) {
  return [view.head, ...inOrder(view.look.more).filter((h) => h !== view.head)].slice(0, HEAD_COLOURS.length);
}

function inOrder(heads) { return [...heads].sort((a, b) => a - b); }

// The maps of the picture, kept until something changes.
function currentMaps(view) {
  const key = [view.stamp, view.layer, view.data.exact.includes(view.layer), headsShown(view), writeLook(view.look)].join("|");
  if (view.mapsKey !== key) {
    view.mapsKey = key;
    view.maps = headsShown(view).map((head) => ({ head, ...shownMap(view.data, view.look, view.layer, head) }));
  }
  return view.maps;
}
