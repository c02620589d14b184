// Paper is white, and narrower than a screen: while a page is printed its charts are as much smaller as the page is, and
// who looks at the dark theme gets the pictures of the light one (assets/app_study.css: data-printing). It shows no fields
// and no controls: what they hold is said at its foot. Of a lesson it shows what to notice, once there is a prediction.
const PAPER = 685; // CSS pixels between the margins of A4 and Letter, held upright

// A chart's colours on a dark page and on a light one, as ON_DARK in bert_core/figures/theme.py has them.
const IN_LIGHT = {
  "#56B4E9": "#0072B2", "#F0B840": "#E69F00", "#2CC79B": "#009E73", "#F0894A": "#D55E00", "#E29BC4": "#CC79A7",
  "#E2D2FF": "#55197A", "#CFC84A": "#8C6D00",
  ...Object.fromEntries(KINDS.dark.map((dark, n) => [dark, KINDS.light[n]])),
};

function mendPrinting() {
  if (window.__bwPrints) return;
  window.__bwPrints = true;
  const page = document.documentElement;
  const charts = "[data-testid=stElementContainer]:has(.js-plotly-plot)";
  let restore = () => {};
  const print = (isDark, zoom) => {
    for (const chart of document.querySelectorAll(charts)) chart.style.zoom = zoom;
    if (page.hasAttribute("data-printing") === isDark) return;
    restore();
    page.toggleAttribute("data-printing", isDark);
    restore = isDark ? lightenCharts() : () => {};
    for (const host of document.querySelectorAll("[data-theme]")) { theme(host); host.__bwDraw?.(); }
  };
  addEventListener("beforeprint", () => {
    const wide = document.querySelector("[data-testid=stMainBlockContainer] > [data-testid=stVerticalBlock]");
    putText(document.querySelector(".bw-fields"), fieldsInWords());
    for (const one of document.querySelectorAll(".bw-predicted details:not([open])")) one.open = one.dataset.opened = true;
    const isDark = cssValue(document.querySelector(".stApp"), "color-scheme") === "dark";
    print(isDark, wide ? String(Math.min(1, PAPER / wide.clientWidth)) : "");
  });
  addEventListener("afterprint", () => {
    for (const one of document.querySelectorAll("details[data-opened]")) { one.open = false; delete one.dataset.opened; }
    print(false, "");
  });
}

// Give Plotly's charts the colours of the light theme; what puts back those that they had.
function lightenCharts() {
  const light = new Map(Object.entries(IN_LIGHT).map(([dark, colour]) => [rgb(parseColour(dark)), colour]));
  const before = [];
  const paint = (element, part, colour) => {
    before.push([element, part, element.style[part]]);
    element.style[part] = colour;
  };
  for (const element of document.querySelectorAll(".js-plotly-plot svg [style]")) {
    for (const part of ["fill", "stroke"]) {
      const colour = light.get(element.style[part].replaceAll(" ", ""));
      if (colour) paint(element, part, colour);
    }
  }
  for (const slice of document.querySelectorAll(".treemaplayer .slice")) { // its name stands on its colour, not on paper
    const ink = inkOn(parseColour(slice.querySelector(".surface").style.fill));
    for (const text of slice.querySelectorAll("text")) paint(text, "fill", ink);
  }
  return () => { for (const [element, part, colour] of before.reverse()) element.style[part] = colour; };
}

// The fields and controls of the open view; the shared ones are told by what the page has read (ready.js).
function fieldsInWords() {
  const all = (name) => [...document.querySelectorAll(`[data-testid=stMain] [data-testid=${name}]`)]
    .filter((one) => !one.closest(".st-key-text, .st-key-pair, .st-key-view") && one.checkVisibility());
  const label = (one) => one.querySelector("[data-testid=stWidgetLabel]")?.textContent.trim() ?? "";
  const values = (one, part, value) => [...one.querySelectorAll(part)].map(value).join(", ");
  const said = (name, value) => all(name).map((one) => [label(one), value(one)]).filter((pair) => pair[0] && pair[1]);
  const fields = all("stTextInput").map((one) => one.querySelector("input:not([type=password])")).filter((one) => one?.value)
    .map((one) => [one.getAttribute("aria-label"), `“${one.value}”`]);
  const chosen = said("stButtonGroup", (one) => values(one, "[data-selected=true]", (button) => button.textContent.trim()));
  const moved = said("stSlider", (one) => values(one, "[data-testid=stSliderThumbValue]", (value) => value.textContent.trim()));
  const ticked = all("stCheckbox").filter((one) => one.querySelector("input").checked).map((one) => [one.textContent.trim(), "yes"]);
  return [...fields, ...chosen, ...moved, ...ticked].map(([name, value]) => `${name}: ${value}`).join(" · ");
}
