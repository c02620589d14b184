"""Meaning: one word by layer, on a map, among its neighbours; sentences against each other."""

from __future__ import annotations

import html
from dataclasses import replace

import numpy as np
import streamlit as st

from bert_core.figures import meaning as figures
from bert_core.figures.meaning import YOURS, Line
from bert_core.measures.meaning import Neighbour, Occurrence, cosines_by_layer, nearest, project
from bert_core.measures.similarity import RandomPairs, similarity_matrix
from bert_core.trace import Array
from ui import components, controls, shell, state
from ui.state import Here
from ui.tables import Numbers
from ui.views.meaning_data import MOST_CHARACTERS, MOST_LINES, PARTS, WordSet, layer_of, library, word_set
from ui.views.task_models import examples, lines, marked, say, signed

#: Sentences that the matrices can bear.
MOST_SENTENCES = 14


def read_alone(here: Here) -> tuple[Here, ...]:
    """The visitor's sentences, each an input by itself, as this page reads them; it is said where one is cut."""
    texts = [text for text in (here.text, here.pair) if text and text.strip()] or [here.text]
    read = tuple(replace(here, text=text, pair=None) for text in dict.fromkeys(texts))
    for one in read:
        shell.say_cut(one)
    return read


def draw_layers(here: Here) -> None:
    """Cosine by layer, against the static vector and against two random words."""
    words = word_set(here)
    if words is None:
        return
    by_layer = cosines_by_layer(words.found)
    curves = figures.layer_lines(by_layer, words.senses)
    baseline = state.shared(library, here.model).baseline
    _in_words(words, curves)
    static = by_layer.to_static.mean(axis=1)
    components.chart(figures.layer_figure(curves, static, baseline), "meaning_layers",
                     _layer_numbers(curves, static, baseline))
    if not np.isfinite(by_layer.to_static).all():
        say(f"{here.model}'s word table is narrower than its layers, so no cosine to a static vector is drawn.")
    random = signed(baseline.mean[-1], plus="")
    say(f"In the last layer two random words of different sentences have cosine {random} on average: "
        "read every other line against that, not against 0.")


def _layer_numbers(curves: list[Line], static: Array, baseline: RandomPairs) -> Numbers:
    """The cosines of the chart by layer; `static` (L+1,) as layer_figure takes it."""
    found = {line.name: line.values for line in curves} | {"two random words": baseline.mean}
    if np.isfinite(static).all():
        found["with its own static vector"] = static
    return Numbers("Cosine by layer", ("layer", *found), [
        (name, *map(float, values)) for name, *values in zip(figures.layer_names(len(static)), *found.values())])


def _in_words(words: WordSet, curves: list[Line]) -> None:
    """The last layer's numbers: which sense each of the visitor's is nearer to, or the means."""
    yours = [one for one, sense in zip(words.found, words.senses) if sense == YOURS]
    several = any(line.own > 1 for line in curves)
    own = {n: [line for line in curves if line.own == n] for n in range(1, 1 + len(yours[:figures.MOST_OWN]))}
    nearest = {n: _nearest(f"your “{words.word}”" + (f" ({figures.own_name(n)})" if several else ""), compared)
               for n, compared in own.items() if len(compared) > 1}
    if not nearest:
        known = ", ".join(f"{line.name} {_cosine(line)}" for line in curves)
        say(f"“{words.word}” in the last layer, mean cosine: {known}.", strong=True)
    if not several:
        for line in nearest.values():
            say(line, strong=True)
        return
    lines([f"<b>{html.escape(nearest.get(n, figures.own_name(n)))}</b>&ensp;{marked(*figures.excerpt(yours[n - 1]))}"
           for n in own])
    if len(yours) > len(own):
        say(f"Your sentences have “{words.word}” in {len(yours)} places; the first {len(own)} have lines of their own.")


def _nearest(name: str, compared: list[Line]) -> str:
    """To which sense one of the visitor's is nearest, and how near it is to the others."""
    near, *others = sorted(compared, key=lambda line: -line.values[-1])
    rest = ", ".join(f"{_cosine(line)} to “{line.sense}”" for line in others)
    return f"In the last layer {name} is nearest to “{near.sense}”: cosine {_cosine(near)}, {rest}."


def _cosine(line: Line) -> str:
    """A line's value in the last layer."""
    return signed(line.values[-1], plus="")


def draw_map(here: Here) -> None:
    """Every occurrence as a point on the two main directions of one layer."""
    words = word_set(here, asks_layer=True)
    if words is None or words.layer is None:
        return
    if len(words.found) < 3:
        say("A projection needs three occurrences.", strong=True)
        return
    projection = project(np.stack([one.states[words.layer] for one in words.found]))
    figure = figures.map_figure(projection, words.found, words.senses, components.ink())
    components.chart(figure, "meaning_map", Numbers(
        "Where each occurrence lies", ("sentence", "meaning", "first direction", "second direction"),
        [(f"{n} {figures.excerpt(one)[0]}", sense, *map(float, point))
         for n, (one, sense, point) in enumerate(zip(words.found, words.senses, projection.points), 1)]))
    say(f"The two directions are fitted on exactly these {len(words.found)} points and hold "
        f"{100 * projection.explained.sum():.0f} % of their variance; what differs in the rest is not in the picture.")
    lines([f"<b>{n}&ensp;{html.escape(sense)}</b>: {marked(*figures.excerpt(one))}"
           for n, (one, sense) in enumerate(zip(words.found, words.senses), 1)])


def draw_neighbours(here: Here) -> None:
    """The nearest words of the sentence set, in context and by the static vector."""
    words = word_set(here)
    if words is None:
        return
    order = sorted(range(len(words.found)), key=lambda n: words.senses[n] != YOURS)
    options = [f"{n}. {_place(words, words.found[m])}" for n, m in enumerate(order, 1)]
    left, right = st.columns([2, 1], gap="medium")
    with left:
        chosen = words.found[order[options.index(controls.choice("In the sentence", options, "from", as_list=True))]]
    with right:
        layer = layer_of(len(chosen.states) - 1)
    pool = state.shared(library, here.model).words
    itself = not controls.toggle("Leave out the word itself", "other_words")
    context, static = st.columns(2, gap="large")
    with context:
        _neighbours(f"Nearest in context, layer {layer}", nearest(chosen, pool, layer, same_form=itself))
    with static:
        _neighbours("Nearest by the static vector, any context", nearest(chosen, pool, None, same_form=itself))


def _place(words: WordSet, one: Occurrence) -> str:
    """An occurrence's sentence, with its position where the word stands there more than once."""
    again = sum(other.text == one.text for other in words.found) > 1
    return one.text[:90] + (f" (“{one.word}” at position {one.positions[0]})" if again else "")


def _neighbours(title: str, found: list[Neighbour]) -> None:
    """A list of words in their sentences with the cosine."""
    st.html(f"<h2>{html.escape(title)}</h2>")
    lines([f"<b>{signed(cosine, plus='')}</b>&ensp;{marked(one.text, one.start, one.end)}" for one, cosine in found])


def draw_sentences(here: Here) -> None:
    """Three cosine matrices of whole sentences: [CLS], mean of tokens, static mean."""
    left, right = st.columns([2, 1], gap="medium")
    with left:
        own = controls.lines("Sentences, one a line", "compare_lines", MOST_CHARACTERS,
                             "Empty: eight shipped sentences.")[:MOST_LINES]
    with right:
        layer = layer_of(state.loaded(here.model).config.num_hidden_layers)
    wanted = (here.text, here.pair, *(own or examples("meaning")["similarity"]))
    sentences = list(dict.fromkeys(text for text in wanted if text and text.strip()))[:MOST_SENTENCES]
    traces = state.traces([here.request(text=text, pair=None, parts=PARTS) for text in sentences])
    kept = [(text, trace) for text, trace in zip(sentences, traces) if trace.encoding.content]
    if not kept:
        say("These sentences have special tokens only; type one that has words.", strong=True)
        return
    names = [str(n + 1) for n in range(len(kept))]
    titles = _vectors(here)
    for place, (kind, title) in zip(st.columns(len(titles), gap="small"), titles.items()):
        with place:
            cosines = similarity_matrix([trace for _, trace in kept], kind, layer)
            numbers = Numbers(title, ("sentence", *names), [(name, *row) for name, row in zip(names, cosines.tolist())])
            components.chart(figures.matrix_figure(cosines, names, title, components.ink()), f"meaning_{kind}", numbers)
    lines([f"<b>{name}</b>&ensp;{html.escape(text)}" for name, (text, _) in zip(names, kept)])


def _vectors(here: Here) -> dict[str, str]:
    """Kinds of sentence vectors that this model has -> their titles; what [CLS] can't show here is said."""
    loaded = state.loaded(here.model)
    titles = {"mean": "mean of the tokens", "static": "mean of static vectors"}
    if not loaded.tokenizer.has_cls:
        say(f"{here.model} puts no [CLS] before a sentence, so there is no matrix of it.")
        return titles
    name = loaded.tokenizer.encode("").tokens[0]
    if loaded.config.attention_kind == "causal":
        say(f"{here.model} reads one way: its {name} sees nothing but itself and is the same before every sentence.")
    return {"cls": name, **titles}
