// What the encoder really gets: a table of numbers, a column a token (ui/views/tokens.py).
export default function (component) {
  const { parentElement, data } = component;
  const { tokens, rows } = unpack(data);
  theme(parentElement);
  const box = child(parentElement, "div", "bw-ids", { tabindex: "0", role: "region", "aria-label": "Ids, segments, positions and mask of every token" });
  const table = make("table");
  const head = table.createTHead().insertRow();
  head.appendChild(make("th", "", "token", { scope: "col" }));
  for (const token of tokens) head.appendChild(make("th", `bw-t-${token.k}`, token.t, { scope: "col" }));
  const body = table.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    line.className = `bw-r-${row.kind}`;
    line.appendChild(make("th", "", row.name, { scope: "row" }));
    row.values.forEach((value) => line.appendChild(make("td", `bw-v${value}`, String(value))));
  }
  const left = box.scrollLeft;
  box.replaceChildren(table);
  box.scrollLeft = left;
  onThemeChange(parentElement, () => theme(parentElement));
}
