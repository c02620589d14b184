// The status bar at the foot of every page. It is told last, so when it stands
// the page has drawn; attributes are set by script because text may hold
// anything, "</script>" included.
export default function (component) {
  const { parentElement, data } = component;
  const { text, status, lines, input, run, style } = unpack(data);
  const bar = child(parentElement, "div", "bw-status");
  bar.setAttribute("role", "status");
  requestAnimationFrame(() => {
    mendNavigation();
    mendHistory(text);
    closeSidebar();
    mendPrinting();
    mendTerms();
    nameCharts();
    mendRoom();
    mendStyle(style);
    bar.replaceChildren(...lines.map((line) => make("p", "bw-said", line)), make("span", "", status), make("p", "bw-input", input), make("p", "bw-input bw-fields"));
    bar.setAttribute("data-text", text);
    bar.setAttribute("data-run", String(run));
    bar.setAttribute("data-ready", "");
  });
}

// Streamlit puts the headings of its navigation between <ul> and <li>, which is
// no list for a screen reader; the links stay links in a <nav>.
function mendNavigation() {
  const list = document.querySelector("[data-testid=stSidebarNavItems]");
  for (const element of list ? [list, ...list.querySelectorAll("li")] : []) element.setAttribute("role", "presentation");
}

// What a teacher asks, and what came out, comes into a follower's strip by itself: it is read out.
function mendRoom() { document.querySelector(".st-key-bw_room")?.setAttribute("aria-live", "polite"); }

// A page that stayed open while its server gave way to a newer one has that one's components, and takes its style.
function mendStyle(address) {
  const link = document.querySelector('link[rel=stylesheet][href*="bothways/app."]');
  const newest = new URL(address, document.baseURI).href;
  if (link && link.href !== newest) link.href = newest;
}
