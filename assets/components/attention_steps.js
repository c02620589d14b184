// One query token through one head: q.k, scale, mask, softmax, weighted values,
// output projection; then the feed-forward part (attention_steps.neurons.js).
// Every column is the Trace's own; only q.k is summed here.

const STEPS = [
  ["q · k", "Multiply the query and each key, number by number, and add up."],
  ["÷ √Dh", "Divide by the root of the head's size, so that the softmax does not saturate."],
  ["mask", "Keys that this token may not see are taken out."],
  ["softmax", "e to the score, divided by the row's sum: weights that add up to 1."],
  ["Σ weight · v", "Mix the values of all tokens by these weights."],
  ["project", "The output projection turns the head's mix into a change of the token; all heads are added to it."],
  ["feed-forward", "From here on the token is alone: each neuron weighs its numbers and adds something to it; LayerNorm ends the layer."],
];
//: The step that needs the neurons; they are sent while it is open.
const NEURONS = 6;
//: What the address holds of this picture; key and neuron are null until one is chosen.
const PLACES = ["layer", "head", "token", "step", "key", "neuron"];

export default function (component) {
  const { parentElement, data } = component;
  const root = child(parentElement, "section", "steps-root", { "aria-label": "One head, step by step" });
  const view = root.view ?? (root.view = { root });
  Object.assign(view, { component, data: unpack(data) });
  const { layer, head, query, step, key = null, neuron = null, tokens } = view.data;
  const now = chosenNow(view, [layer, head, query, step, key, neuron], tokens.length);
  view.at = Object.fromEntries(PLACES.map((name, n) => [name, now[n]])); // asked for; the numbers are of view.data
  view.draw = () => drawSteps(view);
  view.draw();
  onThemeChange(parentElement, view.draw);
  onWidthChange(root, view.draw);
}

function strongest(values) { return values.reduce((best, p, i) => (p > values[best] ? i : best), 0); }

function tell(view, change) {
  Object.assign(view.at, change);
  if ("layer" in change) view.at.neuron = null; // its number means another one there
  noteChoice(view, PLACES.map((name) => view.at[name]), view.data.tokens.length);
  send(view.component, { ...view.at });
}

function drawSteps(view) {
  const { root, data } = view;
  view.paint = theme(root.getRootNode() instanceof ShadowRoot ? root.getRootNode() : root.parentElement);
  const neurons = [...(data.arrays.neurons?.data ?? [])];
  view.step = view.at.step === NEURONS && !neurons.length ? NEURONS - 1 : view.at.step; // until they are there
  view.key = view.at.key ?? strongest(data.arrays.weights.data);
  view.neuron = Math.max(0, neurons.indexOf(view.at.neuron));
  root.classList.toggle("steps-wide", root.clientWidth > 860);
  const chips = child(root, "div", "steps-chips");
  chipRow(chips, data.tokens.map((t, i) => ({ t, k: data.chips[i], v: view.step >= 3 && view.step < NEURONS ? data.arrays.weights.data[i] : undefined })), {
    select: "one", opens: true, selected: new Set([view.at.token]), label: "Query token: the one that looks",
    onSelect: (chosen, n) => tell(view, { token: n }),
  });
  boundRow(chips, ".bw-on");
  const bar = child(root, "div", "steps-controls");
  drawPickers(view, child(bar, "div", "steps-pickers"));
  drawStepper(view, child(bar, "div", "steps-stepper", { role: "group", "aria-label": "Steps" }));
  child(root, "p", "steps-says", { "aria-live": "polite" }).textContent = sentence(view);
  const label = view.step === NEURONS ? "The strongest neurons for this token" : "Every key, step by step";
  const table = child(root, "div", "steps-table", { tabindex: "0", role: "region", "aria-label": label });
  (view.step === NEURONS ? drawNeurons : drawTable)(view, table);
  drawOperands(view, child(root, "div", "steps-operands"));
}

function drawPickers(view, parent) {
  const { data, at } = view;
  for (const [name, label, count, value] of [["layer", "Layer", data.layers, at.layer], ["head", "Head", data.heads, at.head]]) {
    const box = child(parent, "label", `steps-${name}`);
    if (!box.firstChild) box.append(make("span"), make("input", "", "", { type: "range", min: 1, max: count, step: 1 }));
    box.classList.toggle("steps-unused", name === "head" && view.step === NEURONS);
    box.firstChild.textContent = `${label} ${value + 1} of ${count}`;
    box.lastChild.max = count;
    box.lastChild.value = value + 1;
    box.lastChild.onchange = (event) => tell(view, { [name]: Number(event.target.value) - 1 });
  }
}

function drawStepper(view, parent) {
  if (!parent.firstChild) STEPS.forEach(([title], i) => parent.append(make("button", "", `${i + 1}  ${title}`, { type: "button" })));
  [...parent.children].forEach((button, i) => {
    button.setAttribute("aria-pressed", String(i === view.at.step));
    button.onclick = () => { tell(view, { step: i }); view.draw(); };
  });
}

// The step in words, with this query's and key's numbers.
function sentence(view) {
  const { data, key, step } = view, a = data.arrays, f = readNumber;
  const to = quoted(nameAmong(data.tokens, key)), size = a.query.data.length;
  const numbers = [
    `q · k = ${f(a.dots.data[key])} for ${to}`,
    `${f(a.dots.data[key])} ÷ √${size} = ${f(a.scores.data[key])} for ${to}`,
    a.blocked.data[key] ? `${to} may not be seen: its score is taken out` : `${to} may be seen: its score stays`,
    `${to} gets ${f(a.weights.data[key])} of the attention`,
    `${to} gives ${f(a.weights.data[key])} times its value`,
    `this head's part has length ${f(a.norms.data[data.head])}`,
    step === NEURONS && neuronSentence(view),
  ];
  return `${STEPS[step][1]} ${step === NEURONS ? "For" : "From"} ${quoted(nameAmong(data.tokens, data.query))}: ${numbers[step]}.`;
}

const COLUMNS = [["q · k", "dots"], ["÷ √Dh", "scores"], ["mask", "blocked"], ["softmax", "weights"]];

function drawTable(view, parent) {
  const { data, step } = view, table = make("table");
  const head = table.createTHead().insertRow(), shown = COLUMNS.slice(0, Math.min(step, 3) + 1);
  head.append(make("th", "", "key", { scope: "col" }));
  shown.forEach(([title], i) => head.append(make("th", i === step ? "now" : "", title, { scope: "col" })));
  const limit = Math.max(...data.arrays.scores.data.map(Math.abs)), body = table.createTBody();
  data.tokens.forEach((_, i) => {
    const line = body.insertRow();
    line.className = i === view.key ? "on" : "";
    const pick = make("button", "", nameAmong(data.tokens, i), { type: "button", "aria-pressed": String(i === view.key) });
    pick.onclick = () => { tell(view, { key: i }); view.draw(); };
    const name = make("th", "", "", { scope: "row" });
    name.append(pick);
    line.append(name);
    for (const [, field] of shown) line.append(stepCell(view, field, i, limit));
  });
  const top = parent.scrollTop;
  keepFocus(parent, () => parent.replaceChildren(table));
  parent.scrollTop = top;
  showRow(parent, body.rows[view.key], table.tHead.offsetHeight);
}

// The table scrolls in itself: the row whose operands stand beside it is in sight.
function showRow(box, row, head) {
  if (row.offsetTop - head < box.scrollTop) box.scrollTop = row.offsetTop - head;
  else if (row.offsetTop + row.offsetHeight > box.scrollTop + box.clientHeight) box.scrollTop = row.offsetTop + row.offsetHeight - box.clientHeight;
}

function stepCell(view, field, i, limit) {
  const { data, paint } = view, value = data.arrays[field].data[i], cell = make("td", "", "", { "data-field": field });
  if (field === "blocked") {
    cell.textContent = value ? "✕ blocked" : readNumber(data.arrays.scores.data[i]);
    return cell;
  }
  cell.textContent = readNumber(value);
  const scale = field === "dots" ? limit * Math.sqrt(data.arrays.query.data.length) : limit;
  const colour = field === "weights" ? probabilityColour(value, paint) : signedColour(value, scale, paint);
  cell.style.background = rgb(colour);
  cell.style.color = inkOn(colour);
  return cell;
}

// --- operands ----------------------------------------------------------------

// Softmax over all keys: scores less the largest, e to that, and each divided by their sum.
function softmaxStrips({ arrays: a, tokens }, key) {
  const open = [...a.scores.data].map((score, i) => (a.blocked.data[i] ? -Infinity : score));
  const top = Math.max(...open), powers = open.map((score) => (top === -Infinity ? 0 : Math.exp(score - top)));
  const total = powers.reduce((sum, power) => sum + power, 0), f = readNumber;
  return [
    ["score of every key, less the largest", open.map((score) => (score === -Infinity ? 0 : score - top)), `largest ${f(top)}`],
    ["e to that; 0 where blocked", powers, `sum ${f(total)}`],
    ["each ÷ the sum: attention", a.weights.data, `${quoted(nameAmong(tokens, key))}: ${f(powers[key])} ÷ ${f(total)} = ${f(a.weights.data[key])}`],
  ];
}

// [title, numbers, note] of the strips that belong to a step.
function strips(view) {
  const { data, key, step } = view, a = data.arrays, size = a.query.data.length;
  if (step === NEURONS) return neuronStrips(view);
  const k = a.keys.data.subarray(key * size, (key + 1) * size), v = a.values.data.subarray(key * size, (key + 1) * size);
  const [token, query] = [key, data.query].map((i) => quoted(nameAmong(data.tokens, i)));
  if (step === 3) return softmaxStrips(data, key);
  if (step < 4) return [
    [`query of ${query}`, a.query.data, `${size} numbers`], [`key of ${token}`, k, `${size} numbers`],
    ["query × key", a.query.data.map((q, i) => q * k[i]), `sum ${readNumber(a.dots.data[key])}`],
  ];
  if (step === 4) return [
    [`value of ${token}`, v, `times ${readNumber(a.weights.data[key])}`],
    [`weight × value of ${token}`, v.map((x) => x * a.weights.data[key]), "one of the addends"],
    ["sum over all tokens: the head's context", a.context.data, `${size} numbers`],
  ];
  return [
    [`head ${data.head + 1}'s context`, a.context.data, `${size} numbers`],
    ["through its part of the output projection", a.contribution.data, `${a.contribution.data.length} numbers`],
    ["all heads and the bias", a.projected.data, ""], [`${query} as it came in (residual)`, a.residual.data, "added"],
    ["after LayerNorm: attention_output", a.output.data, "goes to the feed-forward part"],
  ];
}

function drawOperands(view, parent) {
  const list = strips(view);
  for (const surplus of [...parent.querySelectorAll(".steps-strip")].slice(list.length)) surplus.remove();
  list.forEach(([title, numbers, note, names], i) => {
    const box = child(parent, "figure", `strip${i}`);
    box.classList.add("steps-strip");
    child(box, "figcaption", "steps-title").textContent = note ? `${title} · ${note}` : title;
    drawStrip(view, box, title, numbers, names);
  });
  const bars = child(parent, "figure", "steps-norms");
  parent.append(bars); // below the strips, of which there may be more now
  const elsewhere = view.step === NEURONS && view.data.elsewhere;
  bars.hidden = view.step !== 5 && !elsewhere;
  if (view.step === 5) drawNorms(view, bars);
  else if (elsewhere) drawElsewhere(view, bars);
}

// names: of the numbers, where they are no dimensions.
function drawStrip(view, box, title, numbers, names) {
  const width = Math.min(box.parentElement.clientWidth || 340, 900), limit = Math.max(...numbers.map(Math.abs));
  const label = `${title}: ${numbers.length} numbers from ${readNumber(Math.min(...numbers))} to ${readNumber(Math.max(...numbers))}. ` +
    "Left and Right read them one by one.";
  const { element, context } = canvas(box, "steps-canvas", width, 30, label);
  drawMap(context, 0, 0, width, 30, 1, numbers.length, (_, c) => signedColour(numbers[c], limit, view.paint));
  const says = child(box, "span", "steps-value");
  says.textContent = "";
  let at = -1;
  const say = (i) => {
    at = Math.max(0, Math.min(numbers.length - 1, i));
    says.textContent = `${names ? quoted(nameAmong(names, at)) : `[${at}]`} ${readNumber(numbers[at])}`;
    sayPlace(element, at, numbers.length, says.textContent);
  };
  sayPlace(element, 0, numbers.length, says.textContent);
  element.onpointermove = element.onpointerdown = (event) => say(Math.floor((event.offsetX / element.clientWidth) * numbers.length));
  element.onkeydown = (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[plainKey(event)];
    if (move) { event.preventDefault(); say(at + move); }
  };
  numbersTable(box, title, [names ? "token" : "dimension", "value"], () => Array.from(numbers, (value, i) => [names ? nameAmong(names, i) : i, value]));
}

// How long every head's contribution to this token is.
function drawNorms(view, parent) {
  const norms = view.data.arrays.norms.data, top = Math.max(...norms), list = make("ol");
  norms.forEach((norm, i) => {
    const line = make("li", i === view.data.head ? "on" : ""), bar = make("span", "steps-bar");
    bar.style.setProperty("--p", `${(100 * norm) / top}%`);
    line.append(make("span", "", `head ${i + 1}`), bar, make("span", "", readNumber(norm)));
    list.append(line);
  });
  parent.replaceChildren(make("figcaption", "steps-title", "Length of every head's part in this token's change"), list);
}
