// Presenter mode: a clicker's PageDown and PageUp (or Alt with an arrow) turn
// pages, Escape leaves; with `fixed` the controls are shown and can't be used.
export default function (component) {
  const { parentElement, data } = component;
  const { keys, fixed, selector } = unpack(data);
  const hint = child(parentElement, "p", "bw-presenter");
  hint.textContent = keys ? "Page Down, Page Up: next and previous page · Esc: leave presenter mode" : "";
  const onKey = (event) => {
    if (!keys || event.defaultPrevented || document.querySelector("[role=dialog], [role=listbox]")) return;
    const back = event.key === "PageUp" || (event.altKey && event.key === "ArrowLeft");
    const on = event.key === "PageDown" || (event.altKey && event.key === "ArrowRight");
    const key = event.key === "Escape" ? "leave" : on ? "next" : back ? "previous" : "";
    if (!key) return;
    event.preventDefault();
    send(component, { key, at: Date.now() });
  };
  const freeze = () => {
    for (const element of document.querySelectorAll(selector)) element.toggleAttribute("inert", fixed);
  };
  const watch = new MutationObserver(freeze);
  document.addEventListener("keydown", onKey);
  if (fixed) watch.observe(document.body, { childList: true, subtree: true });
  freeze();
  return () => {
    document.removeEventListener("keydown", onKey);
    watch.disconnect();
    for (const element of document.querySelectorAll("[inert]")) element.removeAttribute("inert");
  };
}
