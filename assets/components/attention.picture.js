// A saved picture says what it shows: below the drawing stand layer and heads in
// their colours, the model, and whatever keeps it from being the model's own numbers.

const LINE = 24; // pixels of a line of the caption

function savePicture(view, kind) {
  const { geometry, paint } = view, lines = captionLines(view);
  const width = geometry.width, height = geometry.height + LINE * (lines.length + 0.5);
  const name = `attention-layer${view.layer + 1}-head${headsShown(view).map((head) => head + 1).join("-")}`;
  const draw = (surface) => {
    paintHead(view, surface, currentMaps(view), geometry, paint, focusOf(view));
    lines.forEach((line, n) => drawCaption(view, surface, line, geometry.height + LINE * (n + 0.5)));
    return surface;
  };
  if (kind === "SVG") {
    draw(new SvgSurface(width, height, rgb(paint.paper))).save(`${name}.svg`);
    return;
  }
  const flat = document.createElement("canvas"), ratio = 2;
  flat.width = width * ratio;
  flat.height = height * ratio;
  const context = flat.getContext("2d");
  context.scale(ratio, ratio);
  const surface = new CanvasSurface(context);
  surface.rect(0, 0, width, height, rgb(paint.paper));
  draw(surface);
  flat.toBlob((blob) => download(blob, `${name}.png`));
}

// Lines of [words, colour or null]: the heads, the model, then a sentence for each choice that changes what is drawn.
function captionLines(view) {
  const { data, look } = view, heads = headsShown(view), [from, to] = look.segments.toUpperCase();
  const named = heads.map((head, n) => [` · head ${head + 1}`, heads.length > 1 ? HEAD_COLOURS[n] : null]);
  const notes = [
    ...data.changed ?? [],
    look.words && "whole words: columns of their pieces summed, rows averaged",
    look.specials !== "show" && saySpecials(data, look.specials),
    look.segments !== "all" && `only from sentence ${from} to sentence ${to}`,
    look.top > 0 && `only the ${look.top} strongest of each row`,
    look.min > 0 && `only weights of ${percent(look.min)} and more`,
    !currentMaps(view)[0].exact && "weights in 256 steps",
  ].filter(Boolean);
  return [[[`Layer ${view.layer + 1}`, null], ...named], [[`${data.model.split("/").pop()}, ${data.tokens.length} tokens`, null]],
    ...notes.flatMap((note) => wrapped(note, view).map((line) => [[line, null]]))];
}

function captionFont(view) { return `${15 * view.scale}px ${view.font}`; }

// A note in lines that are no wider than the picture.
function wrapped(note, view) {
  const pen = make("canvas").getContext("2d"), lines = [""];
  pen.font = captionFont(view);
  for (const word of note.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (lines.at(-1) && pen.measureText(longer).width > view.geometry.width - 16) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

function drawCaption(view, surface, line, y) {
  const pen = make("canvas").getContext("2d");
  pen.font = captionFont(view);
  let x = 8;
  for (const [words, colour] of line) {
    surface.text(x, y, words, { fill: rgb(colour ?? view.paint.ink), size: 15 * view.scale, font: view.font, bold: colour !== null });
    x += pen.measureText(words).width * (colour ? 1.06 : 1); // bold type is a little wider
  }
}
