// One drawing, two surfaces: the canvas on screen and the SVG that is saved.
// Both know rect, curve, text and raster; coordinates are CSS pixels.

class CanvasSurface {
  // onScreen: what is drawn may be kept as a picture of the screen's sharpness.
  constructor(context, onScreen = false) { this.context = context; this.onScreen = onScreen; }

  rect(x, y, width, height, fill, alpha = 1) {
    this.context.globalAlpha = alpha;
    this.context.fillStyle = fill;
    this.context.fillRect(x, y, width, height);
    this.context.globalAlpha = 1;
  }

  frame(x, y, width, height, stroke, thick = 1.5) {
    this.context.strokeStyle = stroke;
    this.context.lineWidth = thick;
    this.context.strokeRect(x, y, width, height);
  }

  curve(x1, y1, x2, y2, stroke, thick, alpha) {
    const context = this.context, middle = (x1 + x2) / 2;
    context.globalAlpha = alpha;
    context.strokeStyle = stroke;
    context.lineWidth = thick;
    context.beginPath();
    context.moveTo(x1, y1);
    context.bezierCurveTo(middle, y1, middle, y2, x2, y2);
    context.stroke();
    context.globalAlpha = 1;
  }

  text(x, y, words, { fill, size, align = "left", bold = false, turn = 0, font = "sans-serif" }) {
    const context = this.context;
    context.save();
    context.translate(x, y);
    context.rotate((turn * Math.PI) / 180);
    context.fillStyle = fill;
    context.font = `${bold ? 600 : 400} ${size}px ${font}`;
    context.textAlign = align;
    context.textBaseline = "middle";
    context.fillText(words, 0, 0);
    context.restore();
  }

  raster(image, x, y, width, height) {
    this.context.imageSmoothingEnabled = false;
    this.context.drawImage(image, x, y, width, height);
  }
}

const SVG_ANCHOR = { left: "start", center: "middle", right: "end" };

class SvgSurface {
  constructor(width, height, paper) {
    this.root = svg("svg", { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}` });
    this.rect(0, 0, width, height, paper);
  }

  rect(x, y, width, height, fill, alpha = 1) {
    this.root.append(svg("rect", { x, y, width, height, fill, "fill-opacity": alpha }));
  }

  frame(x, y, width, height, stroke, thick = 1.5) {
    this.root.append(svg("rect", { x, y, width, height, fill: "none", stroke, "stroke-width": thick }));
  }

  curve(x1, y1, x2, y2, stroke, thick, alpha) {
    const middle = (x1 + x2) / 2, d = `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
    this.root.append(svg("path", { d, fill: "none", stroke, "stroke-width": thick, "stroke-opacity": alpha.toFixed(4) }));
  }

  text(x, y, words, { fill, size, align = "left", bold = false, turn = 0, font = "sans-serif" }) {
    this.root.append(svg("text", {
      transform: `translate(${x} ${y})` + (turn ? ` rotate(${turn})` : ""), fill, "font-size": size,
      "font-family": font, "font-weight": bold ? 600 : 400, "text-anchor": SVG_ANCHOR[align], "dominant-baseline": "central",
    }, words));
  }

  raster(image, x, y, width, height) {
    const flat = document.createElement("canvas");
    flat.width = image.width;
    flat.height = image.height;
    flat.getContext("2d").drawImage(image, 0, 0);
    this.root.append(svg("image", {
      href: flat.toDataURL("image/png"), x, y, width, height, preserveAspectRatio: "none",
      style: "image-rendering:pixelated",
    }));
  }

  save(name) { download(new Blob([new XMLSerializer().serializeToString(this.root)], { type: "image/svg+xml" }), name); }
}

function download(blob, name) {
  const link = make("a", "", "", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// A square map of n x n values as one small image; `table` is 256 colours over sqrt(p).
function mapImage(values, n, table) {
  const image = new ImageData(n, n), pixels = new Uint32Array(image.data.buffer);
  for (let i = 0; i < n * n; i++) pixels[i] = table[Math.min(255, Math.round(255 * Math.sqrt(values[i])))];
  return toCanvas(image);
}

function toCanvas(image) {
  const small = new OffscreenCanvas(image.width, image.height);
  small.getContext("2d").putImageData(image, 0, 0);
  return small;
}

// 256 packed colours of the attention ramp (or towards `colour`), indexed by 255 sqrt(p).
function rampTable(paint, colour = null) {
  return Uint32Array.from({ length: 256 }, (_, i) => {
    const [r, g, b] = colour ? mix(paint.paper, colour, i / 255) : probabilityColour((i / 255) ** 2, paint);
    return (255 << 24) | (b << 16) | (g << 8) | r;
  });
}
