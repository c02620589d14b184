// The browser's history: one entry for each run that changes the address, and every entry as it was drawn.
//
// What one types Streamlit writes over the present entry; what a run puts into the address or takes out of it gets an
// entry for each parameter. A new sentence would so be written over the entry of the last one, whose masks still stand
// in it, and Back would show the masks of one sentence on another.

function mendHistory(text) {
  const entry = window.__bwEntry ?? watchHistory();
  const asked = new URLSearchParams(location.search).get("text");
  if (asked === null || asked === text) entry.isAhead = false;
  rest(entry); // a short run's states may come as one, and its end is then no change of the state
}

function scriptState() { return document.querySelector("[data-testid=stApp]")?.getAttribute("data-test-script-state"); }

// Nothing runs and nothing was typed since: the address is what is on screen, and the next run makes an entry of its own.
function rest(entry) {
  const state = scriptState();
  if (state === "running") entry.isAhead = false;
  if (state === "notRunning" && !entry.isAhead) Object.assign(entry, { drawn: location.href, isOpen: false });
}

// The present entry: its address when it was last at rest, whether the present run has made it, and whether somebody
// typed what no run has begun to draw yet.
function watchHistory() {
  const entry = (window.__bwEntry = { drawn: location.href, isOpen: false, isAhead: false });
  const push = history.pushState.bind(history), replace = history.replaceState.bind(history);
  const isHere = (address) => new URL(address, location.href).pathname === location.pathname;
  history.pushState = (state, title, address) => {
    if (entry.isOpen && isHere(address)) return replace(state, title, address);
    if (!entry.isOpen && location.href !== entry.drawn && isHere(entry.drawn)) replace(history.state, "", entry.drawn);
    entry.isOpen = true;
    push(state, title, address);
  };
  history.replaceState = (state, title, address) => {
    if (scriptState() === "notRunning") entry.isAhead = true;
    replace(state, title, address);
  };
  window.addEventListener("popstate", () => Object.assign(entry, { drawn: location.href, isOpen: false, isAhead: false }));
  new MutationObserver(() => rest(entry)).observe(
    document.body, { attributes: true, subtree: true, attributeFilter: ["data-test-script-state"] });
  return entry;
}
