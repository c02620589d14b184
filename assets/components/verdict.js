// Class probabilities as bars, one side or two (old and new). Each bar is a
// meter with its number beside it, so the picture is its own text.
export default function (component) {
  const { parentElement, data } = component;
  const { sides, label } = unpack(data);
  const root = child(parentElement, "div", "bw-verdict", { role: "group", "aria-label": label });
  const draw = () => {
    const look = theme(parentElement);
    const box = child(root, "div", "bw-sides", { "data-sides": String(sides.length) });
    box.replaceChildren(...sides.map((side) => drawSide(side, look)));
    drawTable(root, sides);
  };
  draw();
  onThemeChange(parentElement, draw);
}

function drawSide(side, look) {
  const box = make("section", "bw-side");
  if (side.title) box.appendChild(make("p", "bw-title", side.title));
  if (side.text) box.appendChild(markedText(side.text));
  for (const bar of side.bars) box.appendChild(drawBar(bar, side, bar.label === side.best, look));
  if (side.hidden) box.appendChild(make("p", "bw-quiet", `${side.hidden} less likely labels are in the table`));
  return box;
}

// [[what stands before, piece, changed], ...] as a line with the changed pieces marked.
function markedText(pieces) {
  const line = make("p", "bw-quote");
  for (const [before, piece, changed] of pieces) line.append(before, changed ? make("mark", "", piece) : piece);
  return line;
}

function drawBar(bar, side, first, look) {
  const row = make("div", first ? "bw-bar bw-first" : "bw-bar");
  row.dataset.label = bar.label;
  row.dataset.value = String(bar.value);
  row.append(make("span", "bw-name", bar.label), make("span", "bw-number", bar.text));
  if (bar.share !== null) row.append(drawMeter(bar, side, first, look));
  if (bar.below) row.appendChild(make("span", "bw-below", bar.below));
  return row;
}

// The bar itself; a score without a known range has none.
function drawMeter(bar, side, first, look) {
  const meter = make("div", "bw-track", "", {
    role: "meter", "aria-label": bar.label, "aria-valuemin": String(side.low), "aria-valuemax": String(side.high),
    "aria-valuenow": String(bar.value), "aria-valuetext": bar.text,
  });
  const fill = make("div", "bw-fill");
  fill.style.width = `${100 * bar.share}%`;
  fill.style.background = rgb(look.dark ? [86, 180, 233] : [0, 114, 178], first || side.bars.length === 1 ? 1 : 0.45);
  meter.appendChild(fill);
  return meter;
}

function drawTable(root, sides) {
  const titles = sides.map((side, n) => side.title || (sides.length > 1 ? `side ${n + 1}` : "value"));
  const names = sides[0].table.map((entry) => entry[0]);
  const logits = sides[0].table[0].length > 2;
  numbersTable(root, logits ? "Every label: value and logit" : "The values", ["label", ...titles.flatMap((t) => logits ? [t, `${t}, logit`] : [t])],
    () => names.map((name, n) => [name, ...sides.flatMap((side) => side.table[n].slice(1))]));
}
