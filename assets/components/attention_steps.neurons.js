// The step after the heads: the feed-forward part, one token alone, neuron by neuron.
// Every number is the Trace's own or a weight; only the sums are made of their operands.

const NEURON_COLUMNS = ["neuron", "weights · token + bias", null, "length of its addend"];

// What the step says of the chosen neuron.
function neuronSentence({ data, neuron }) {
  const a = data.arrays, open = a.intermediate.data.filter((value) => value > 0).length;
  return `neuron ${a.neurons.data[neuron]} sums up to ${readNumber(a.sums.data[neuron])} and gives ` +
    `${readNumber(given(data, neuron))}; ${open.toLocaleString("en")} of ${a.intermediate.data.length.toLocaleString("en")} neurons give more than 0`;
}

// What a neuron gives for the token that is looked at.
function given({ arrays: a, query, tokens }, neuron) { return a.activations.data[neuron * tokens.length + query]; }

function drawNeurons(view, parent) {
  const { data, paint } = view, a = data.arrays, table = make("table"), head = table.createTHead().insertRow();
  for (const title of NEURON_COLUMNS) head.append(make("th", "", title ?? `after ${data.activation}`, { scope: "col" }));
  const rows = [...a.neurons.data].map((name, n) => [name, a.sums.data[n], given(data, n), a.lengths.data[n]]);
  const limit = Math.max(...rows.flatMap(([, sum, gives]) => [Math.abs(sum), Math.abs(gives)])), body = table.createTBody();
  rows.forEach(([name, sum, gives, length], n) => {
    const line = body.insertRow(), pick = make("button", "", String(name), { type: "button", "aria-pressed": String(n === view.neuron) });
    line.className = n === view.neuron ? "on" : "";
    pick.onclick = () => { tell(view, { neuron: name }); view.draw(); };
    const first = make("th", "", "", { scope: "row" });
    first.append(pick);
    line.append(first);
    for (const value of [sum, gives]) {
      const cell = line.insertCell(), colour = signedColour(value, limit, paint);
      cell.textContent = readNumber(value);
      cell.style.background = rgb(colour);
      cell.style.color = inkOn(colour);
    }
    line.insertCell().textContent = readNumber(length);
  });
  keepFocus(parent, () => parent.replaceChildren(table));
}

// [title, numbers, note, names] of the strips: into one neuron, out of it, then all of them.
function neuronStrips({ data, neuron }) {
  const a = data.arrays, f = readNumber, token = quoted(nameAmong(data.tokens, data.query)), name = a.neurons.data[neuron];
  const width = a.attended.data.length, gives = given(data, neuron);
  const into = a.weights_in.data.subarray(neuron * width, (neuron + 1) * width);
  const out = a.weights_out.data.subarray(neuron * width, (neuron + 1) * width);
  const products = into.map((weight, i) => weight * a.attended.data[i]);
  const sum = `sum ${f(a.sums.data[neuron] - a.biases.data[neuron])}, with the bias ${f(a.biases.data[neuron])} it is ${f(a.sums.data[neuron])}`;
  return [
    [`${token} after attention`, a.attended.data, `${width} numbers`],
    [`weights into neuron ${name}`, into, `${width} numbers`],
    ["token × weights", products, `${sum}; ${data.activation} makes ${f(gives)} of it`],
    [`neuron ${name} on every token`, a.activations.data.subarray(neuron * data.tokens.length, (neuron + 1) * data.tokens.length),
      `after ${data.activation}`, data.tokens],
    [`weights out of neuron ${name} × ${f(gives)}`, out.map((weight) => weight * gives), "its addend"],
    [`all ${a.intermediate.data.length.toLocaleString("en")} neurons`, a.intermediate.data, `after ${data.activation}`],
    ["their addends and the bias", a.projected.data, `added to ${token} after attention`],
    ["after LayerNorm: hidden_states", a.layer_output.data, "the layer's output, the next layer's input"],
  ];
}

// The shipped sentences' tokens on which the chosen neuron gives most.
function drawElsewhere({ data, neuron }, parent) {
  const list = make("ol", "steps-elsewhere");
  for (const [before, token, after, value] of data.elsewhere[neuron]) {
    const line = make("li"), text = make("span", "", before, { dir: "auto" });
    text.append(make("b", "", token), after);
    line.append(text, make("span", "", readNumber(value)));
    list.append(line);
  }
  const title = `Neuron ${data.arrays.neurons.data[neuron]} in the shipped sentences: where it gives most`;
  parent.replaceChildren(make("figcaption", "steps-title", title), list);
}
