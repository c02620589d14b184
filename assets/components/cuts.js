// One text as several tokenizers cut it (ui/views/tokens.py).
export default function (component) {
  const { parentElement, data } = component;
  const { cuts } = unpack(data);
  const draw = () => {
    theme(parentElement);
    const box = child(parentElement, "div", "bw-cuts");
    box.replaceChildren(...cuts.map((cut) => {
      const section = make("section");
      section.appendChild(make("h2", "", cut.title));
      section.appendChild(make("p", "bw-note", cut.note));
      const row = make("div", "bw-row");
      section.appendChild(row);
      queueMicrotask(() => chipRow(row, cut.chips, { select: "none", label: `Pieces by ${cut.name}` }));
      return section;
    }));
  };
  draw();
  numbersTable(parentElement, "Pieces by tokenizer", ["tokenizer", "pieces", "pieces a word", "vocabulary"], () =>
    cuts.map((cut) => [cut.name, cut.count, cut.per_word, cut.vocabulary ?? "open"]));
  onThemeChange(parentElement, draw);
}
