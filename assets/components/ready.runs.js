// Where a training run is stands in a line that changes all the time. While the run goes on it is heard once in a while:
// every change read out would leave no room for anything else.
const SAY_EVERY = 30_000;
const GOING = ["waiting", "running"];

function mendRuns(parent) {
  const said = (window.__bwRun ??= { state: "", text: "", at: 0, parent: null });
  if (!said.parent) {
    new MutationObserver(() => sayRun(said)).observe(document.body, { childList: true, subtree: true, characterData: true });
  }
  said.parent = child(parent, "div", "bw-run-heard");
  if (!said.parent.firstChild) hear(said.parent, "");
  sayRun(said);
}

function sayRun(said) {
  const line = document.querySelector("[data-testid=stMain] .bw-result[data-state]");
  const before = said.state, { state } = line?.dataset ?? { state: "" }, text = line?.textContent ?? "";
  if (text === said.text || (state === before && GOING.includes(state) && Date.now() - said.at < SAY_EVERY)) return;
  Object.assign(said, { state, text, at: Date.now() });
  if (before && text) hear(said.parent, text); // with the page it is read as the rest of it
}
