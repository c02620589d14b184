// The stream of flow.js on its canvas: bands, bars, what stands above the columns, and the tokens' names.

function paint(context, state, place, all, at, look) {
  const hue = flowHue(state.kind, look), quiet = mix(look.paper, look.ink, 0.66);
  context.clearRect(0, 0, place.width, place.height);
  for (const one of all) {
    if (one.layer < state.from) continue;
    const lit = at.r !== null && ((one.layer === at.c && one.from === at.r) || (one.layer === at.c - 1 && one.to === at.r));
    const own = one.to === one.from, strong = lit ? 0.85 : at.r === null ? (own ? 0.34 : 0.42) : 0.13;
    paintBand(context, place, one, rgb(own && !lit ? mix(look.ink, look.paper, 0.45) : hue, strong));
  }
  context.textBaseline = "middle";
  const colours = { ink: rgb(look.ink), hue: rgb(hue), quiet: rgb(quiet) };
  for (let c = state.from; c < state.columns.length; c++) {
    paintBars(context, state, place, c, at, colours);
    paintHead(context, state, place, c, colours, look.font);
  }
  paintNames(context, state, place, look, quiet);
}

// The colour of both ways or of one way, as --bw-both and --bw-oneway of tokens.css.
function flowHue(kind, { dark }) {
  if (kind === "causal") return dark ? [240, 137, 74] : MEANING.oneway;
  return dark ? [86, 180, 233] : MEANING.both;
}

function paintBand(context, place, { layer, high, y0, y1 }, colour) {
  if (high < 0.15) return;
  const a = place.x[layer] + place.bar, b = place.x[layer + 1], half = (a + b) / 2;
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(a, y0);
  context.bezierCurveTo(half, y0, half, y1, b, y1);
  context.lineTo(b, y1 + high);
  context.bezierCurveTo(half, y1 + high, half, y0 + high, a, y0 + high);
  context.fill();
}

function paintBars(context, state, place, c, at, colours) {
  state.rows.forEach((_, r) => {
    const value = share(state, c, r);
    context.fillStyle = r === state.target ? colours.hue : at.c === c && at.r === r ? colours.ink : colours.quiet;
    if (value > 0) context.fillRect(place.x[c], place.tops[c][r], place.bar, Math.max(value * place.tall, 0.5));
  });
}

// A column's name and, below it, what the head would answer there; where columns stand close, fewer of both.
function paintHead(context, state, place, c, colours, font) {
  const last = state.columns.length - 1, pitch = place.x[1] - place.x[0], isNarrow = place.small || pitch < 88;
  if (place.small && pitch < 36 && c % 3) return;
  const x = place.x[c] + (c === last ? place.bar : c === 0 ? 0 : place.bar / 2);
  context.textAlign = c === last ? "right" : c === 0 ? "left" : "center";
  context.font = `600 ${place.type * (place.small ? 0.84 : 0.94)}px ${font}`;
  context.fillStyle = colours.ink;
  context.fillText(isNarrow && c > 0 ? String(c) : state.columns[c], x, 0.7 * place.type);
  const every = isNarrow ? Math.max(2, Math.ceil(100 / pitch)) : 1;
  if (place.small || !state.lens[c] || (last - c) % every) return;
  const [piece, probability] = state.lens[c];
  const room = pitch * (isNarrow ? every * (c === 0 || c === last ? 0.58 : 0.68) : 0.94);
  context.font = `${0.9 * place.type}px ${font}`;
  context.fillStyle = colours.quiet;
  context.fillText(fitText(context, `\u2068${piece}\u2069 ${percent(probability)}`, room), x, 2 * place.type);
}

// The tokens left of the first column, each beside its bar; one that has no room there is left to the line and the table.
function paintNames(context, state, place, look, quiet) {
  let free = place.top - 1;
  const c = state.from;
  context.textAlign = "right";
  state.rows.forEach((row, r) => {
    const high = share(state, c, r) * place.tall, y = place.tops[c][r] + high / 2;
    const size = Math.min(place.type, Math.max(0.8 * place.type, high + place.gap));
    if (high === 0 || y - 0.42 * size < free) return;
    free = y + 0.42 * size;
    context.font = `${r === state.target ? 600 : 400} ${size}px ${look.font}`;
    context.fillStyle = row.k === "special" || row.k === "others" ? rgb(quiet) : rgb(look.ink);
    const said = percent(share(state, c, r)), wide = context.measureText(` ${said}`).width;
    context.fillText(fitText(context, row.t, place.left - wide - 10), place.x[c] - 8 - wide, y);
    context.fillStyle = rgb(quiet);
    context.fillText(said, place.x[c] - 8, y);
  });
}

// As much of a text as fits, with dots for the rest.
function fitText(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  const signs = [...text];
  while (signs.length > 1 && context.measureText(`${signs.join("")}…`).width > room) signs.pop();
  return `${signs.join("")}…`;
}
