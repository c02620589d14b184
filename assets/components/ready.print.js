// Paper is white, and narrower than a screen: while a page is printed its charts are as much smaller as the page is, and
// who looks at the dark theme gets the pictures of the light one (assets/app_study.css: data-printing). It shows no fields:
// what they hold is said at its foot. Of a lesson it shows what to notice, once there is a prediction.
const PAPER = 685; // CSS pixels between the margins of A4 and Letter, held upright

function mendPrinting() {
  if (window.__bwPrints) return;
  window.__bwPrints = true;
  const page = document.documentElement;
  const charts = "[data-testid=stElementContainer]:has(.js-plotly-plot)";
  const print = (isDark, zoom) => {
    for (const chart of document.querySelectorAll(charts)) chart.style.zoom = zoom;
    if (page.hasAttribute("data-printing") === isDark) return;
    page.toggleAttribute("data-printing", isDark);
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

// The fields of the open view; the shared ones are told by what the page has read (ready.js).
function fieldsInWords() {
  const fields = document.querySelectorAll("[data-testid=stMain] [data-testid=stTextInput] input:not([type=password])");
  return [...fields].filter((one) => one.value && !one.closest(".st-key-text, .st-key-pair"))
    .map((one) => `${one.getAttribute("aria-label")}: “${one.value}”`).join(" · ");
}
