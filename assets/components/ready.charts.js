// A chart is one picture with a name, which comes with it (ui/components.py: chart): a screen reader would read the words
// that Plotly draws one by one, without what they belong to.
function nameCharts() {
  if (window.__bwCharts) return;
  window.__bwCharts = new MutationObserver(() => {
    for (const chart of document.querySelectorAll(".js-plotly-plot")) {
      const name = chart.layout?.meta?.name;
      if (!name) continue;
      put(chart, "role", "img");
      put(chart, "aria-label", name);
    }
  });
  window.__bwCharts.observe(document.body, { childList: true, subtree: true });
}
