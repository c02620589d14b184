// Chips to mask and, for each gap, what the model puts there (ui/views/masking.py).
// A card may hold two lists side by side: before and after a change.
export default function (component) {
  const { parentElement, data } = component;
  const state = unpack(data);
  const row = child(parentElement, "div", "bw-row");
  const hint = child(parentElement, "p", "bw-hint");
  const cards = child(parentElement, "div", "bw-cards");
  const draw = (selected) => {
    chipRow(row, state.chips, {
      select: "many", label: state.label, selected, fixed: new Set(state.fixed),
      onSelect: (after) => { draw(after); send(component, { selected: [...after] }); },
    });
  };
  draw(new Set(state.selected));
  hint.textContent = state.hint;
  hint.hidden = state.hint === "";
  cards.replaceChildren(...state.cards.map((card) => gapCard(card)));
  numbersTable(parentElement, "Guesses for each gap", ["gap", "run", "rank", "piece", "probability"], () =>
    state.cards.flatMap((card) => card.lists.flatMap((list) =>
      list.rows.map((guess, n) => [card.title, list.name || "–", guess.rank ?? n + 1, guess.t, guess.p]))), state.cards.length > 0);
  onThemeChange(parentElement, () => draw(new Set(state.selected)));
}

function gapCard(card) {
  const box = make("section", "bw-card", "", { "aria-label": card.title });
  box.appendChild(make("h2", "", card.title));
  if (card.note) box.appendChild(make("p", "bw-card-note", card.note));
  const lists = make("div", "bw-lists");
  for (const list of card.lists) {
    const column = make("div", "bw-list");
    if (list.name) column.appendChild(make("h3", "", list.name));
    const rows = make("ol");
    for (const guess of list.rows) rows.appendChild(guessRow(guess));
    column.appendChild(rows);
    lists.appendChild(column);
  }
  box.appendChild(lists);
  return box;
}

function guessRow(guess) {
  const row = make("li", guess.hit ? "bw-guess bw-hit" : "bw-guess");
  if (guess.gap) row.classList.add("bw-after-gap");
  const bar = make("span", "bw-bar");
  bar.style.width = `${Math.max(0.4, 100 * guess.p)}%`;
  const words = make("span", "bw-words");
  words.append(make("span", "bw-piece", guess.t), make("span", "bw-p", percent(guess.p)));
  if (guess.rank) words.firstChild.append(make("span", "bw-rank", `#${guess.rank.toLocaleString("en")}`));
  const track = make("span", "bw-track");
  track.appendChild(bar);
  row.append(words, track);
  return row;
}
