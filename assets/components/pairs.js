// Two numbers a token, before and after, as bars on one fixed scale of 0 to 1,
// in reading order (ui/views/masking.py).
export default function (component) {
  const { parentElement, data } = component;
  const { tokens, first, second, first_name, second_name, caption } = unpack(data);
  theme(parentElement);
  child(parentElement, "h2", "bw-title").textContent = caption;
  const key = child(parentElement, "p", "bw-key");
  key.replaceChildren(...[["first", first_name], ["second", second_name]].map(([which, name]) => {
    const entry = make("span", "bw-key-entry");
    entry.append(make("span", `bw-dot bw-dot-${which}`), make("span", "", name));
    return entry;
  }));
  const list = child(parentElement, "ol", "bw-pairs", { tabindex: "0", "aria-label": "Probability of each true piece, before and after" });
  list.replaceChildren(...tokens.map((token, n) => {
    const row = make("li");
    row.appendChild(make("span", "bw-pair-token", token));
    const bars = make("span", "bw-pair-bars");
    for (const [value, name] of [[first[n], "first"], [second[n], "second"]]) {
      const bar = make("span", `bw-pair-bar bw-dot-${name}`);
      bar.style.width = value === null ? "0" : `${Math.max(0.3, 100 * value)}%`;
      bars.appendChild(bar);
    }
    const word = (value) => (value === null ? "–" : percent(value));
    row.append(bars, make("span", "bw-pair-text", `${word(first[n])} → ${word(second[n])}`));
    return row;
  }));
  const moved = first.map((value, n) => Math.abs((value ?? 0) - (second[n] ?? 0)));
  const widest = list.children[moved.indexOf(Math.max(...moved))]; // a long list scrolls to what changed most
  if (widest) list.scrollTop = widest.offsetTop - list.offsetTop - list.clientHeight / 2;
  numbersTable(parentElement, caption, ["token", first_name, second_name], () =>
    tokens.map((token, n) => [token, first[n] ?? "–", second[n] ?? "–"]));
}
