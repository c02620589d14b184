// A phone on its side has no room for the sidebar: it is closed there on every page that one comes to, as Streamlit
// closes it on a phone held upright. assets/app.css keeps it out of sight until then.
function closeSidebar() {
  const page = location.pathname;
  if (window.__bwClosedOn === page) return;
  window.__bwClosedOn = page;
  if (matchMedia("(max-height: 500px) and (max-width: 950px)").matches) {
    document.querySelector("[data-testid=stSidebar][data-collapsed=false] [data-testid=stSidebarCollapseButton] button")?.click();
  }
  document.body.toggleAttribute("data-drawn", true);
}
