// Presenter mode: a clicker's PageDown and PageUp (or Alt with an arrow) turn
// pages, Escape leaves. What a link fixes stays in sight: controls can't be used
// at all; pictures can be read by pointer and keyboard, and take no change. Whether
// the window is low it tells, so that charts are drawn to fit.

// What chooses inside a picture; data-chooses marks a canvas that does.
const CHOOSERS = "button, input, select, textarea, [role=option], [data-chooses]";

export default function (component) {
  const { parentElement, data } = component;
  parentElement.__bwStop?.(); // Streamlit calls the last run's clean-up, at the end; each run ends the one before
  const { keys, controls, pictures, room, low } = unpack(data);
  const hint = child(parentElement, "p", "bw-presenter");
  hint.textContent = keys ? "Page Down, Page Up: next and previous page · Esc: usual type size" : "";
  const onKey = (event) => {
    if (!keys || event.defaultPrevented || document.querySelector("[role=dialog], [role=listbox]")) return;
    const key = turn(event);
    if (!key) return;
    event.preventDefault();
    send(component, { key, at: Date.now() });
  };
  const onChoice = (event) => {
    if (!chooses(event) || (keys && turn(event))) return;
    event.stopImmediatePropagation();
    if (event.type !== "pointerdown") event.preventDefault(); // a press still brings the focus
  };
  const freeze = () => {
    if (controls) for (const element of document.querySelectorAll(controls)) element.toggleAttribute("inert", true);
    if (pictures) for (const element of document.querySelectorAll(pictures)) element.toggleAttribute("data-fixed", true);
  };
  const little = matchMedia(room || "not all");
  const onRoom = () => { if (keys && little.matches !== low) send(component, { low: Number(little.matches) }); };
  little.addEventListener("change", onRoom);
  onRoom();
  const watch = new MutationObserver(freeze);
  document.addEventListener("keydown", onKey);
  for (const kind of ["pointerdown", "click", "keydown"]) document.addEventListener(kind, onChoice, true);
  if (controls || pictures) watch.observe(document.body, { childList: true, subtree: true });
  freeze();
  parentElement.__bwStop = () => {
    document.removeEventListener("keydown", onKey);
    for (const kind of ["pointerdown", "click", "keydown"]) document.removeEventListener(kind, onChoice, true);
    little.removeEventListener("change", onRoom);
    watch.disconnect();
    for (const name of ["inert", "data-fixed"]) {
      for (const element of document.querySelectorAll(`[${name}]`)) element.removeAttribute(name);
    }
  };
  return parentElement.__bwStop;
}

// What a key does in presenter mode: 'next', 'previous', 'leave' or ''.
function turn({ key, altKey }) {
  if (key === "Escape") return "leave";
  if (key === "PageDown" || (altKey && key === "ArrowRight")) return "next";
  return key === "PageUp" || (altKey && key === "ArrowLeft") ? "previous" : "";
}

// Whether an event would change a fixed picture. Tab goes on, and arrows among tokens only move the focus.
function chooses(event) {
  const path = event.composedPath(), picture = path.findIndex((one) => one.hasAttribute?.("data-fixed"));
  const chooser = path.slice(0, Math.max(picture, 0)).find((one) => one.matches?.(CHOOSERS));
  if (!chooser || event.key === "Tab" || event.key === "Escape") return false;
  return event.type !== "keydown" || !chooser.matches("[role=option]") || event.key === "Enter" || event.key === " ";
}
