// Entities drawn on the text; a word opens the probabilities of its pieces while
// it is pointed at, and for good once it is clicked (Enter): sends {token: its
// first piece}. One tab stop; arrows move from word to word.

export default function (component) {
  const { parentElement, data } = component;
  const payload = unpack(data);
  const root = child(parentElement, "div", "bw-entities");
  const text = child(root, "div", "bw-text", { role: "toolbar", "aria-label": payload.label });
  const panel = child(root, "div", "bw-panel");
  const draw = () => keepFocus(text, () => {
    const look = theme(parentElement);
    text.replaceChildren(...pieces(payload, look));
    const words = [...text.querySelectorAll(".bw-word")];
    const first = payload.open ?? Math.max(0, payload.words.findIndex((w) => w.entity));
    const rest = () => openWord(panel, payload, first, words, look);
    words.forEach((word, n) => {
      word.tabIndex = n === (payload.open ?? 0) ? 0 : -1;
      word.setAttribute("aria-pressed", String(n === payload.open));
      word.onfocus = word.onpointerenter = () => openWord(panel, payload, n, words, look);
      word.onclick = () => send(component, { token: payload.words[n].pieces[0] });
    });
    text.onpointerleave = () => { if (payload.open !== null && words.length) rest(); };
    if (words.length) rest();
    else panel.replaceChildren();
  });
  draw();
  text.onkeydown = (event) => moveWord(event, text);
  numbersTable(root, "Probability of every label for every token", ["token", ...payload.labels],
    () => payload.tokens.map((token, t) => [`${t + 1} ${token}`, ...payload.labels.map((_, l) => probability(payload, t, l))]));
  onThemeChange(parentElement, draw);
}

function probability({ arrays, labels }, token, label) { return arrays.probs.data[token * labels.length + label]; }

// The text in code points: plain stretches, words, and words within entities.
function pieces(payload, look) {
  const letters = Array.from(payload.text), out = [];
  let at = 0, box = null, boxEnd = -1;
  payload.words.forEach((word) => {
    const gap = letters.slice(at, word.start).join("");
    if (box && word.start >= boxEnd) box = null;
    (box ?? { append: (x) => out.push(x) }).append(document.createTextNode(gap));
    const entity = payload.entities.find((e) => e.start <= word.start && word.start < e.end);
    if (entity && !box) {
      box = entityBox(entity, payload.types, look);
      boxEnd = entity.end;
      out.push(box);
    }
    const text = letters.slice(word.start, word.end).join("");
    const span = make("span", "bw-word", text, { role: "button", "aria-label": `${text}, ${labelOf(payload, word)}` });
    if (box) box.append(span); else out.push(span);
    at = word.end;
  });
  out.push(document.createTextNode(letters.slice(at).join("")));
  for (const node of out) if (node.classList?.contains("bw-entity")) node.append(node.querySelector(".bw-tag"));
  return out;
}

function entityBox(entity, types, look) {
  const colour = parseColour(kindColour(Math.max(0, types.indexOf(entity.label)), look));
  const box = make("span", "bw-entity", "", { "data-label": entity.label, "data-start": entity.start, "data-end": entity.end });
  box.style.background = rgb(colour, 0.18);
  box.style.borderColor = rgb(colour);
  box.append(make("span", "bw-tag", `${entity.label} ${percent(entity.score)}`));
  return box;
}

function openWord(panel, payload, n, words, look) {
  words.forEach((word, m) => word.classList.toggle("bw-open", m === n));
  const word = payload.words[n];
  const order = payload.labels.map((_, l) => l).sort((a, b) => best(payload, word, b) - best(payload, word, a)).slice(0, 5);
  const table = make("table", "bw-pieces");
  const said = word.pieces.length > 1 ? `${quoted(word.text)} is ${word.pieces.length} pieces; ${payload.rule}` : `${quoted(word.text)} is one piece`;
  table.appendChild(make("caption", "", `${said}; its label: ${word.label}`));
  const head = table.createTHead().insertRow();
  head.appendChild(make("th", "", "piece", { scope: "col" }));
  for (const l of order) head.appendChild(make("th", "", payload.labels[l], { scope: "col" }));
  const body = table.createTBody();
  for (const t of word.pieces) {
    const row = body.insertRow();
    row.appendChild(make("th", "", payload.tokens[t], { scope: "row" }));
    for (const l of order) {
      const value = probability(payload, t, l), colour = probabilityColour(value, look);
      const cell = row.appendChild(make("td", "", percent(value)));
      cell.style.background = rgb(colour);
      cell.style.color = inkOn(colour);
    }
  }
  panel.replaceChildren(table);
}

// Its label and how sure that is: who goes from word to word hears it, and finds the rest in the panel's table.
function labelOf(payload, word) {
  return `${word.label} ${percent(best(payload, word, payload.labels.indexOf(word.label)))}`;
}

function best(payload, word, label) { return Math.max(...word.pieces.map((t) => probability(payload, t, label))); }

function moveWord(event, text) {
  const words = [...text.querySelectorAll(".bw-word")];
  const n = words.indexOf(event.target), last = words.length - 1;
  if (n >= 0 && (event.key === "Enter" || event.key === " ")) { event.preventDefault(); words[n].click(); return; }
  const to = { ArrowRight: n + 1, ArrowLeft: n - 1, Home: 0, End: last }[plainKey(event)];
  if (to === undefined || n < 0) return;
  event.preventDefault();
  words.forEach((word) => { word.tabIndex = -1; });
  const next = words[Math.max(0, Math.min(last, to))];
  next.tabIndex = 0;
  next.focus();
}
