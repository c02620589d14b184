// One layer's open heads, large: lines between two columns, or a map.

const LABEL_SHARE = 0.3, FAINT = 0.004;

// The drawing as it should be: lines while they can be told apart, then the map.
// Pairs are cut on the map, so acting starts with it.
function drawKind(view) {
  return view.look.draw ?? (view.data.tokens.length > 48 || view.data.mode === "act" ? "map" : "lines");
}

function headGeometry(view, width) {
  const maps = currentMaps(view), { n } = maps[0], { scale } = view;
  const longest = Math.max(...maps[0].items.map((item) => item.text.length));
  if (drawKind(view) === "lines") {
    const row = scale * (n > 64 ? 17 : n > 28 ? 20 : 28), size = scale * (n > 28 ? 13 : 17);
    const label = Math.min(190 * scale, width * LABEL_SHARE, 72 * scale + 0.56 * size * longest);
    return { kind: "lines", n, row, size, label, width, height: n * row + 30 * scale, top: 26 * scale };
  }
  const names = n <= 64;
  const label = names ? Math.min(120 * scale, width * 0.26, 20 + 8.4 * scale * longest) : 34;
  const beyond = scale * (names ? Math.min(44, Math.max(6, 3.6 * maps[0].items[n - 1].text.length)) : 6); // the last name slants out
  const side = Math.min(width - label - beyond, 640), cell = side / n;
  const top = names ? Math.min(104 * scale, 16 + 7 * scale * longest) : 34;
  return { kind: "map", n, cell, label, side, width: label + side + beyond, height: top + side + 4, top, names };
}

function drawHead(view, parent, paint) {
  const geometry = headGeometry(view, Math.min(parent.clientWidth || 340, 900));
  view.geometry = geometry;
  const maps = currentMaps(view), heads = headsShown(view).map((h) => h + 1).join(", ");
  const label = `Attention of layer ${view.layer + 1}, head ${heads} as ${geometry.kind === "map" ? "a map" : "lines"}: ` +
    `from ${geometry.kind === "map" ? "rows to columns" : "the left to the right"}. ` + (cutsPairs(view) ?
      "Arrow keys move over the cells, Enter cuts that pair or restores it, Escape lets go." :
      "Arrow keys move the token, Left and Right change the direction, Enter pins it, Escape lets go.");
  const { element, context } = headCanvas(view, parent, geometry, label);
  const surface = new CanvasSurface(context, true);
  paintHead(view, surface, maps, geometry, paint, focusOf(view));
  headEvents(view, element, geometry);
}

// The same canvas while the size is the same: making its memory anew costs more than a hover may.
function headCanvas(view, parent, geometry, label) {
  const key = [geometry.width, geometry.height, window.devicePixelRatio].join("x");
  if (view.canvasKey !== key || !view.canvas?.element.isConnected) {
    view.canvas = canvas(parent, "att-head", geometry.width, geometry.height, label);
    view.canvasKey = key;
  } else {
    view.canvas.context.clearRect(0, 0, geometry.width, geometry.height);
    view.canvas.element.setAttribute("aria-label", label);
  }
  return view.canvas;
}

// What is drawn, on any surface. focus: null or {item, side: 'from' | 'to'}.
function paintHead(view, surface, maps, geometry, paint, focus) {
  if (geometry.kind === "lines") paintLines(view, surface, maps, geometry, paint, focus);
  else paintMap(view, surface, maps, geometry, paint, focus);
}

// The focused token as an item of the picture: hovered, else pinned.
function focusOf(view) {
  if (view.hover) return view.hover;
  if (view.token === null) return null;
  const item = currentMaps(view)[0].items.findIndex((i) => i.pieces.includes(view.token));
  return item < 0 ? null : { item, side: view.side };
}

function headColour(view, index, paint) {
  if (headsShown(view).length === 1) return paint.dark ? [126, 200, 246] : [0, 78, 130];
  return HEAD_COLOURS[index];
}

// --- lines ---------------------------------------------------------------------

function paintLines(view, surface, maps, geometry, paint, focus) {
  const { n, row, label, width, top } = geometry, y = (i) => top + (i + 0.5) * row, font = view.font;
  const quiet = rgb(paint.ink, 0.7);
  surface.text(label - 8, 10 * view.scale, "from (query)", { fill: quiet, size: 13 * view.scale, align: "right", font });
  surface.text(width - label + 8, 10 * view.scale, "to (key)", { fill: quiet, size: 13 * view.scale, font });
  if (focus) shadeColumn(view, surface, maps, geometry, paint, focus);
  maps.forEach((map, index) => {
    const colour = rgb(headColour(view, index, paint)), shift = (index - (maps.length - 1) / 2) * 2;
    for (let q = 0; q < n; q++) for (let k = 0; k < n; k++) {
      const p = map.values[q * n + k];
      if (p < FAINT || (focus && (focus.side === "from" ? q : k) !== focus.item)) continue;
      surface.curve(label, y(q) + shift, width - label, y(k) + shift, colour, 0.8 + 3 * p, Math.min(1, Math.sqrt(p) * 0.95));
    }
  });
  if (surface.onScreen) {
    const labels = lineLabels(view, maps[0].items, geometry, paint);
    surface.raster(labels, 0, 0, labels.width / labelRatio(), labels.height / labelRatio());
  } else labelLines(surface, maps[0].items, geometry, paint, font);
}

function labelLines(surface, items, { row, size, label, width, top }, paint, font) {
  const fill = rgb(paint.ink);
  items.forEach((item, i) => {
    const text = shorten(item.text, label, size), y = top + (i + 0.5) * row + 1;
    surface.text(label - 8, y, text, { fill, size, align: "right", font });
    surface.text(width - label + 8, y, text, { fill, size, font });
  });
}

function labelRatio() { return Math.min(window.devicePixelRatio || 1, 3); }

// Both columns of words as one picture, drawn again only for other words, sizes, colours or sharpness.
function lineLabels(view, items, geometry, paint) {
  const ratio = labelRatio(), key = [view.mapsKey, geometry.width, geometry.height, paint.dark, ratio].join("|");
  if (view.labelsKey === key) return view.labels;
  view.labels = new OffscreenCanvas(Math.ceil(geometry.width * ratio), Math.ceil(geometry.height * ratio));
  const context = view.labels.getContext("2d");
  context.scale(ratio, ratio);
  labelLines(new CanvasSurface(context), items, geometry, paint, view.font);
  view.labelsKey = key;
  return view.labels;
}

// The other column's tokens behind their weight, with the number.
function shadeColumn(view, surface, maps, geometry, paint, focus) {
  const { n, row, label, width, top } = geometry, from = focus.side === "from";
  const x = from ? width - label + 2 : 0, own = from ? 0 : width - label + 2;
  surface.rect(own, top + focus.item * row + 1, label - 2, row - 2, rgb(paint.primary), 0.16);
  for (let i = 0; i < n; i++) {
    const p = maps[0].values[from ? focus.item * n + i : i * n + focus.item];
    if (p < FAINT) continue;
    surface.rect(x, top + i * row + 1, label - 2, row - 2, rgb(paint.dark ? [126, 200, 246] : [0, 78, 130]), 0.5 * Math.sqrt(p));
    surface.text(from ? width - 4 : 4, top + (i + 0.5) * row, exactly(p),
      { fill: rgb(paint.ink), size: 12 * view.scale, align: from ? "right" : "left", font: "monospace" });
  }
}

function shorten(text, width, size) {
  const room = Math.max(4, Math.floor(width / (size * 0.56)));
  return text.length > room ? `${text.slice(0, room - 1)}…` : text;
}

// --- map -----------------------------------------------------------------------

function paintMap(view, surface, maps, geometry, paint, focus) {
  const { label, side, top, cell } = geometry, ink = rgb(paint.ink);
  surface.raster(mapPicture(view, maps, paint), label, top, side, side);
  surface.frame(label - 0.5, top - 0.5, side + 1, side + 1, rgb(paint.line), 1);
  mapLabels(view, surface, maps[0].items, geometry, paint, focus);
  for (const [q, k] of cutCells(view, maps[0].items)) {
    surface.frame(label + k * cell + 1, top + q * cell + 1, Math.max(cell - 2, 1), Math.max(cell - 2, 1), rgb(MEANING.off), 2);
  }
  if (!focus) return;
  const row = focus.side === "from", at = focus.item * cell, paper = rgb(paint.paper);
  if (row) {
    surface.rect(label, top, side, at, paper, 0.6);
    surface.rect(label, top + at + cell, side, side - at - cell, paper, 0.6);
    surface.frame(label - 1, top + at - 0.5, side + 2, Math.max(cell + 1, 3), ink, 1.5);
  } else {
    surface.rect(label, top, at, side, paper, 0.6);
    surface.rect(label + at + cell, top, side - at - cell, side, paper, 0.6);
    surface.frame(label + at - 0.5, top - 1, Math.max(cell + 1, 3), side + 2, ink, 1.5);
  }
  if (focus.other === undefined) return;
  const other = focus.other * cell;
  surface.frame(label + (row ? other : at), top + (row ? at : other), Math.max(cell, 3), Math.max(cell, 3), ink, 2.5);
}

// One head by the ramp; several by the colour of the strongest head in a cell.
function mapPicture(view, maps, paint) {
  const key = `${view.mapsKey}|${paint.dark}`;
  if (view.pictureKey === key) return view.picture;
  const n = maps[0].n;
  if (maps.length === 1) view.picture = mapImage(maps[0].values, n, rampTable(paint));
  else {
    const tables = maps.map((_, index) => rampTable(paint, HEAD_COLOURS[index]));
    const image = new ImageData(n, n), pixels = new Uint32Array(image.data.buffer);
    for (let i = 0; i < n * n; i++) {
      let best = 0;
      for (let m = 1; m < maps.length; m++) if (maps[m].values[i] > maps[best].values[i]) best = m;
      pixels[i] = tables[best][Math.min(255, Math.round(255 * Math.sqrt(maps[best].values[i])))];
    }
    view.picture = toCanvas(image);
  }
  view.pictureKey = key;
  return view.picture;
}

function mapLabels(view, surface, items, geometry, paint, focus) {
  const { label, top, cell, names, n } = geometry, font = view.font, size = Math.max(9, Math.min(15 * view.scale, cell * 0.8));
  const every = names ? (cell < 9 ? 2 : 1) : Math.ceil(n / 16);
  for (let i = 0; i < n; i++) {
    const here = focus?.item === i;
    if (i % every && !here) continue;
    const text = names ? shorten(items[i].text, label, size) : String(items[i].pieces[0]), middle = (i + 0.5) * cell;
    const style = { fill: rgb(paint.ink, here || names ? 1 : 0.7), size: names ? size : 11, font };
    const row = here && focus.side === "from", column = here && focus.side === "to";
    surface.text(label - 6, top + middle, text, { ...style, align: "right", bold: row });
    surface.text(label + middle, top - 6, text, { ...style, turn: names ? -60 : 0, align: names ? "left" : "center", bold: column });
  }
}

// Cells of the picture whose pairs are cut, when one can cut.
function cutCells(view, items) {
  const length = view.data.tokens.length;
  return [...view.cut].map((pair) => [Math.floor(pair / length), pair % length]).map((pair) =>
    pair.map((token) => items.findIndex((item) => item.pieces.includes(token))));
}

// --- pointer and keys ------------------------------------------------------------

function headSpot(view, element, geometry, event) {
  const box = element.getBoundingClientRect(), scale = geometry.width / box.width;
  const x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
  if (geometry.kind === "lines") {
    const item = Math.floor((y - geometry.top) / geometry.row);
    if (item < 0 || item >= geometry.n) return null;
    return { item, side: x < geometry.width / 2 ? "from" : "to" };
  }
  const q = Math.floor((y - geometry.top) / geometry.cell), k = Math.floor((x - geometry.label) / geometry.cell);
  const inRow = q >= 0 && q < geometry.n, inColumn = k >= 0 && k < geometry.n;
  if (inRow) return { item: q, side: "from", ...(inColumn ? { other: k } : {}) };
  return inColumn ? { item: k, side: "to" } : null;
}

function headEvents(view, element, geometry) {
  element.onpointermove = (event) => {
    const spot = headSpot(view, element, geometry, event), before = view.hover;
    if (spot?.item === before?.item && spot?.side === before?.side && spot?.other === before?.other) return;
    view.hover = spot;
    view.drawFocus();
  };
  element.onpointerleave = element.onblur = () => { view.hover = null; view.drawFocus(); };
  element.onclick = (event) => {
    const spot = headSpot(view, element, geometry, event);
    if (spot && cutsPairs(view) && spot.other !== undefined) cutPair(view, spot);
    else if (spot) pin(view, spot.item, spot.side);
  };
  element.onkeydown = (event) => headKey(view, event);
}

function cutsPairs(view) { return view.data.mode === "act" && drawKind(view) === "map"; }

function headKey(view, event) {
  const focus = focusOf(view), n = currentMaps(view)[0].n, item = focus?.item ?? -1;
  const move = { ArrowDown: 1, ArrowUp: -1 }[plainKey(event)];
  if (cutsPairs(view) && cellKey(view, event, focus, n)) {
    event.preventDefault();
    return;
  }
  if (move) pin(view, Math.max(0, Math.min(n - 1, item + move)), focus?.side ?? "from", true);
  else if (plainKey(event) === "ArrowLeft" || plainKey(event) === "ArrowRight") {
    pin(view, Math.max(item, 0), event.key === "ArrowLeft" ? "from" : "to", true);
  } else if (event.key === "Enter") pin(view, Math.max(item, 0), focus?.side ?? "from", true);
  else if (event.key === "Escape") { view.token = null; view.hover = null; view.drawFocus(); view.tellView(); }
  else return;
  event.preventDefault();
}

// Where pairs are cut the arrows go over the cells, as the pointer does, and Enter is the click.
function cellKey(view, event, focus, n) {
  const step = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[plainKey(event)];
  const at = [focus?.item ?? 0, focus?.other];
  if (step) {
    const [item, other] = at[1] === undefined ? [at[0], 0] : [clamp(at[0] + step[0], n), clamp(at[1] + step[1], n)];
    view.hover = { item, other, side: "from" };
    view.drawFocus();
  } else if (event.key === "Enter" && at[1] !== undefined) cutPair(view, focus);
  else return false;
  return true;
}

// Keep a token lit; the same one again lets go.
function pin(view, item, side, stay = false) {
  const token = currentMaps(view)[0].items[item].pieces[0];
  const again = view.token === token && view.side === side && !stay;
  view.token = again ? null : token;
  view.side = side;
  view.hover = null;
  view.drawFocus();
  view.tellView();
}

function cutPair(view, spot) {
  if (isFixed(view.component)) return;
  const { items } = currentMaps(view)[0], length = view.data.tokens.length;
  for (const q of items[spot.item].pieces) for (const k of items[spot.other].pieces) {
    const pair = q * length + k;
    if (view.cut.has(pair)) view.cut.delete(pair); else view.cut.add(pair);
  }
  view.draw();
  view.tellCut();
}
