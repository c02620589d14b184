// One draw of the 80/10/10 rule over the text, and many draws counted against
// what is expected (bert_core/figures/masking.py).
export default function (component) {
  const { parentElement, data } = component;
  const { tokens, tally, over, mean_loss } = unpack(data);
  theme(parentElement);
  const strip = child(parentElement, "ol", "bw-strip", { "aria-label": "What the model sees, token by token" });
  strip.replaceChildren(...tokens.map(tokenColumn));
  const line = child(parentElement, "p", "bw-loss");
  line.textContent = mean_loss;
  const table = child(parentElement, "table", "bw-tally");
  table.replaceChildren(...tallyRows(tally, over));
}

const WORDS = { masked: "[MASK]", random: "random piece", kept: "kept as it is", untouched: "not chosen" };

function tokenColumn(token) {
  const column = make("li", `bw-col bw-out-${token.outcome}`);
  column.append(make("span", "bw-seen", token.seen));
  if (token.outcome !== "untouched") {
    column.append(make("span", "bw-why", WORDS[token.outcome]), make("span", "bw-was", `learn: ${token.was}`));
    if (token.loss !== null) column.append(make("span", "bw-nats", `loss ${token.loss.toFixed(2)}`));
  }
  return column;
}

function tallyRows(tally, over) {
  const caption = make("caption", "", `${over}, against what is expected (± two standard deviations`);
  caption.append(make("span", "bw-tally-lines", "; between the two lines in a bar, which runs from 0 to 100 %: the share that is expected of so many chosen"), ")");
  const head = make("thead"), line = head.appendChild(make("tr"));
  for (const name of ["outcome", "counted", "expected", "share of the chosen", ""]) line.appendChild(name ? make("th", "", name, { scope: "col" }) : make("td"));
  const body = make("tbody");
  for (const row of tally) {
    const tr = make("tr", `bw-out-${row.outcome}`);
    const name = make("th", "", WORDS[row.outcome], { scope: "row" });
    name.prepend(make("span", "bw-swatch"));
    tr.append(name, make("td", "", row.count.toLocaleString("en")),
      make("td", "", `${Math.round(row.expected).toLocaleString("en")} ± ${Math.round(2 * row.deviation).toLocaleString("en")}`),
      make("td", "", row.share === null ? "–" : percent(row.share)), row.share === null ? make("td") : tallyBar(row));
    body.appendChild(tr);
  }
  return [caption, head, body];
}

// Shares of all that were chosen: what was counted, and the band in which it is expected.
function tallyBar({ share, band: [low, high] }) {
  const cell = make("td", "bw-tally-bar"), track = make("span", "bw-tally-track");
  const bar = make("span", "bw-tally-count"), band = make("span", "bw-tally-band");
  bar.style.width = `${100 * share}%`;
  band.style.left = `${100 * low}%`;
  band.style.width = `${100 * (high - low)}%`;
  track.append(bar, band);
  cell.appendChild(track);
  return cell;
}
