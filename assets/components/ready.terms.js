// Terms of the glossary (ui/glossary.py), whose meanings CSS shows: one opens upwards where the status bar leaves it no
// room, and Escape takes it away until the pointer or the focus comes again.
function mendTerms() {
  if (window.__bwTerms) return;
  window.__bwTerms = true;
  for (const kind of ["pointerover", "focusin"]) {
    document.addEventListener(kind, ({ target, relatedTarget }) => {
      const term = target.closest?.(".bw-term");
      if (!term || term.contains(relatedTarget)) return;
      term.removeAttribute("data-closed");
      requestAnimationFrame(() => giveRoom(term)); // the focus has then brought it in sight
    });
  }
  document.addEventListener("keydown", (event) => {
    const open = document.querySelectorAll(".bw-term:not([data-closed]):is(:hover, :focus)");
    if (event.key !== "Escape" || !open.length) return;
    for (const term of open) term.toggleAttribute("data-closed", true);
    event.preventDefault(); // presenter.js: the next one leaves
  }, true);
}

function giveRoom(term) {
  term.removeAttribute("data-up");
  const tip = term.querySelector(".bw-tip").getBoundingClientRect();
  const floor = Math.min(innerHeight, document.querySelector(".bw-status")?.getBoundingClientRect().top ?? innerHeight);
  term.toggleAttribute("data-up", tip.bottom > floor && term.getBoundingClientRect().top > tip.height + 8);
}
