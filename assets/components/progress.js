// Which lessons are done, kept by the browser and by nobody else.
const KEPT = "both-ways.lessons";

function stored() {
  try {
    const value = JSON.parse(localStorage.getItem(KEPT) || "[]");
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
  }
}

// What is kept, with what was changed in this tab since: another tab may have forgotten what this one still has.
export default function (component) {
  const { done, changes, lessons } = unpack(component.data), { parentElement } = component;
  const known = () => { const before = stored(); return lessons.filter((key) => before.includes(key)).sort(); };
  const before = known(), kept = lessons.filter((key) => changes[key] ?? before.includes(key)).sort();
  try {
    localStorage.setItem(KEPT, JSON.stringify(kept));
  } catch {
    return; // a browser that keeps nothing: progress lasts as long as the session
  }
  if (Object.keys(changes).length > 0 || String(kept) !== String(done)) send(component, { done: kept, changes });
  window.removeEventListener("storage", parentElement.hear);
  parentElement.hear = (event) => { // another tab has changed it
    if (event.key === KEPT || event.key === null) send(component, { done: known(), changes: {} });
  };
  window.addEventListener("storage", parentElement.hear);
  return () => window.removeEventListener("storage", parentElement.hear);
}
