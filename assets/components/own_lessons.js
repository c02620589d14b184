// The lessons that were made in this browser, kept by it and by nobody else: [[id, packed], ...], the newest first.
const KEPT = "both-ways.own-lessons";

function stored(most) {
  try {
    const all = JSON.parse(localStorage.getItem(KEPT) || "[]");
    const isOne = (one) => Array.isArray(one) && one.length === 2 && one.every((part) => typeof part === "string");
    return Array.isArray(all) ? all.filter(isOne).slice(0, most) : [];
  } catch {
    return [];
  }
}

export default function (component) {
  const { kept, changes, most } = unpack(component.data), changed = Object.entries(changes);
  const others = stored(most).filter(([id]) => !(id in changes));
  const now = [...changed.filter(([, packed]) => packed).reverse(), ...others].slice(0, most);
  try {
    if (changed.length > 0) localStorage.setItem(KEPT, JSON.stringify(now));
  } catch {
    return; // a browser that keeps nothing: the link has all of it
  }
  const packed = now.map(([, one]) => one);
  if (changed.length > 0 || String(packed) !== String(kept)) send(component, { kept: packed, changes });
}
