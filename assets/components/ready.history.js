// The browser's history: one entry for each run that changes the address, and every entry as it was drawn.
//
// What one types Streamlit writes over the present entry; what a run puts into the address or takes out of it gets an
// entry for each parameter. A new sentence would so be written over the entry of the last one, whose masks still stand
// in it, and Back would show the masks of one sentence on another.

function mendHistory() {
  const entry = window.__bwEntry ?? watchHistory();
  setTimeout(() => rest(entry), 500); // a short run's states may come as one
}

// Nothing runs: the address is what is on screen, and the next run makes an entry of its own.
function rest(entry) {
  const state = document.querySelector("[data-testid=stApp]")?.getAttribute("data-test-script-state");
  if (state === "notRunning") Object.assign(entry, { drawn: location.href, isOpen: false });
}

// The present entry: its address when it was last at rest, and whether the present run has made it.
function watchHistory() {
  const entry = (window.__bwEntry = { drawn: location.href, isOpen: false });
  const push = history.pushState.bind(history), replace = history.replaceState.bind(history);
  const isHere = (address) => new URL(address, location.href).pathname === location.pathname;
  history.pushState = (state, title, address) => {
    if (entry.isOpen && isHere(address)) return replace(state, title, address);
    if (!entry.isOpen && location.href !== entry.drawn && isHere(entry.drawn)) replace(history.state, "", entry.drawn);
    entry.isOpen = true;
    push(state, title, address);
  };
  window.addEventListener("popstate", () => Object.assign(entry, { drawn: location.href, isOpen: false }));
  new MutationObserver(() => rest(entry)).observe(
    document.body, { attributes: true, subtree: true, attributeFilter: ["data-test-script-state"] });
  return entry;
}
