// Paper is white, and narrower than a screen: while a page is printed its charts are as much smaller as the page is, and
// who looks at the dark theme gets the pictures of the light one (assets/app_study.css: data-printing).
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
    const isDark = cssValue(document.querySelector(".stApp"), "color-scheme") === "dark";
    print(isDark, wide ? String(Math.min(1, PAPER / wide.clientWidth)) : "");
  });
  addEventListener("afterprint", () => print(false, ""));
}
