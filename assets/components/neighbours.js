// A token's nearest rows of the word table by cosine (ui/views/embeddings.py).
export default function (component) {
  const { parentElement, data } = component;
  const state = unpack(data);
  theme(parentElement);
  const row = child(parentElement, "div", "bw-row");
  const draw = (selected) => chipRow(row, state.chips, {
    select: "one", opens: true, selected, label: "Tokens; choose one to see its neighbours",
    onSelect: (after, n) => { draw(new Set([n])); send(component, { selected: [n] }); },
  });
  draw(new Set([state.chosen]));
  boundRow(row, ".bw-on");
  child(parentElement, "h2", "bw-title").textContent = state.title;
  const list = child(parentElement, "ol", "bw-near");
  list.replaceChildren(...state.rows.map((near) => {
    const line = make("li"), track = make("span", "bw-near-track"), bar = make("span", "bw-near-bar"), base = make("span", "bw-near-base");
    bar.style.width = `${Math.max(0, 100 * near.cosine)}%`;
    base.style.left = `${Math.max(0, 100 * state.baseline)}%`;
    track.append(bar, base);
    line.append(make("span", "bw-near-token", near.t), track, make("span", "bw-near-value", near.cosine.toFixed(3)));
    return line;
  }));
  child(parentElement, "p", "bw-key").textContent = state.note;
  numbersTable(parentElement, state.title, ["piece", "vocabulary id", "cosine"], () => state.rows.map((near) => [near.t, near.id, near.cosine]));
  onThemeChange(parentElement, () => draw(new Set([state.chosen])));
}
