// From [CLS] to the logits, dimension by dimension: one strip of D cells for each
// operand, the same dimension in the same place. Arrows or hover choose one.
export default function (component) {
  const { parentElement, data } = component;
  const payload = unpack(data);
  const root = child(parentElement, "div", "bw-operands");
  const frame = child(root, "div", "bw-frame");
  const line = child(root, "p", "bw-says");
  const state = { at: payload.at };
  const draw = () => drawOperands(frame, line, payload, state, theme(parentElement));
  draw();
  onWidthChange(frame, draw);
  numbersTable(root, payload.label, ["dimension", ...payload.rows.map((row) => row.name)], () =>
    Array.from({ length: payload.size }, (_, d) => [String(d), ...payload.rows.map((_, r) => operand(payload, r, d))]));
  onThemeChange(parentElement, draw);
}

function operand({ arrays, size }, row, dimension) { return arrays.values.data[row * size + dimension]; }

const STRIP = 34, NAME = 22, GAP = 12;

function drawOperands(frame, line, payload, state, look) {
  const width = Math.max(260, Math.min(frame.clientWidth || 640, 1400));
  const height = payload.rows.length * (STRIP + NAME + GAP);
  const { element, context } = canvas(frame, "bw-strips", width, height, payload.label);
  context.font = `${15 * typeScale()}px ${look.font}`;
  context.textBaseline = "middle";
  payload.rows.forEach((row, r) => {
    const y = r * (STRIP + NAME + GAP);
    context.fillStyle = rgb(look.ink);
    context.textAlign = "left";
    context.fillText(row.name, 0, y + NAME / 2, width - 130);
    context.textAlign = "right";
    context.fillText(row.note, width, y + NAME / 2, 125);
    drawMap(context, 0, y + NAME, width, STRIP, 1, payload.size, (_, d) => signedColour(operand(payload, r, d), row.limit, look));
    context.strokeStyle = rgb(look.line);
    context.strokeRect(0.5, y + NAME + 0.5, width - 1, STRIP - 1);
  });
  const x = (state.at + 0.5) * width / payload.size;
  context.strokeStyle = rgb(look.ink);
  context.lineWidth = 2;
  payload.rows.forEach((_, r) => { // across the strips, not through their names
    const y = r * (STRIP + NAME + GAP) + NAME;
    context.beginPath();
    context.moveTo(x, y - 3);
    context.lineTo(x, y + STRIP + 3);
    context.stroke();
  });
  line.textContent = `dimension ${state.at}: ` + payload.rows.map((row, r) => `${row.name} ${readNumber(operand(payload, r, state.at))}`).join(" · ");
  sayPlace(element, state.at, payload.size, line.textContent);
  const move = (d) => {
    state.at = Math.max(0, Math.min(payload.size - 1, d));
    drawOperands(frame, line, payload, state, look);
  };
  element.onpointermove = element.onpointerdown = (event) => {
    const box = element.getBoundingClientRect();
    move(Math.floor((event.clientX - box.left) * payload.size / box.width));
  };
  element.onkeydown = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -32, PageDown: 32 }[plainKey(event)];
    if (step === undefined) return;
    event.preventDefault();
    move(state.at + step);
  };
}
