// Paper is white, and narrower than a screen: while a page is printed a chart is as wide as the paper, and who looks at
// the dark theme gets the pictures of the light one (assets/app_study.css: data-printing).
const PAPER = 700; // CSS pixels between the margins of A4 and Letter, held upright

function mendPrinting() {
  if (window.__bwPrints) return;
  window.__bwPrints = true;
  const charts = () => document.querySelectorAll("[data-testid=stPlotlyChart]");
  const look = (asPaper) => {
    if (!document.documentElement.toggleAttribute("data-printing", asPaper) && asPaper) return;
    for (const host of document.querySelectorAll("[data-theme]")) { theme(host); host.__bwDraw?.(); }
  };
  addEventListener("beforeprint", () => {
    for (const chart of charts()) chart.style.zoom = Math.min(1, PAPER / chart.clientWidth);
    if (cssValue(document.querySelector(".stApp"), "color-scheme") === "dark") look(true);
  });
  addEventListener("afterprint", () => {
    for (const chart of charts()) chart.style.zoom = "";
    if (document.documentElement.hasAttribute("data-printing")) look(false);
  });
}
