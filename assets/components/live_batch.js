// Some sentence pairs of one training step: what was chosen, what became of it, and the labels of the loss.
// data: {pairs: [{tokens: [{t: seen, o: outcome, y: label or "", b: in the second sentence}], label: NSP label}]}

const OUTCOME_WORDS = { masked: "became [MASK]", random: "became a random piece", kept: "kept as it is", untouched: "not chosen" };

export default function (component) {
  const { parentElement: parent, data } = component;
  const { pairs } = unpack(data);
  theme(parent);
  const legend = child(parent, "p", "lb-legend");
  legend.replaceChildren(...["masked", "random", "kept"].map((name) => make("span", `lb-dot lb-${name}`, OUTCOME_WORDS[name])),
    make("span", "lb-dot lb-second", "underlined: second sentence"));
  const list = child(parent, "ol", "lb-list", { "aria-label": "Sentence pairs of this step" });
  list.replaceChildren(...pairs.map(card));
  numbersTable(parent, "Chosen pieces of these pairs: the masked-LM loss counts here and nowhere else", ["pair", "position", "outcome", "seen", "label"],
    () => pairs.flatMap((pair, p) => pair.tokens.flatMap((token, n) => token.y ? [[String(p + 1), String(n), OUTCOME_WORDS[token.o], token.t, token.y]] : [])));
}

function card(pair) {
  const item = make("li", "lb-pair");
  const strip = make("div", "lb-strip", "", { role: "list" });
  for (const token of pair.tokens) {
    const box = make("span", `lb-token lb-${token.o}${token.b ? " lb-second" : ""}`, "", { role: "listitem" });
    box.append(make("span", "lb-seen", token.t));
    if (token.y) box.append(make("span", "lb-label", token.y));
    if (token.y) box.setAttribute("aria-label", `${token.t}, ${OUTCOME_WORDS[token.o]}, label ${token.y}`);
    strip.appendChild(box);
  }
  item.append(strip);
  if (pair.label) item.append(make("span", `lb-nsp lb-${pair.label.toLowerCase()}`, pair.label));
  return item;
}
