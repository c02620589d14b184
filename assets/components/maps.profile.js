// Beside a map that is alone on its page and has numbers, no words, along its sides: the row under the cursor as a
// line, and what is read out, where else half of a wide page would stay empty. The line is of the map's own numbers.

// Whether there is room for it: several maps stand beside each other, and one of words has few rows.
function hasProfile(state) { return state.panels.length === 1 && state.ticks === undefined && state.rows.length > 0; }

// The figure; readProfile draws the line into it.
function profileBox(state, readout, move, cursor) {
  const box = make("figure", "bw-profile"), frame = make("div", "bw-frame bw-ticked");
  const title = make("figcaption"), limit = state.panels[0].limit;
  title.append(make("span", "bw-profile-row"), make("span", "bw-axes", `${state.column_word} →  ${state.panels[0].name} ↑`));
  const picture = svg("svg", { viewBox: `0 0 ${state.columns.length} 2`, preserveAspectRatio: "none", "aria-hidden": "true" });
  picture.append(svg("path", { class: "bw-profile-zero", d: `M0 1H${state.columns.length}` }),
    svg("path", { class: "bw-profile-line" }), svg("path", { class: "bw-profile-at" }));
  frame.append(picture);
  frame.onpointermove = (event) => {
    const place = picture.getBoundingClientRect();
    move(cursor.r, Math.floor(((event.clientX - place.left) / place.width) * state.columns.length));
  };
  const axis = make("span", "bw-ticks bw-ticks-left", "", { "aria-hidden": "true" });
  [limit, 0, -limit].forEach((value, n) => {
    const tick = axis.appendChild(make("span", "", readNumber(value)));
    tick.style.top = `${50 * n}%`;
  });
  frame.append(axis);
  box.append(title, frame, readout);
  return box;
}

// The line of the cursor's row, and where the cursor is on it.
function readProfile(box, state, cursor) {
  const panel = state.panels[0], high = (c) => (1 - cell(state, panel, cursor.r, c) / panel.limit).toFixed(4);
  putText(box.querySelector(".bw-profile-row"), `${state.row_word} ${state.rows[cursor.r]}`);
  put(box.querySelector(".bw-profile-line"), "d", state.columns.map((_, c) => `${c ? "L" : "M"}${c + 0.5} ${high(c)}`).join(""));
  put(box.querySelector(".bw-profile-at"), "d", `M${cursor.c + 0.5} 0V2`);
}
