// Tokens as chips, the atom of every page (ui/chips.py).
export default function (component) {
  const { parentElement, data } = component;
  const { chips, select, selected, fixed, label, opens } = unpack(data);
  const row = child(parentElement, "div", "bw-row");
  choiceRow(component, row, chips, selected, { select, label, opens, fixed: new Set(fixed) });
  if (select !== "none") boundRow(row, ".bw-on");
}
