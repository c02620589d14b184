// What a browser keeps for its visitor, and nobody else does: under a name, [[key, text], ...], the newest first.
function stored(name, most) {
  try {
    const all = JSON.parse(localStorage.getItem(name) || "[]");
    const isPair = (one) => Array.isArray(one) && one.length === 2 && one.every((part) => typeof part === "string");
    return Array.isArray(all) ? all.filter(isPair).slice(0, most) : [];
  } catch {
    return [];
  }
}

// What is kept, with what was changed in this tab since (an empty text: forgotten): another tab may have changed the rest.
export default function (component) {
  const { name, known, changes, most } = unpack(component.data), { parentElement } = component;
  const changed = new Map(changes), others = stored(name, most).filter(([key]) => !changed.has(key));
  const now = [...changes.filter(([, text]) => text !== "").reverse(), ...others].slice(0, most);
  try {
    if (changes.length > 0) localStorage.setItem(name, JSON.stringify(now));
  } catch {
    send(component, { refused: true }); // a browser that keeps nothing: it lasts as long as the session
    return;
  }
  if (changes.length > 0 || JSON.stringify(now) !== JSON.stringify(known)) send(component, { kept: now, changes });
  window.removeEventListener("storage", parentElement.hear);
  parentElement.hear = (event) => { // another tab has changed it
    if (event.key === name || event.key === null) send(component, { kept: stored(name, most), changes: [] });
  };
  window.addEventListener("storage", parentElement.hear);
  return () => window.removeEventListener("storage", parentElement.hear);
}
