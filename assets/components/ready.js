// The status bar at the foot of every page. It is told last, so when it stands
// the page has drawn; attributes are set by script because text may hold
// anything, "</script>" included.
export default function (component) {
  const { parentElement, data } = component;
  const { text, status, lines, input, run, style } = unpack(data);
  const bar = child(parentElement, "div", "bw-status");
  requestAnimationFrame(() => {
    mendNavigation();
    mendHistory(text);
    mendFocus();
    closeSidebar();
    mendPrinting();
    mendTerms();
    nameCharts();
    mendRoom();
    mendRuns(parentElement);
    onThemeChange(parentElement, () => { // a chart has the colours that its run named
      if (document.querySelector(".js-plotly-plot")) send(component, { theme: true });
    });
    mendStyle(style);
    bar.replaceChildren(...lines.map((line) => make("p", "bw-said", line)), make("span", "", status), make("p", "bw-input", input), make("p", "bw-input bw-fields"));
    const told = news(lines, status);
    if (told) hear(parentElement, told); // else what was said last stays: it may not have been read out yet
    bar.setAttribute("data-text", text);
    bar.setAttribute("data-run", String(run));
    bar.setAttribute("data-ready", "");
  });
}

// What a run changed, for who hears the page: where one has come to, what there is to say, and of the status bar only what
// is another than before. A page that was just opened is read from its top anyway, and a heading that gets the focus too.
function news(lines, status) {
  const words = (name) => {
    const copy = document.querySelector(`[data-testid=stMain] ${name}`)?.cloneNode(true);
    for (const tip of copy?.querySelectorAll(".bw-tip") ?? []) tip.remove(); // a term's meaning stands within the term
    return copy?.textContent ?? "";
  };
  const before = window.__bwTold, now = { heading: words("h1"), lead: words(".bw-lead"), lines, parts: status.split(" · ") };
  window.__bwTold = now;
  if (!before) return lines.join(" ");
  const isElsewhere = now.heading !== before.heading, place = isElsewhere ? now.heading : now.lead;
  const isTold = isElsewhere ? isLost(window.__bwFocus) : now.lead === before.lead;
  const fresh = (kind) => now[kind].filter((one) => !before[kind].includes(one));
  return [...(isTold ? [] : [place]), ...fresh("lines"), ...fresh("parts")].join(" · ");
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
