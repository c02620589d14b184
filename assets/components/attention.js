// Attention: the grid of all heads and one layer's open heads, large.
// Layer, head, token and look live in the address; Python puts them there.

export default function (component) {
  const { parentElement, data } = component;
  const root = child(parentElement, "section", "att-root", { "aria-label": "Attention of every head" });
  const fresh = unpack(data), view = root.view ?? (root.view = newView(root, fresh));
  view.component = component;
  takeData(view, fresh);
  buildOnce(view);
  view.draw();
  onThemeChange(parentElement, view.draw);
  if (!view.resizes) {
    view.resizes = new ResizeObserver(() => { if (root.clientWidth !== view.width) view.draw(); });
    view.resizes.observe(root);
  }
  return () => { clearInterval(view.tour); view.resizes?.disconnect(); view.resizes = null; view.tour = null; };
}

function newView(root, data) {
  const view = {
    root, data, ...placeOf(new URLSearchParams(window.location?.search ?? ""), data), hover: null, side: "from", cursor: null, tour: null,
    off: new Set(), cut: new Set(), stamp: 0, jump: data.jump?.number,
  };
  view.draw = () => drawAll(view);
  view.drawFocus = () => drawFocus(view);
  view.tellView = () => tellView(view);
  view.told = { off: {}, cut: {} };
  view.tellOff = () => tellChange(view, "off");
  view.tellCut = () => tellChange(view, "cut");
  return view;
}

// What is open by an address; the layer is the one that Python sent exactly.
function placeOf(link, data) {
  const head = Number(link.get("head")), token = link.has("token") ? Number(link.get("token")) : data.token ?? NaN;
  return {
    layer: data.layer, head: Number.isInteger(head) && head >= 1 && head <= data.heads ? head - 1 : data.head,
    token: Number.isInteger(token) && token >= 0 && token < data.tokens.length ? token : null,
    look: readLook(link.get("look") ?? data.look, data.heads),
  };
}

// At once; what waited to be told goes with it.
function tellChange(view, kind) {
  noteChoice(view.told[kind], changed(view, kind), view.data.id);
  clearTimeout(view.telling);
  send(view.component, everything(view));
}

function changed(view, kind) { return [...view[kind]].sort((a, b) => a - b); }

// Of two messages that wait for a busy server Streamlit keeps the newer, so each one says again what has no answer yet.
function everything(view) {
  const said = { layer: view.layer, head: view.head, token: view.token ?? -1, look: writeLook(view.look) };
  for (const [kind, field] of [["off", "heads"], ["cut", "pairs"]]) {
    if (view.told[kind].__bwSent?.length) said[field] = changed(view, kind);
  }
  return said;
}

// What is off or cut, unless this answers an older click than the last one.
function takeChange(view, kind) { view[kind] = new Set(chosenNow(view.told[kind], view.data[kind], view.data.id)); }

// New numbers: what is open stays open where it is still there, unless one was sent elsewhere.
function takeData(view, data) {
  const codes = data.arrays.exact.data, weights = new Float32Array(codes.length);
  for (let i = 0; i < codes.length; i++) weights[i] = fromQuantised16(codes[i]);
  data.arrays.exact.data = weights;
  const other = data.id !== view.data.id;
  view.data = data;
  view.stamp += 1;
  if (other) view.hover = null;
  if (view.layer >= data.layers || view.head >= data.heads) [view.layer, view.head] = [data.layer, 0];
  if (view.token !== null && view.token >= data.tokens.length) view.token = null;
  view.look.more = new Set([...view.look.more].filter((head) => head < data.heads));
  takeChange(view, "off");
  takeChange(view, "cut");
  if (data.jump && data.jump.number !== view.jump) takeJump(view);
}

// The address was changed from outside (a room, Back, a table): go there, once.
function takeJump(view) {
  clearTimeout(view.telling);
  clearInterval(view.tour);
  Object.assign(view, placeOf(new URLSearchParams(view.data.jump.address), view.data), { hover: null, cursor: null, tour: null, jump: view.data.jump.number });
}

function buildOnce(view) {
  const { root } = view;
  if (root.firstChild) return;
  const left = make("div", "att-left"), right = make("div", "att-right");
  left.append(make("div", "att-scrub"), make("p", "att-hint att-quiet"), make("div", "att-gridbox"), make("p", "att-off att-quiet"),
    make("div", "att-gridtable"), make("aside", "att-card"));
  right.append(make("div", "att-controls"), make("h2", "att-title"), make("div", "att-headbox"), make("div", "att-details"),
    make("div", "att-save"), make("div", "att-headtable"));
  root.append(left, right);
  const save = root.querySelector(".att-save");
  for (const kind of ["PNG", "SVG"]) {
    const button = make("button", "", `Save as ${kind}`, { type: "button" });
    button.onclick = () => savePicture(view, kind);
    save.append(button);
  }
}

function drawAll(view) {
  const { root } = view, part = (name) => root.querySelector(`.${name}`);
  const paint = theme(root.getRootNode() instanceof ShadowRoot ? root.getRootNode() : root.parentElement);
  view.paint = paint;
  view.width = root.clientWidth;
  view.scale = typeScale();
  view.font = cssValue(root, "--st-font") || "sans-serif";
  root.classList.toggle("att-narrow", root.clientWidth < 660);
  drawScrub(view, part("att-scrub"));
  part("att-hint").textContent = view.data.mode === "act" ?
    "Click or drag over the squares to switch heads off; a row's number takes the whole layer. Keys: arrows and Space." : "";
  drawGrid(view, part("att-gridbox"), paint);
  putText(part("att-off"), view.data.mode === "act" ? sayOff(view) : "");
  drawControls(view, part("att-controls"));
  drawCard(view, part("att-card"));
  part("att-title").replaceChildren(...titleParts(view));
  drawFocus(view);
  drawTables(view, part("att-gridtable"), part("att-headtable"));
  Object.assign(root.dataset, { layer: view.layer + 1, head: view.head + 1, exact: String(currentMaps(view)[0].exact), id: view.data.id });
  root.dataset.draws = String(Number(root.dataset.draws ?? 0) + 1);
}

// Only what follows the pointer.
function drawFocus(view) {
  const part = (name) => view.root.querySelector(`.${name}`);
  drawHead(view, part("att-headbox"), view.paint);
  drawDetails(view, part("att-details"));
  if (view.data.tokens.length > 64 && part("att-headtable").querySelector("details[open]")) {
    drawTables(view, part("att-gridtable"), part("att-headtable"));
  }
}

function titleParts(view) {
  const heads = headsShown(view), parts = [make("span", "", `Layer ${view.layer + 1}`)];
  heads.forEach((head, index) => {
    const tag = make("span", "att-tag", `head ${head + 1}`);
    if (heads.length > 1) tag.style.setProperty("--head", rgb(HEAD_COLOURS[index]));
    parts.push(tag);
  });
  if (heads.length === 1 && view.data.mode !== "act" && !matchMedia("(hover: none)").matches) parts.push(make("span", "att-quiet", "Shift-click a head of this layer to add it"));
  const left = new Set([view.head, ...view.look.more]).size - heads.length;
  if (left > 0) parts.push(make("span", "att-quiet", `${left} more chosen, not drawn: ${heads.length} heads at most`));
  if (view.look.specials !== "show") parts.push(make("span", "att-quiet", `${saySpecials(view.data, view.look.specials)}.`));
  if (view.data.mode === "act") parts.push(make("span", "att-quiet", "Click a cell of the map to cut that pair; keys: arrows and Enter"));
  return parts;
}

// Where the visitor is, soon but not for each step of a slider; at once when exact numbers are missing.
function tellView(view) {
  clearTimeout(view.telling);
  view.telling = setTimeout(() => send(view.component, everything(view)), view.data.exact.includes(view.layer) ? 350 : 60);
}
