// Shared by every component, after _base.js: token chips, of which some may be chosen.

// Draw tokens as chips into `parent`. chips: [{t: text, k: kind, v?: 0..1,
// l?: label below, i?: position, at?: its place where that is no token's}]; kind 'special', 'mask', 'sub' or 'word'.
// options: {select: 'none'|'one'|'many', opens: chosen to be looked at, not hidden, selected: Set, label, fixed: Set,
// onSelect(Set), onHover(index|null)}. One tab stop; arrows move; Enter and
// Space choose.
function chipRow(parent, chips, options) {
  const look = theme(parent.getRootNode() instanceof ShadowRoot ? parent.getRootNode() : parent);
  const active = options.select !== "none";
  parent.classList.add("bw-chips");
  parent.classList.toggle("bw-opens", options.opens === true);
  put(parent, "role", active ? "listbox" : "list");
  put(parent, "aria-multiselectable", active ? String(options.select === "many") : null);
  put(parent, "aria-label", options.label || "Tokens");
  const focused = Math.min(chips.length - 1, Math.max(0, [...parent.children].findIndex((c) => c.tabIndex === 0)));
  const build = () => {
    const box = make("div");
    box.append(make("span", "bw-chip-text"), make("span", "bw-chip-label"));
    return box;
  };
  each(parent, chips, build, (box, chip, n) => {
    fillChip(box, chip, n, look, options.selected?.has(n) ?? false, options.fixed?.has(n) ?? false, active);
    if (active) box.tabIndex = n === focused ? 0 : -1;
  });
  chipEvents(parent, chips, options, active);
}

// Chips whose choice Python keeps, as {selected: [positions]}.
function choiceRow(component, row, chips, selected, options) {
  const draw = (now) => chipRow(row, chips, { ...options, selected: new Set(now), onSelect: (after) => {
    const choice = [...after].sort((a, b) => a - b);
    noteChoice(row, choice, chips.length);
    draw(choice);
    send(component, { selected: choice });
  } });
  const show = () => draw(chosenNow(row, selected, chips.length));
  show();
  onThemeChange(component.parentElement, show);
}

function fillChip(box, chip, n, look, chosen, fixed, active) {
  put(box, "class", `bw-chip bw-${chip.k}` + (chosen ? " bw-on" : "") + (active && !fixed ? " bw-can" : ""));
  putText(box.firstChild, chip.t);
  putText(box.lastChild, chip.l ?? "");
  put(box, "role", active ? "option" : "listitem");
  put(box, "aria-label", describeChip(chip, n));
  put(box, "aria-selected", active ? String(chosen) : null);
  put(box, "aria-disabled", active && fixed ? "true" : null);
  const colour = chip.v === undefined || chip.v === null ? null : probabilityColour(chip.v, look);
  put(box, "style", colour ? `background:${rgb(colour)};color:${inkOn(colour)}` : null);
}

const KIND_WORDS = { special: "special token", mask: "mask", sub: "subword", word: "", unk: "unknown" };

function describeChip(chip, n) {
  const kind = KIND_WORDS[chip.k];
  return `${chip.t}${kind ? `, ${kind}` : ""}, ${chip.at ?? `position ${chip.i ?? n}`}${chip.l ? `, ${chip.l}` : ""}`;
}

// Of so many chips that choose, a row scrolls in itself, so that what they choose stays near.
const MANY_CHIPS = 60;

// Bound a long row, with the one that `selector` finds in sight: on the first draw and when it is another one. Who
// scrolls in the row, or is in it with the keyboard, is left where they are.
function boundRow(row, selector, many = MANY_CHIPS) {
  const isLong = row.children.length >= many, n = [...row.children].findIndex((chip) => chip.matches(selector));
  row.classList.toggle("bw-bounded", isLong);
  const now = `${n} of ${row.children.length}`;
  if (row.__bwShown === now || row.clientHeight === 0) return;
  row.__bwShown = now;
  if (!isLong || n < 0 || row.matches(":focus-within")) return;
  const frame = row.getBoundingClientRect(), chip = row.children[n].getBoundingClientRect();
  if (chip.top < frame.top || chip.bottom > frame.bottom) row.scrollTop += chip.top - frame.top - frame.height / 3;
}

// The keyboard goes on from this chip.
function focusChip(parent, n) {
  for (const box of parent.children) box.tabIndex = -1;
  parent.children[n].tabIndex = 0;
  parent.children[n].focus();
}

function chipEvents(parent, chips, options, active) {
  const at = (event) => [...parent.children].indexOf(event.target.closest(".bw-chip"));
  const choose = (n) => {
    if (n < 0 || options.fixed?.has(n)) return;
    const before = options.selected ?? new Set();
    const after = new Set(options.select === "many" ? before : []);
    if (before.has(n) && !options.opens) after.delete(n); else after.add(n); // what is open stays so
    options.onSelect?.(after, n);
  };
  parent.onclick = active ? (event) => choose(at(event)) : null;
  parent.onpointerover = options.onHover ? (event) => { const n = at(event); options.onHover(n < 0 ? null : n); } : null;
  parent.onpointerleave = options.onHover ? () => options.onHover(null) : null;
  parent.onkeydown = active ? (event) => {
    const n = at(event), last = chips.length - 1;
    const to = { ArrowRight: n + 1, ArrowDown: n + 1, ArrowLeft: n - 1, ArrowUp: n - 1, Home: 0, End: last }[plainKey(event)];
    if (to !== undefined) {
      event.preventDefault();
      focusChip(parent, Math.max(0, Math.min(last, to)));
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      choose(n);
    }
  } : null;
}
