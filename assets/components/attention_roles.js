// Relations tested on the shipped sentences: this model's best head beside bert-base's published one.

export default function (component) {
  const { parentElement, data } = component;
  const fresh = unpack(data);
  const root = child(parentElement, "section", "roles-root", { "aria-label": "Heads tested on shipped sentences" });
  const draw = () => { theme(parentElement); keepFocus(root, () => drawRoles(component, root, fresh)); };
  draw();
  onThemeChange(parentElement, draw);
}

const COLUMNS = ["Relation", "Head here", "Direction", "Right", "Best fixed distance", "Cases", "Verdict", "bert-base, published"];

function whole(p) { return `${(100 * p).toFixed(0)} %`; }

function drawRoles(component, root, data) {
  const table = make("table"), head = table.createTHead().insertRow();
  const says = make("p", "roles-more", `${data.model} on ${data.sentences} shipped sentences: each head was chosen on one half and scored on the other. ` +
    `Published: ${data.source}. ${data.note}`);
  for (const name of COLUMNS) head.append(make("th", "", name, { scope: "col" }));
  const body = table.createTBody();
  for (const row of data.rows) {
    const line = body.insertRow(), open = make("button", "", `${row.layer + 1}-${row.head + 1}`, { type: "button", title: "Open this head below" });
    open.onclick = () => { send(component, { layer: row.layer, head: row.head }); showHeads(); };
    line.append(make("th", "", row.name, { scope: "row" }));
    line.insertCell().append(open);
    line.append(make("td", "roles-text", row.direction), meter(row), make("td", "", `${whole(row.baseline)} (${row.offset > 0 ? "+" : "−"}${Math.abs(row.offset)})`),
      make("td", "", String(row.n)), make("td", row.verdict === "stands out" ? "roles-yes" : "roles-no", row.verdict),
      make("td", "", `${row.published.head}: ${row.published.accuracy.toFixed(1)} % (${row.published.baseline.toFixed(1)} %)`));
    [...line.cells].forEach((cell, i) => cell.setAttribute("data-column", COLUMNS[i]));  // what a phone writes before it
  }
  const scroll = make("div", "roles-scroll bw-shaded", "", { tabindex: "0", role: "region", "aria-label": "Table of the heads tested" });
  scroll.append(table);
  root.replaceChildren(says, allNumbers(root), scroll, make("p", "roles-more", `Also published for bert-base, not tested here: ${data.exemplars} ${data.coreference}`));
}

// The picture that a head opens in is below: on a phone it comes to the top, elsewhere as far up as it needs to be seen.
function showHeads() {
  const block = matchMedia("(max-width: 640px)").matches ? "start" : "nearest";
  document.querySelector(".st-key-c_attention_roles_grid")?.scrollIntoView({ block });
}

// On a phone each relation shows its head, how often it is right, and the verdict; this opens the rest of all.
function allNumbers(root) {
  const button = make("button", "roles-all", "", { type: "button" });
  const say = () => {
    const isOpen = root.classList.contains("roles-open");
    putText(button, isOpen ? "Fewer numbers" : "All numbers of each relation");
    put(button, "aria-expanded", String(isOpen));
  };
  button.onclick = () => { root.classList.toggle("roles-open"); say(); };
  say();
  return button;
}

function meter(row) {
  const cell = make("td", "roles-meter", "", { "data-value": row.accuracy }), bar = make("span", "roles-bar");
  bar.style.setProperty("--p", `${100 * row.accuracy}%`);
  bar.style.setProperty("--b", `${100 * row.baseline}%`);
  cell.append(bar, make("span", "", whole(row.accuracy)));
  return cell;
}
