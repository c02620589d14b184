// Answers before and after a change: one block a question, two bars a class.

export default function (component) {
  const { parentElement, data } = component;
  const { blocks, changed, columns } = unpack(data);
  const root = child(parentElement, "section", "effect-root", { "aria-label": "Answers, unchanged and changed" });
  const said = child(parentElement, "p", "effect-said", { role: "status" }); // it stays, so what is new in it is read out
  putText(said, blocks.map((block) => `${block.title}: ${sayMoved(block, changed)}`).join("; "));
  const draw = () => {
    theme(parentElement);
    drawBlocks(root, blocks, changed, columns ?? ["answer", "unchanged", "with your change"]);
    requestAnimationFrame(() => letScroll(root));
  };
  draw();
  onThemeChange(parentElement, draw);
}

// The page keeps a box of many answers low and scrolls it (app.css): then the keyboard gets into it.
function letScroll(root) {
  const box = root.getRootNode().host?.closest(".st-key-c_effect");
  const isMore = box && box.scrollHeight > box.clientHeight + 2; // a pixel of rounding is nothing to scroll to
  if (box) box.style.overflowY = isMore ? "" : "hidden";
  if (isMore) root.tabIndex = 0;
  else root.removeAttribute("tabindex");
}

function drawBlocks(root, blocks, changed, columns) {
  root.replaceChildren(...blocks.map((block) => {
    const box = make("div", "effect-block"), table = make("table");
    const title = make("caption", "", block.title);
    title.append(make("span", "effect-quiet", block.by ? ` ${block.by}` : ""), make("span", "effect-moved", sayMoved(block, changed)));
    table.append(title);
    const head = table.createTHead().insertRow();
    for (const name of columns) head.append(make("th", "", name, { scope: "col" }));
    const body = table.createTBody();
    block.names.forEach((name, i) => {
      const line = body.insertRow();
      line.classList.toggle("effect-followed", name === block.followed);
      line.append(make("th", "", name, { scope: "row" }), bar(block.before[i], "before"), bar(block.after[i], "after"));
    });
    box.append(table);
    return box;
  }));
}

function sayMoved({ divergence }, changed) { return changed ? `moved by ${readNumber(divergence)} nats (KL)` : "nothing changed yet"; }

function bar(p, when) {
  const cell = make("td", `effect-${when}`, "", { "data-value": p }), line = make("span", "effect-bar");
  line.style.setProperty("--p", `${100 * p}%`);
  cell.append(line, make("span", "effect-number", percent(p)));
  return cell;
}
