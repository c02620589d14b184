// Chips to mask and, for each gap, what the model puts there (ui/views/masking.py).
// A card may hold two lists side by side: before and after a change. A guess with
// `put`, its piece's id, is put into the gap by a click: sends {put, gap}.
export default function (component) {
  const { parentElement, data } = component;
  const state = unpack(data);
  const row = child(parentElement, "div", "bw-row");
  const hint = child(parentElement, "p", "bw-hint");
  const cards = child(parentElement, "div", "bw-cards"), foot = child(parentElement, "p", "bw-foot");
  choiceRow(component, row, state.chips, state.selected,
    { select: "many", label: state.label, fixed: new Set(state.fixed) });
  boundRow(row, ".bw-mask", 25);
  putText(hint, state.hint);
  hint.hidden = state.hint === "";
  putText(foot, state.foot);
  foot.hidden = state.foot === "";
  each(cards, state.cards, () => make("section", "bw-card"), (box, card) => fillCard(box, card, component));
  hear(parentElement, inWords(state));
  focusTried(row, state.tried);
  numbersTable(parentElement, "Guesses for each gap", ["gap", "run", "rank", "piece", "probability"], () =>
    state.cards.flatMap((card) => card.lists.flatMap((list) =>
      list.rows.map((guess, n) => [card.title, list.name || "–", guess.rank ?? n + 1, guess.t, guess.p]))), state.cards.length > 0);
}

// The first guesses, read out when they change: so many gaps and guesses, the lists tell the rest.
const TOLD = 3;
function inWords({ cards, chips, selected }) {
  const best = ({ name, rows }) => `${name ? `${name}: ` : ""}${rows.slice(0, TOLD).map((guess) => `${guess.t} ${percent(guess.p)}`).join(", ")}`;
  if (!cards.length) return selected.length || chips.some((chip) => chip.k === "mask") ? "" : "No token is hidden.";
  return cards.slice(0, TOLD).map((card) => `${card.title}: ${card.lists.map(best).join("; ")}`).join(". ");
}

// Whoever tried an example, or put a guess in, goes on from the next gap, as the button is gone; without one, from the chips.
function focusTried(row, tried) {
  const isNew = row.tried !== undefined && row.tried !== tried, n = [...row.children].findIndex((chip) => chip.matches(".bw-mask"));
  row.tried = tried;
  if (isNew && (n >= 0 || document.activeElement === document.body)) focusChip(row, Math.max(n, 0));
}

function fillCard(box, card, component) {
  put(box, "aria-label", card.title);
  putText(child(box, "h2", "bw-card-title"), card.title);
  const lists = child(box, "div", "bw-lists");
  each(lists, card.lists, () => make("div", "bw-list"), (column, list) => {
    const name = child(column, "h3", "bw-list-name");
    putText(name, list.name);
    name.hidden = list.name === "";
    each(child(column, "ol", "bw-guesses"), list.rows, buildGuess, (row, guess) => {
      fillGuess(row, guess);
      offerPut(row, guess, () => send(component, { put: guess.put, gap: card.position }));
    });
    fillRest(column, list.rows);
  });
}

// What the pieces that are not listed share: the list is seldom all of the answer.
function fillRest(column, rows) {
  const box = child(column, "div", "bw-rest"), rest = Math.max(0, 1 - rows.reduce((sum, guess) => sum + guess.p, 0));
  if (!box.firstChild) box.append(...buildGuess().children);
  const [piece, , p] = box.firstChild.children;
  putText(piece, "all other pieces");
  putText(p, percent(rest));
  put(box.lastChild.firstChild, "style", `width:${(100 * rest).toFixed(2)}%`);
}

function buildGuess() {
  const row = make("li"), words = make("span", "bw-words"), track = make("span", "bw-track");
  words.append(make("span", "bw-piece"), make("span", "bw-rank"), make("span", "bw-p"));
  track.appendChild(make("span", "bw-bar"));
  row.append(words, track);
  return row;
}

function fillGuess(row, guess) {
  put(row, "class", `bw-guess${guess.hit ? " bw-hit" : ""}${guess.gap ? " bw-after-gap" : ""}`);
  const [piece, rank, p] = row.firstChild.children;
  putText(piece, guess.t);
  putText(rank, guess.rank ? `#${guess.rank.toLocaleString("en")}` : "");
  putText(p, percent(guess.p));
  put(row.lastChild.firstChild, "style", `width:${Math.max(0.4, 100 * guess.p).toFixed(2)}%`);
}

// The piece is a button where a click puts it into the gap; views that share this list may have none.
function offerPut(row, guess, onClick) {
  const [piece] = row.firstChild.children, wanted = guess.put === undefined ? "SPAN" : "BUTTON";
  if (piece.tagName !== wanted) piece.replaceWith(make(wanted.toLowerCase(), "bw-piece", guess.t, wanted === "BUTTON" ? { type: "button" } : {}));
  const now = row.firstChild.firstChild;
  if (wanted === "SPAN") return;
  put(now, "title", `Put ${quoted(guess.t)} into the gap`);
  now.onclick = onClick;
}
