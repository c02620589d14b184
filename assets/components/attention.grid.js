// The grid: one row a layer, one column a head, each cell the head's real map.

const GRID_LEFT = 26, GRID_TOP = 20;

function gridGeometry(view, width) {
  const { heads, layers } = view.data;
  const gap = heads > 8 ? 3 : 5;
  const cell = Math.max(8, Math.min(64, Math.floor((width - GRID_LEFT) / heads - gap)));
  return { cell, step: cell + gap, width: GRID_LEFT + heads * (cell + gap), height: GRID_TOP + layers * (cell + gap) };
}

// All thumbnails as one picture, drawn again only for other data, colours or sharpness.
function gridPicture(view, geometry, paint) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2), key = [view.stamp, geometry.cell, paint.dark, ratio].join("|");
  if (view.gridKey === key) return view.gridImage;
  const { size, layers, heads } = view.data, table = rampTable(paint);
  const small = new ImageData(size, size), pixels = new Uint32Array(small.data.buffer);
  const stamp = new OffscreenCanvas(size, size), ink = stamp.getContext("2d");
  const whole = new OffscreenCanvas(geometry.width * ratio, geometry.height * ratio), context = whole.getContext("2d");
  context.scale(ratio, ratio);
  context.imageSmoothingEnabled = size > geometry.cell;
  context.imageSmoothingQuality = "high";
  for (let layer = 0; layer < layers; layer++) for (let head = 0; head < heads; head++) {
    thumbnail(view.data, layer, head).forEach((q, i) => { pixels[i] = table[q]; });
    ink.putImageData(small, 0, 0);
    const [x, y] = cellPlace(geometry, layer, head);
    context.drawImage(stamp, x, y, geometry.cell, geometry.cell);
  }
  view.gridKey = key;
  view.gridImage = whole;
  return whole;
}

function cellPlace(geometry, layer, head) {
  return [GRID_LEFT + head * geometry.step, GRID_TOP + layer * geometry.step];
}

function drawGrid(view, parent, paint) {
  const geometry = gridGeometry(view, Math.min(parent.clientWidth || 320, 760));
  const { layers, heads } = view.data, spot = view.cursor ?? [view.layer, view.head];
  const label = `Grid of ${layers} layers by ${heads} heads, each cell a head's attention map. ` +
    `Arrow keys move, Enter opens, Space ${view.data.mode === "act" ?
      "switches a head off or on; left of the first head stands the whole layer" : "adds a head of this layer"}.`;
  const { element, context } = canvas(parent, "att-grid", geometry.width, geometry.height, label);
  sayPlace(element, spot[0] * (heads + 1) + spot[1] + 1, layers * (heads + 1), cellName(view, spot));
  const surface = new CanvasSurface(context);
  context.drawImage(gridPicture(view, geometry, paint), 0, 0, geometry.width, geometry.height);
  gridLabels(view, surface, geometry, paint);
  for (let layer = 0; layer < layers; layer++) for (let head = 0; head < heads; head++) {
    const [x, y] = cellPlace(geometry, layer, head), size = geometry.cell;
    surface.frame(x - 0.5, y - 0.5, size + 1, size + 1, rgb(paint.line), 1);
    if (view.off.has(layer * heads + head)) crossOut(surface, x, y, size, paint);
    const added = layer === view.layer ? headsShown(view).indexOf(head) : -1;
    if (added > 0) surface.frame(x - 1, y - 1, size + 2, size + 2, rgb(HEAD_COLOURS[added]), 2.5);
    if (added === 0) surface.frame(x - 1.5, y - 1.5, size + 3, size + 3, rgb(paint.ink), 2.5);
  }
  if (view.cursor) {
    const [layer, head] = view.cursor, [x, y] = cellPlace(geometry, layer, Math.max(head, 0));
    const [left, width] = head < 0 ? [1.5, GRID_LEFT - 3] : [x - 1.5, geometry.cell + 3];
    surface.frame(left, y - 1.5, width, geometry.cell + 3, rgb(paint.primary), 2.5);
  }
  gridEvents(view, element, geometry);
}

function cellName(view, spot) {
  const where = spot[1] < 0 ? "all its heads" : `head ${spot[1] + 1}`;
  return `layer ${spot[0] + 1}, ${where}${isOff(view, spot) ? ", switched off" : ""}`;
}

// Which heads are off, in words.
function sayOff(view) {
  const rows = Array.from({ length: view.data.layers }, (_, layer) => {
    const off = layerCells(view, layer).flatMap((cell, head) => (view.off.has(cell) ? [head + 1] : []));
    const which = off.length === view.data.heads ? "all its heads" : `${off.length > 1 ? "heads" : "head"} ${off.join(", ")}`;
    return off.length ? `layer ${layer + 1}, ${which}` : "";
  });
  return view.off.size ? `Switched off: ${rows.filter(Boolean).join("; ")}.` : "No head is switched off.";
}

function gridLabels(view, surface, geometry, paint) {
  const font = view.font, half = geometry.cell / 2;
  for (let head = 0; head < view.data.heads; head++) {
    const here = head === view.head;
    surface.text(cellPlace(geometry, 0, head)[0] + half, GRID_TOP - 10, String(head + 1),
      { fill: rgb(paint.ink, here ? 1 : 0.7), size: 13 * view.scale, align: "center", bold: here, font });
  }
  for (let layer = 0; layer < view.data.layers; layer++) {
    const here = layer === view.layer;
    surface.text(GRID_LEFT - 7, cellPlace(geometry, layer, 0)[1] + half, String(layer + 1),
      { fill: rgb(paint.ink, here ? 1 : 0.7), size: 13 * view.scale, align: "right", bold: here, font });
  }
}

function crossOut(surface, x, y, size, paint) {
  surface.rect(x, y, size, size, rgb(paint.paper), 0.8);
  const context = surface.context;
  context.strokeStyle = rgb(MEANING.off);
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(x + 4, y + 4); context.lineTo(x + size - 4, y + size - 4);
  context.moveTo(x + size - 4, y + 4); context.lineTo(x + 4, y + size - 4);
  context.stroke();
}

// --- pointer and keys --------------------------------------------------------

// Cell under a pointer: [layer, head]; head -1 is the layer's number; null outside.
function gridCell(view, element, geometry, event) {
  const box = element.getBoundingClientRect(), scale = geometry.width / box.width;
  const head = Math.floor(((event.clientX - box.left) * scale - GRID_LEFT) / geometry.step);
  const layer = Math.floor(((event.clientY - box.top) * scale - GRID_TOP) / geometry.step);
  if (layer < 0 || layer >= view.data.layers || head >= view.data.heads) return null;
  return [layer, Math.max(head, -1)];
}

function gridEvents(view, element, geometry) {
  const at = (event) => gridCell(view, element, geometry, event);
  const act = view.data.mode === "act";
  element.title = "";
  put(element, "data-chooses", "");
  element.onpointermove = (event) => {
    const cell = at(event);
    element.title = cell && cell[1] >= 0 ? `Layer ${cell[0] + 1}, head ${cell[1] + 1}` : "";
    if (act && view.brush !== undefined && cell && cell[1] >= 0) brushOver(view, cell);
  };
  element.onpointerdown = (event) => {
    const cell = at(event);
    if (act && cell && event.button === 0) startBrush(view, cell, element, event);
  };
  element.onclick = (event) => { // not at the press: a finger that scrolls the page presses first
    const cell = at(event);
    if (act || !cell) return;
    if (cell[1] >= 0 && (event.shiftKey || event.ctrlKey || event.metaKey)) addHead(view, cell);
    else openHead(view, cell[0], cell[1] < 0 ? view.head : cell[1]);
  };
  element.onpointerup = () => endBrush(view);
  element.onpointercancel = () => dropBrush(view);
  element.onblur = () => { view.cursor = null; view.draw(); };
  element.onkeydown = (event) => gridKey(view, event, act);
}

function gridKey(view, event, act) {
  const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[plainKey(event)];
  const spot = view.cursor ?? [view.layer, view.head];
  if (move) {
    const layer = clamp(spot[0] + move[0], view.data.layers), head = clamp(spot[1] + move[1], view.data.heads, act ? -1 : 0);
    if (act) { view.cursor = [layer, head]; view.draw(); } else openHead(view, layer, head);
  } else if (event.key === "Enter") openHead(view, spot[0], spot[1] < 0 ? view.head : spot[1]);
  else if (event.key === " ") {
    if (!act) addHead(view, spot);
    else if (spot[1] < 0) { toggleLayer(view, spot[0]); view.tellOff(); }
    else { toggleOff(view, spot[0] * view.data.heads + spot[1]); view.tellOff(); }
  } else return;
  event.preventDefault();
}

function clamp(value, count, least = 0) { return Math.max(least, Math.min(count - 1, value)); }

function openHead(view, layer, head) {
  view.layer = layer;
  view.head = head;
  view.look.more.delete(head);
  if (view.data.mode !== "act") view.cursor = null;
  view.draw();
  view.tellView();
}

function addHead(view, [layer, head]) {
  if (layer !== view.layer || head === view.head) return openHead(view, layer, head);
  if (view.look.more.has(head)) view.look.more.delete(head); else view.look.more.add(head);
  view.draw();
  view.tellView();
  return undefined;
}

// --- switching heads off -------------------------------------------------------

// A brush paints what its first cell became; the layer's number takes the whole layer.
function startBrush(view, [layer, head], element, event) {
  element.setPointerCapture(event.pointerId);
  view.before = new Set(view.off);
  if (head < 0) {
    toggleLayer(view, layer);
    return;
  }
  view.brush = !view.off.has(layer * view.data.heads + head);
  brushOver(view, [layer, head]);
}

function layerCells({ data: { heads } }, layer) { return Array.from({ length: heads }, (_, head) => layer * heads + head); }

function isOff(view, [layer, head]) {
  const cells = layerCells(view, layer);
  return (head < 0 ? cells : [cells[head]]).every((cell) => view.off.has(cell));
}

function toggleLayer(view, layer) {
  const off = !isOff(view, [layer, -1]);
  layerCells(view, layer).forEach((cell) => (off ? view.off.add(cell) : view.off.delete(cell)));
  view.draw();
}

function brushOver(view, [layer, head]) {
  const cell = layer * view.data.heads + head;
  if (view.off.has(cell) === view.brush) return;
  toggleOff(view, cell);
}

function toggleOff(view, cell) {
  if (view.off.has(cell)) view.off.delete(cell); else view.off.add(cell);
  view.draw();
}

function endBrush(view) {
  if (view.before === undefined) return;
  view.brush = view.before = undefined;
  view.tellOff();
}

// The press was the start of a scroll: nothing is switched.
function dropBrush(view) {
  if (view.before === undefined) return;
  view.off = view.before;
  view.brush = view.before = undefined;
  view.draw();
}
