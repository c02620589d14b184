// From text to pieces: normalised words, the look-ups for one of them, and the
// tokens with their ids (ui/views/tokens.py).
export default function (component) {
  const { parentElement, data } = component;
  const state = unpack(data);
  theme(parentElement);
  const step = (name, title, note) => {
    const box = child(parentElement, "section", name);
    child(box, "h2", "bw-step").textContent = title;
    child(box, "p", "bw-step-note").textContent = note;
    return box;
  };
  const words = child(step("bw-words-step", "1  Normalise and split into words", state.normal_note), "div", "bw-row");
  chipRow(words, state.words.map((word, n) => ({ t: word.normal, k: word.special ? "mask" : "word", at: `word ${n + 1}`, l: word.changed ? `was ${word.raw}` : "" })), {
    select: "one", opens: true, selected: new Set(state.word === null ? [] : [state.word]), label: "Words; choose one to see its look-ups",
    onSelect: (after, n) => send(component, { selected: [n] }),
  });
  const ladder = child(step("bw-ladder-step", "2  Longest match first", state.ladder_note), "div", "bw-ladders");
  ladder.replaceChildren(...state.attempts.map(pieceLadder));
  const tokens = child(step("bw-tokens-step", "3  Pieces with their ids, between the special tokens", state.token_note), "div", "bw-row");
  chipRow(tokens, state.tokens, { select: "none", label: "Tokens with their vocabulary ids" });
  numbersTable(parentElement, "Look-ups for the chosen word", ["piece", "candidate", "in the vocabulary"], () =>
    state.attempts.flatMap((tries, n) => tries.map((one) => [n + 1, one.c, one.ok ? "yes" : "no"])));
  onThemeChange(parentElement, () => theme(parentElement));
}

const SHOWN = 9;

// The candidates for one piece, longest first; the middle of a long ladder is counted.
function pieceLadder(tries) {
  const box = make("ol", "bw-ladder");
  const folded = tries.length > SHOWN;
  const rows = folded ? [...tries.slice(0, SHOWN - 3), null, ...tries.slice(-2)] : tries;
  for (const one of rows) {
    if (one === null) {
      box.appendChild(make("li", "bw-more", `… ${tries.length - SHOWN + 1} more that are not there`));
      continue;
    }
    const row = make("li", one.ok ? "bw-found" : "bw-failed");
    row.append(make("span", "bw-tick", one.ok ? "✓" : "✗"), make("span", "", one.c));
    box.appendChild(row);
  }
  return box;
}
