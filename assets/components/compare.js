// Readers side by side: what each may know of the sentence, what it says of the
// true word, and its best guesses (ui/views/compare.py).
export default function (component) {
  const { parentElement, data } = component;
  const state = unpack(data);
  const grid = child(parentElement, "div", "cmp-grid");
  grid.replaceChildren(...state.cards.map((card) => readerCard(card)));
  theme(parentElement);
  onThemeChange(parentElement, () => theme(parentElement));
  numbersTable(parentElement, state.label, ["reader", "model", "rank", "piece", "probability"], () =>
    state.cards.flatMap((card) => [
      ...(card.truth && card.truth.p !== undefined
        ? [[card.title, card.models, card.truth.rank, `${card.truth.asked}: ${card.truth.word}`, card.truth.p]] : []),
      ...card.rows.map((guess, n) => [card.title, card.models, n + 1, guess.t, guess.p]),
    ]));
}

function readerCard(card) {
  const box = make("section", "cmp-card", "", {
    "aria-label": card.title, "data-reader": card.reader, "data-accent": card.accent,
  });
  box.append(make("h2", "", card.title), make("p", "cmp-models", card.models), make("p", "cmp-note", card.note));
  if (card.strip.length) box.appendChild(strip(card.strip));
  if (card.truth) box.appendChild(truth(card.truth));
  const list = make("ol", "cmp-list");
  list.append(...card.rows.map((guess) => guessRow(guess)));
  box.appendChild(list);
  return box;
}

// Hidden words keep their width but not their letters: what isn't seen isn't read out either.
function strip(pieces) {
  const row = make("div", "cmp-strip");
  for (const piece of pieces) {
    const hidden = piece.k === "unseen";
    row.appendChild(make("span", `cmp-${piece.k}`, hidden ? "\u2007".repeat(Math.max(2, piece.t.length)) : piece.t,
      hidden ? { role: "img", "aria-label": "hidden word" } : {}));
  }
  return row;
}

function truth(said) {
  const box = make("p", "cmp-truth");
  if (said.p === undefined) {
    box.append(make("span", "cmp-p", "–"), make("span", "cmp-of", said.why));
    return box;
  }
  const pieces = said.pieces > 1 ? `, ${said.pieces} pieces multiplied; first piece` : ",";
  box.append(make("span", "cmp-p", percent(said.p), { "data-p": said.p }),
    make("span", "cmp-of", `for ${quoted(said.word)}${pieces} rank ${said.rank.toLocaleString("en")}`));
  return box;
}

function guessRow(guess) {
  const row = make("li", guess.hit ? "cmp-guess cmp-hit" : "cmp-guess");
  const bar = make("span", "cmp-bar");
  bar.style.width = `${Math.max(0.4, 100 * guess.p)}%`;
  const words = make("span", "cmp-words");
  words.append(make("span", "cmp-piece", guess.t), make("span", "", percent(guess.p)));
  const track = make("span", "cmp-track");
  track.appendChild(bar);
  row.append(words, track);
  return row;
}
