// A phone on its side has no room for the sidebar: it is closed there on every page that one comes to, and when it is
// turned, as Streamlit closes it on a phone held upright. assets/app.css keeps it out of sight until then.
const SIDEWAYS = "(max-height: 500px) and (max-width: 950px)";

function closeSidebar() {
  if (!window.__bwTurns) {
    window.__bwTurns = matchMedia(SIDEWAYS);
    window.__bwTurns.addEventListener("change", () => {
      for (const wait of [0, 150, 400]) setTimeout(closeNow, wait); // Streamlit opens it some time after the turn
    });
  }
  const page = location.pathname;
  if (window.__bwClosedOn === page) return;
  window.__bwClosedOn = page;
  closeNow();
  document.body.toggleAttribute("data-drawn", true);
}

function closeNow() {
  if (!matchMedia(SIDEWAYS).matches) return;
  document.querySelector("[data-testid=stSidebar][data-collapsed=false] [data-testid=stSidebarCollapseButton] button")?.click();
}
