// The open head in the shipped sentences: where it looks most there. Sent only when it is asked for.

function drawPlaces({ data, layer, head }, parent) {
  const { places, arrays: a, layers, heads } = data, box = make("section", "att-places att-list"), list = make("ol");
  for (let place = layer * heads + head; place < a.place_weight.data.length; place += layers * heads) {
    const [words, query, key] = [places.sentences[a.place_sentence.data[place]], a.place_query.data[place], a.place_key.data[place]];
    if (!(a.place_weight.data[place] > 0)) continue;
    const line = weightLine(arrow(nameAmong(words, query), nameAmong(words, key)), a.place_weight.data[place], place);
    line.append(sentenceOf(words, query, key));
    list.append(line);
  }
  box.append(make("h3", "", "Strongest from word to word in the shipped sentences"), list);
  parent.append(box, kindsOfWords(data, layer * heads + head));
}

// What kinds of words get the head's attention there; the mark is how much of the text they are.
function kindsOfWords({ places, arrays: a, layers, heads }, head) {
  const box = make("section", "att-places att-kinds att-list"), list = make("ol");
  places.kinds.forEach((kind, n) => {
    const share = a.kind_share.data[n * layers * heads + head], often = a.kind_often.data[n];
    if (!(often > 0) || Number.isNaN(share)) return;
    const line = weightLine(kind, share, n);
    line.children[1].style.setProperty("--often", `${100 * often}%`);
    line.lastChild.textContent = `${percent(share)} · ${percent(often)}`;
    list.append(line);
  });
  box.append(make("h3", "", "Kinds of words it looks at there"),
    make("p", "att-quiet", "of what words give to words · of all words, the mark"), list);
  return box;
}

// The sentence as it was written, the word that looks underlined, the one it looks at marked.
function sentenceOf(words, query, key) {
  const line = make("span", "att-sentence");
  words.forEach((word, n) => {
    const mark = make("span", [n === query ? "att-looks" : "", n === key ? "att-seen" : ""].join(" ").trim(), word);
    line.append(n && !/^[.,?!;:]/.test(word) ? " " : "", mark);
  });
  return line;
}
