// The status bar at the foot of every page. It is told last, so when it stands
// the page has drawn; attributes are set by script because text may hold
// anything, "</script>" included.
export default function (component) {
  const { parentElement, data } = component;
  const { text, status, lines, run } = unpack(data);
  const bar = child(parentElement, "div", "bw-status");
  bar.setAttribute("role", "status");
  requestAnimationFrame(() => {
    bar.replaceChildren(...lines.map((line) => make("p", "bw-said", line)), make("span", "", status));
    bar.setAttribute("data-text", text);
    bar.setAttribute("data-run", String(run));
    bar.setAttribute("data-ready", "");
  });
}
