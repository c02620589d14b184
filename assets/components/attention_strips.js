// The same tokens once for each way of asking what matters, shaded by its answer.

export default function (component) {
  const { parentElement, data } = component;
  const fresh = unpack(data);
  const root = child(parentElement, "section", "strips-root", { "aria-label": "Attention and attribution on the same tokens" });
  const draw = () => keepFocus(root, () => drawStrips(root, fresh, theme(parentElement)));
  draw();
  onThemeChange(parentElement, draw);
}

function drawStrips(root, data, look) {
  const boxes = data.methods.map((method, row) => stripOf(data, method, row, look));
  const old = root.querySelector(".bw-numbers"), before = [...root.querySelectorAll(".strips-tokens")];
  const places = before.map((list) => [list.scrollTop, list.__bwShown]);
  root.replaceChildren(...boxes, ...agreement(data, look), make("p", "strips-why", data.why), ...(old ? [old] : []));
  root.querySelectorAll(".strips-tokens").forEach((list, row) => {
    const [top, shown] = places[row] ?? [];
    list.__bwShown = shown;
    boundRow(list, ".strips-explained", 25);
    if (list.__bwShown === shown) list.scrollTop = top; // the list is a new one, and who has scrolled it stays there
  });
  numbersTable(root, "Every token by every method", ["token", "position", ...data.methods.map((m) => m.title)],
    () => data.tokens.map((token, i) => [token, i, ...data.methods.map((_, row) => valueAt(data, row, i))]));
}

function valueAt(data, row, i) { return data.arrays.values.data[row * data.tokens.length + i]; }

function stripOf(data, method, row, look) {
  const box = make("figure", "strips-method", "", { "data-method": method.key });
  const title = make("figcaption");
  title.append(make("strong", "", method.title), make("span", "strips-quiet", method.note));
  const list = make("ul", "strips-tokens", "", { "aria-label": method.title });
  const count = data.tokens.length, values = data.arrays.values.data.subarray(row * count, (row + 1) * count);
  const limit = Math.max(...values.filter((v) => !Number.isNaN(v)).map(Math.abs), 1e-12);
  data.tokens.forEach((token, i) => {
    const value = values[i], size = Number.isNaN(value) ? 0 : value; // NaN: this method can't judge the token
    const colour = method.signed ? signedColour(size, limit, look) : probabilityColour(size / limit, look);
    const chip = make("li", `strips-token strips-${data.kinds[i]}${i === data.explained ? " strips-explained" : ""}`, "", { "data-value": value });
    chip.append(make("span", "", token), make("span", "strips-value", short(value, method.signed)));
    chip.style.background = rgb(colour);
    chip.style.color = inkOn(colour);
    list.append(chip);
  });
  box.append(title, list);
  return box;
}

function short(value, signed) {
  if (Number.isNaN(value)) return "–";
  const text = Math.abs(value) < 0.0005 ? "0" : Math.abs(value) < 9.995 ? value.toFixed(Math.abs(value) < 0.0995 ? 3 : 2) : value.toFixed(0);
  return signed && value > 0 && text !== "0" ? `+${text}` : text.replace("-", "−");
}

// Do the methods rank the tokens alike? A small table of Spearman's rho.
function agreement(data, look) {
  if (!data.agreement.length) return [];
  const table = make("table", "strips-agreement"), head = table.createTHead().insertRow();
  for (const name of ["method", ...data.methods.map((m) => m.title)]) head.append(make("th", "", name, { scope: "col" }));
  const body = table.createTBody();
  data.agreement.forEach((row, i) => {
    const line = body.insertRow();
    line.append(make("th", "", data.methods[i].title, { scope: "row" }));
    row.forEach((rho, j) => {
      const words = i === j ? "" : rho === null ? "–" : rho.toFixed(2).replace("-", "−"); // null: all of one are equal
      const cell = make("td", "", words), colour = signedColour(i === j ? 0 : rho ?? 0, 1, look);
      cell.style.background = rgb(colour);
      cell.style.color = inkOn(colour);
      line.append(cell);
    });
  });
  const box = make("div", "strips-scroll", "", { tabindex: "0", role: "region", "aria-label": "Rank agreement of the methods" });
  box.append(table);
  return [make("p", "strips-quiet strips-ask", "Do they rank the words alike? Spearman's ρ by size, for or against; specials left out"), box];
}
