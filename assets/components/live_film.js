// The film of a training run: one sentence under every checkpoint, from the random start on.
// data: {steps, tokens, gaps, cut (gaps that did not fit), guesses[F][P][K] = [token, p], layers, heads, words, groups, frame, layer, head,
// arrays: attention (F, L, H, T, T) quantised to 16 bits, places (F, W, 2)}. Sends {frame, layer, head} when one is chosen.

const SHOWN_GAPS = 3; // whose bars there is room for

export default function (component) {
  const { parentElement: parent, data } = component;
  const film = unpack(data);
  const root = child(parent, "section", "film");
  const state = restore(root, film);
  state.show = () => draw(root, film, state, tell); // a film that plays on draws by its newest data
  const tell = (changes) => {
    Object.assign(state, changes);
    state.show();
    if (!isFixed(component)) noteSent(state);
    send(component, { frame: state.frame, following: state.frame === state.last, layer: state.layer, head: state.head });
  };
  controls(root, film, state, tell);
  state.show();
  onThemeChange(parent, state.show);
  onWidthChange(root, state.show);
}

// What this visitor looks at survives new data; who stands at the end follows it.
// A frame that the visitor did not send (a room, the browser's Back) is gone to, once.
function restore(root, film) {
  const last = film.steps.length - 1, given = film.frame ?? null;
  const state = (root.__state ??= { frame: given ?? last, last, given, sent: [], timer: null });
  follow(state, film);
  if (state.frame >= state.last) state.frame = last;
  if (given !== state.given) {
    const answered = state.sent.indexOf(given);
    if (answered < 0) { clearInterval(state.timer); Object.assign(state, { frame: given ?? last, timer: null }); }
    state.sent.splice(0, answered < 0 ? Infinity : answered + 1);
  }
  return Object.assign(state, { frame: Math.min(state.frame, last), last, given, layer: film.layer, head: film.head });
}

// A followed cell is of its sentence and a followed word of its run's text: in others they are no longer the same.
function follow(state, film) {
  if (String(state.tokens ?? film.tokens) !== String(film.tokens)) state.cell = null;
  const word = state.words?.[state.word];
  if (word !== undefined && word !== film.words[state.word]) state.word = film.words.indexOf(word);
  if (state.word < 0) state.word = undefined;
  Object.assign(state, { tokens: film.tokens, words: film.words });
}

// Keep what was sent and will come back as `film.frame`: null for the end.
function noteSent(state) {
  const frame = state.frame === state.last ? null : state.frame;
  if (frame !== (state.sent.length ? state.sent.at(-1) : state.given)) state.sent.push(frame);
}

// --- the strip below: play, scrub --------------------------------------------

function controls(root, film, state, tell) {
  const bar = child(root, "div", "film-bar");
  const play = child(bar, "button", "film-play", { type: "button" });
  const range = child(bar, "input", "film-range", { type: "range", min: "0", step: "1", "aria-label": "Checkpoint" });
  const name = child(bar, "span", "film-step");
  range.max = String(state.last);
  state.label = () => {
    range.value = String(state.frame);
    range.setAttribute("aria-valuetext", `after ${film.steps[state.frame]} steps`);
    name.textContent = film.steps[state.frame] === 0 ? "random start" : `after ${film.steps[state.frame]} steps`;
    play.textContent = state.timer ? "❚❚" : "▶";
    const start = wantsStill() ? "Next checkpoint of the film" : "Play the film from the random start";
    play.setAttribute("aria-label", state.timer ? "Pause the film" : start);
    play.disabled = state.last < 1;
  };
  const stop = () => { clearInterval(state.timer); state.timer = null; state.label(); };
  const to = (frame) => { state.frame = frame; state.label(); state.show(); };
  range.oninput = () => { const frame = Number(range.value); stop(); to(frame); };
  range.onchange = () => tell({});
  play.onclick = () => {
    if (state.timer) { stop(); return; }
    if (wantsStill()) { to(state.frame >= state.last ? 0 : state.frame + 1); return; }
    state.timer = setInterval(() => {
      if (!root.isConnected || state.frame >= state.last) stop();
      else to(state.frame + 1);
    }, 420);
    to(state.frame >= state.last ? 0 : state.frame);
  };
  state.label();
}

// --- the three pictures ------------------------------------------------------

function draw(root, film, state, tell) {
  const look = theme(root.getRootNode());
  const grid = child(root, "div", "film-grid");
  says(child(grid, "div", "film-says"), film, state);
  looks(child(grid, "div", "film-looks"), film, state, look, tell);
  lies(child(grid, "div", "film-lies"), film, state, look);
  root.setAttribute("data-step", film.steps[state.frame]);
  root.setAttribute("data-frames", film.steps.length);
}

function heading(panel, text) { child(panel, "h2", "film-title").textContent = text; }

function says(panel, film, state) {
  heading(panel, "What it says");
  const row = child(panel, "div", "film-chips");
  const best = film.guesses[state.frame];
  chipRow(row, film.tokens.map((t, i) => {
    const gap = film.gaps.indexOf(i);
    const kind = gap >= 0 ? "mask" : /^\[(CLS|SEP)\]$/.test(t) ? "special" : t === "[UNK]" ? "unk" : t.startsWith("##") ? "sub" : "word";
    return { t, k: kind, i, l: gap >= 0 ? best[gap][0][0] : "" };
  }), { select: "none", label: "The sentence" });
  const bars = child(panel, "div", "film-bars");
  bars.replaceChildren(...film.gaps.slice(0, SHOWN_GAPS).flatMap((at, gap) => gapBars(best[gap], film.gaps.length > 1 ? `gap at ${at}` : "")));
  if (film.gaps.length > SHOWN_GAPS) bars.append(make("p", "film-hint", `${SHOWN_GAPS} of ${film.gaps.length} gaps; the table has all.`));
  if (!film.gaps.length) bars.replaceChildren(make("p", "film-hint", hint(film)));
  numbersTable(panel, "First guess at each checkpoint", ["steps", ...film.gaps.flatMap((g) => [`gap at ${g}`, "probability"])],
    () => film.steps.map((s, f) => [String(s), ...film.guesses[f].flatMap((g) => g[0])]));
}

// The bars of one gap, under its name where there are several.
function gapBars(best, name) {
  const lines = make("div", "film-gap");
  lines.append(...best.map(([token, p]) => bar(token, p)));
  return name ? [make("p", "film-hint", name), lines] : [lines];
}

function hint(film) {
  return film.cut ? "Its [MASK] was cut off with the end of the sentence." : "Write [MASK] in the sentence to make it guess.";
}

function bar(token, p) {
  const line = make("div", "film-line");
  const track = make("span", "film-track");
  const fill = make("span", "film-fill");
  fill.style.width = `${100 * p}%`;
  track.appendChild(fill);
  line.append(make("span", "film-token", token), track, make("span", "film-p", percent(p)));
  return line;
}

function looks(panel, film, state, look, tell) {
  heading(panel, `Who looks at whom: layer ${state.layer + 1}, head ${state.head + 1}`);
  const { shape, data } = film.arrays.attention;
  const [, layers, heads, size] = shape;
  const weight = (l, h, q, k) => fromQuantised16(data[((((state.frame * layers + l) * heads + h) * size) + q) * size + k]);
  const small = child(panel, "div", "film-heads", { role: "radiogroup", "aria-label": "Head" });
  for (let n = small.children.length; n < layers * heads; n++) small.appendChild(make("button", "film-head", "", { type: "button", role: "radio" }));
  while (small.children.length > layers * heads) small.lastChild.remove();
  small.style.gridTemplateColumns = `repeat(${heads}, auto)`;
  [...small.children].forEach((button, n) => {
    const l = Math.floor(n / heads), h = n % heads, on = l === state.layer && h === state.head;
    button.setAttribute("aria-label", `Layer ${l + 1}, head ${h + 1}`);
    button.setAttribute("aria-checked", String(on));
    button.tabIndex = on ? 0 : -1;
    const { element, context } = canvas(button, "film-thumb", 44, 44, "");
    for (const [name, value] of [["aria-hidden", "true"], ["tabindex", null]]) put(element, name, value); // the button has the name
    drawMap(context, 0, 0, 44, 44, size, size, (q, k) => probabilityColour(weight(l, h, q, k), look));
    button.onclick = () => tell({ layer: l, head: h });
  });
  small.onkeydown = (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: heads, ArrowUp: -heads }[plainKey(event)];
    if (move === undefined) return;
    event.preventDefault();
    const n = Math.max(0, Math.min(layers * heads - 1, state.layer * heads + state.head + move));
    tell({ layer: Math.floor(n / heads), head: n % heads });
    small.children[n].focus();
  };
  bigMap(panel, film, state, look, size, (q, k) => weight(state.layer, state.head, q, k));
}

function bigMap(panel, film, state, look, size, weight) {
  const width = Math.max(240, Math.min(panel.clientWidth || 380, 460)), edge = Math.min(84, width * 0.22);
  const cell = (width - edge - 14) / size; // the last column's slanted name sticks out
  const { element, context } = canvas(panel, "film-map", width, width, "Attention of the chosen head: rows look at columns");
  drawMap(context, edge, edge, cell * size, cell * size, size, size, (q, k) => probabilityColour(weight(q, k), look));
  context.fillStyle = rgb(look.ink);
  context.font = `${Math.max(12, Math.min(15, cell * 0.72))}px ${look.font}`;
  context.textBaseline = "middle";
  const every = Math.ceil(13 / cell); // of many tokens only those that fit
  film.tokens.forEach((token, i) => {
    if (i % every) return;
    const at = edge + (i + 0.5) * cell, text = token.length > 9 ? `${token.slice(0, 8)}…` : token;
    context.textAlign = "right";
    context.fillText(text, edge - 5, at);
    context.save();
    context.translate(at, edge - 5);
    context.rotate(-Math.PI / 2.6);
    context.textAlign = "left";
    context.fillText(text, 0, 0);
    context.restore();
  });
  const said = child(panel, "p", "film-hint");
  const say = (q, k) => putText(said, `${arrow(film.tokens[q], film.tokens[k])}: ${percent(weight(q, k))}`);
  const pinned = state.cell?.every((n) => n < size) ? state.cell : null; // stays while the film goes on
  if (pinned) {
    say(...pinned);
    ring(context, look, () => context.rect(edge + pinned[1] * cell, edge + pinned[0] * cell, cell, cell));
  } else putText(said, "Rows look at columns. Point at a cell, or choose one with click or arrows to follow it.");
  sayPlace(element, pinned ? pinned[0] * size + pinned[1] : 0, size * size, said.textContent);
  const under = (event) => [event.offsetY, event.offsetX].map((at) => Math.floor((at - edge) / cell));
  const isCell = (place) => place.every((n) => n >= 0 && n < size);
  element.onpointermove = (event) => { if (isCell(under(event))) say(...under(event)); };
  element.onpointerleave = () => { if (pinned) say(...pinned); };
  const pin = (place) => { state.cell = place; state.show(); };
  element.onclick = (event) => { if (isCell(under(event))) pin(under(event)); };
  element.onkeydown = (event) => {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[plainKey(event)];
    if (!step) return;
    event.preventDefault();
    pin(pinned ? pinned.map((n, axis) => Math.max(0, Math.min(size - 1, n + step[axis]))) : [0, 0]);
  };
  numbersTable(panel, "Attention of the chosen head", ["from", ...film.tokens.map((t, i) => `${i} ${t}`)],
    () => film.tokens.map((t, q) => [`${q} ${t}`, ...film.tokens.map((_, k) => inTable(weight(q, k)))]));
}

function lies(panel, film, state, look) {
  const { shape, data } = film.arrays.places, count = shape[1];
  if (panel.classList.contains("film-wordless") === count > 0) panel.replaceChildren(); // a run on another text
  panel.classList.toggle("film-wordless", !count);
  heading(panel, "Where its words lie");
  if (!count) {
    child(panel, "p", "film-hint").textContent = "This text has no word to place: none of three letters or more, no Chinese character.";
    return;
  }
  const width = Math.max(240, Math.min(panel.clientWidth || 380, 460)), height = Math.round(width * 0.86);
  const low = [Infinity, Infinity], high = [-Infinity, -Infinity]; // over all checkpoints: words move, the frame stays
  data.forEach((value, i) => { low[i % 2] = Math.min(low[i % 2], value); high[i % 2] = Math.max(high[i % 2], value); });
  const scale = Math.min((width - 70) / (high[0] - low[0] || 1), (height - 44) / (high[1] - low[1] || 1));
  const place = (w, axis) => (data[(state.frame * count + w) * 2 + axis] - (low[axis] + high[axis]) / 2) * scale;
  const x = (w) => width / 2 + place(w, 0), y = (w) => height / 2 - place(w, 1);
  const groups = [...new Set(film.groups)], colour = (w) => kindColour(groups.indexOf(film.groups[w]), look);
  const { element, context } = canvas(panel, "film-places", width, height, "Word embeddings of the small vocabulary on two axes");
  for (let w = 0; w < count; w++) {
    context.fillStyle = colour(w);
    markOfKind(context, groups.indexOf(film.groups[w]), x(w), y(w));
  }
  context.font = `14px ${look.font}`;
  context.fillStyle = rgb(look.ink);
  nameWords(context, film.words, x, y, width, height);
  const said = child(panel, "p", "film-hint");
  const say = (w) => putText(said, `${film.words[w]} (${film.groups[w]})`);
  const pinned = state.word < count ? state.word : null; // stays while the film goes on
  if (pinned !== null) {
    say(pinned);
    ring(context, look, () => context.arc(x(pinned), y(pinned), 7, 0, 2 * Math.PI));
  } else putText(said, "Where words crowd, some names are left out. Point at a mark, or choose one with click or arrows to follow it.");
  sayPlace(element, pinned ?? 0, count, said.textContent);
  const under = (event) => {
    const far = (w) => Math.hypot(x(w) - event.offsetX, y(w) - event.offsetY);
    const nearest = film.words.map((_, w) => w).reduce((best, w) => (far(w) < far(best) ? w : best), 0);
    return far(nearest) < 14 ? nearest : null;
  };
  element.onpointermove = (event) => { if (under(event) !== null) say(under(event)); };
  element.onpointerleave = () => { if (pinned !== null) say(pinned); };
  const pin = (word) => { state.word = word; state.show(); };
  element.onclick = (event) => { if (under(event) !== null) pin(under(event)); };
  element.onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[plainKey(event)];
    if (!step) return;
    event.preventDefault();
    pin(pinned === null ? 0 : Math.max(0, Math.min(count - 1, pinned + step)));
  };
  const legend = child(panel, "p", "film-legend");
  legend.replaceChildren(...groups.map((group, n) => {
    const entry = make("span"), mark = make("i", "", "●■▲◆▼✚"[n % 6], { "aria-hidden": "true" });
    mark.style.color = kindColour(n, look);
    entry.append(mark, group);
    return entry;
  }));
  numbersTable(panel, "Places of the words at this checkpoint", ["word", "kind", "axis 1", "axis 2"],
    () => film.words.map((word, w) => [word, film.groups[w], data[(state.frame * count + w) * 2], data[(state.frame * count + w) * 2 + 1]]));
}

// The mark of a kind, told from the others without its colour: circle, square, triangles, diamond, cross.
function markOfKind(context, kind, x, y) {
  const corners = [null, [[-1, -1], [1, -1], [1, 1], [-1, 1]], [[0, -1.3], [1.2, 0.9], [-1.2, 0.9]], [[0, -1.4], [1.4, 0], [0, 1.4], [-1.4, 0]],
    [[0, 1.3], [1.2, -0.9], [-1.2, -0.9]],
    [[-0.4, -1.3], [0.4, -1.3], [0.4, -0.4], [1.3, -0.4], [1.3, 0.4], [0.4, 0.4], [0.4, 1.3], [-0.4, 1.3], [-0.4, 0.4], [-1.3, 0.4], [-1.3, -0.4], [-0.4, -0.4]]][kind % 6];
  context.beginPath();
  if (corners) corners.forEach(([dx, dy]) => context.lineTo(x + 3.6 * dx, y + 3.6 * dy));
  else context.arc(x, y, 3.8, 0, 2 * Math.PI);
  context.fill();
}

// A line in the ink of the page around what is followed.
function ring(context, look, path) {
  context.strokeStyle = rgb(look.ink);
  context.lineWidth = 2;
  context.beginPath();
  path();
  context.stroke();
}

// Names above their dots, or below; one that would cover another name is left out.
function nameWords(context, words, x, y, width, height) {
  const taken = [];
  context.textAlign = "center";
  words.forEach((word, w) => {
    const half = context.measureText(word).width / 2 + 2, at = Math.min(width - half, Math.max(half, x(w)));
    const place = [y(w) - 7, y(w) + 16].find((base) => base > 12 && base < height - 2
      && !taken.some((box) => Math.abs(box.at - at) < box.half + half && Math.abs(box.base - base) < 14));
    if (place === undefined) return;
    taken.push({ at, half, base: place });
    context.fillText(word, at, place);
  });
}
