// The browser's history: one entry for each run that changes the address, and every entry as it was drawn.
//
// What one types Streamlit writes over the present entry; what a run puts into the address or takes out of it gets an
// entry for each parameter. A new sentence would so be written over the entry of the last one, whose masks still stand
// in it, and Back would show the masks of one sentence on another. And a run that sends one to another page changes the
// address of the page that is left first: Back would lead to that one, which nobody has seen. Who opens another view of
// the page goes somewhere, as by a link: that gets an entry too, though Streamlit writes it as what is typed.

// Milliseconds in which the next run begins after one that ended before it had drawn, to send one to another page.
const GOES_ON = 500;

function mendHistory(text) {
  const entry = window.__bwEntry ?? watchHistory();
  const asked = new URLSearchParams(location.search).get("text");
  if (asked === null || asked === text) entry.isAhead = false;
  entry.isUnseen = false;
  rest(entry); // a short run's states may come as one, and its end is then no change of the state
}

function scriptState() { return document.querySelector("[data-testid=stApp]")?.getAttribute("data-test-script-state"); }

// Nothing runs and nothing was typed since: the address is what is on screen, and the next run makes an entry of its own.
// Where the run has not drawn the page it was a part's own, or another one follows, for which the entry stays open.
function rest(entry) {
  clearTimeout(entry.wait);
  const state = scriptState();
  if (state === "running") entry.isAhead = false;
  if (state !== "notRunning" || entry.isAhead) return;
  if (entry.isUnseen) entry.wait = setTimeout(close, GOES_ON, entry);
  else close(entry);
}

function close(entry) { Object.assign(entry, { drawn: location.href, isOpen: false, isUnseen: false }); }

function viewOf(address) { return new URL(address, location.href).searchParams.get("view"); }

// The present entry: its address when it was last at rest, whether the present run has made it, whether no picture of
// it was drawn yet, and whether somebody typed what no run has begun to draw yet.
function watchHistory() {
  const entry = (window.__bwEntry = { drawn: location.href, isOpen: false, isUnseen: false, isAhead: false });
  const push = history.pushState.bind(history), replace = history.replaceState.bind(history);
  const isHere = (address) => new URL(address, location.href).pathname === location.pathname;
  history.pushState = (state, title, address) => {
    // Whoever a lesson or a room sends to another page begins at its top.
    if (!isHere(address)) document.querySelector("[data-testid=stMain]")?.scrollTo(0, 0);
    if (entry.isOpen && (entry.isUnseen || isHere(address))) return replace(state, title, address);
    if (!entry.isOpen && location.href !== entry.drawn && isHere(entry.drawn)) replace(history.state, "", entry.drawn);
    Object.assign(entry, { isOpen: true, isUnseen: true });
    push(state, title, address);
  };
  history.replaceState = (state, title, address) => {
    const byHand = scriptState() === "notRunning";
    if (byHand) entry.isAhead = true;
    if (byHand && address && isHere(address) && viewOf(address) !== viewOf(location.href)) history.pushState(state, title, address);
    else replace(state, title, address);
  };
  window.addEventListener("popstate", () => {
    close(entry);
    entry.isAhead = false;
  });
  // Who goes on by a link leaves what is there, though it may be half drawn.
  window.addEventListener("click", (event) => { if (entry.isOpen && event.target.closest?.("a[href]")) close(entry); }, true);
  new MutationObserver(() => rest(entry)).observe(
    document.body, { attributes: true, subtree: true, attributeFilter: ["data-test-script-state"] });
  return entry;
}
