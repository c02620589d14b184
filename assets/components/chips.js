// Tokens as chips, the atom of every page (ui/chips.py).
export default function (component) {
  const { parentElement, data } = component;
  const { chips, select, selected, fixed, label } = unpack(data);
  const row = child(parentElement, "div", "bw-row");
  const draw = (now) => chipRow(row, chips, {
    select, label, selected: now, fixed: new Set(fixed),
    onSelect: (after) => { draw(after); send(component, { selected: [...after] }); },
  });
  draw(new Set(selected));
  onThemeChange(parentElement, () => draw(new Set(selected)));
}
