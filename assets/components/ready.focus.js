// The focus stays with who uses the keyboard. Streamlit takes a button away, or switches it off, in the very run that it
// set going (Play, Train, Undo all changes), and the focus would fall to the document: whoever hears the page would be
// back at its top. It goes to the same widget where that was only built anew, else to what stands in its place now, else
// to what is next to it; on another page to the heading. Nothing scrolls, and whoever went on meanwhile is left there.

// Milliseconds in which a widget that was switched off may come back, as "One step" does when the step is done.
const COMES_BACK = 1500;
const STOPS = "a[href], button, input, select, textarea, summary, [tabindex]";
const WRITTEN_IN = "textarea, input:not([type=checkbox], [type=radio], [type=range])";

function mendFocus() {
  if (window.__bwFocus) return;
  const focus = (window.__bwFocus = { last: null, since: 0, wait: 0, isPointed: false });
  const forget = () => { focus.last = null; };
  document.addEventListener("focusin", ({ target }) => {
    focus.last = target.closest("[data-testid=stMain]") ? placed(target) : null;
  });
  document.addEventListener("focusout", ({ target }) => { // it was left for nothing, and is still there: by hand
    requestAnimationFrame(() => { if (focus.last?.element === target && isUsable(target) && !isHeld(target)) forget(); });
  });
  document.addEventListener("pointerdown", ({ target }) => {
    focus.isPointed = true;
    if (!focus.last?.element.contains(target)) forget();
  }, true);
  document.addEventListener("keydown", () => { focus.isPointed = false; }, true);
  const look = () => { if (isLost(focus)) giveBack(focus); else focus.since = 0; };
  new MutationObserver(look).observe(
    document.body, { childList: true, subtree: true, attributeFilter: ["disabled", "data-test-script-state"] });
}

// What has the focus, what it is called, and its ancestors with its place in each: it may be gone when they are needed.
function placed(element) {
  const way = [];
  for (let one = element; one.parentElement && !one.matches("[data-testid=stMain]"); one = one.parentElement) {
    const parent = one.parentElement;
    way.push({ parent, at: [...parent.children].indexOf(one), before: one.previousElementSibling });
  }
  return { element, way, key: keyOf(element), name: nameOf(element), page: location.pathname };
}

function keyOf(element) {
  return [...(element.closest("[class*=st-key-]")?.classList ?? [])].find((one) => one.startsWith("st-key-"));
}
function nameOf(element) { return element.getAttribute("aria-label") ?? element.textContent.trim(); }
function isHeld(element) { return document.activeElement === element; }
function isUsable(one) { return one.isConnected && !one.disabled && one.checkVisibility() && !one.closest("[inert]"); }
function isLost({ last }) { return last !== null && isHeld(document.body) && !isUsable(last.element); }

// What stands there already takes it at once, so that the document is not told in between; the rest when the run has drawn.
function giveBack(focus) {
  clearTimeout(focus.wait);
  if (!isLost(focus)) return;
  focus.since ||= Date.now();
  const waits = focus.last.element.isConnected && Date.now() - focus.since < COMES_BACK;
  const next = nextTo(focus.last, scriptState() === "notRunning" && !waits);
  if (next === null) focus.wait = setTimeout(giveBack, 50, focus);
  else if (focus.isPointed && next.matches(WRITTEN_IN)) focus.last = null; // no keyboard comes up under a finger
  else next.focus({ preventScroll: true });
}

// Where the focus goes, or null as long as that is not drawn.
function nextTo(last, isDrawn) {
  if (last.page !== location.pathname) return isDrawn ? heading() : null;
  return sameAs(last) ?? standsFor(last) ?? (isDrawn ? besides(last) ?? heading() : null);
}

// What the Tab key stops at in an element, those in the shadow of a component too.
function stopsIn(element) {
  const isStop = (one) => one.matches(STOPS) && one.tabIndex >= 0 && isUsable(one);
  return [element, ...(element.shadowRoot ?? element).querySelectorAll("*")].flatMap(
    (one) => (one !== element && one.shadowRoot ? stopsIn(one) : isStop(one) ? [one] : []));
}

function sameAs({ key, name }) {
  return key && [...document.getElementsByClassName(key)].flatMap(stopsIn).find((one) => nameOf(one) === name);
}

// What stands in its place now.
function standsFor({ way }) {
  const step = way.find(({ parent }) => parent.isConnected), children = [...(step?.parent.children ?? [])];
  const there = step && children[placeIn(children, step)];
  return there && stopsIn(there)[0];
}

// What is behind it, or before it, in the nearest ancestor that has anything.
function besides({ way }) {
  for (const step of way.filter(({ parent }) => parent.isConnected)) {
    const children = [...step.parent.children], at = placeIn(children, step);
    const found = children.slice(at).flatMap(stopsIn)[0] ?? children.slice(0, at).flatMap(stopsIn).at(-1);
    if (found) return found;
  }
  return null;
}

// Behind what stood before it, which may have been built anew; something may have come in further up.
function placeIn(children, { at, before }) {
  const key = before && keyOf(before);
  const n = children.findIndex((one) => one === before || (key && one.classList.contains(key)));
  return n < 0 ? at : n + 1;
}

// The page's, which takes the focus by script alone.
function heading() {
  const one = document.querySelector("[data-testid=stMain] h1");
  if (one) put(one, "tabindex", "-1");
  return one;
}
