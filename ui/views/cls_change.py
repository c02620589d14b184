"""[CLS], change a word: the old answer and the new one side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from bert_core import Trace, TraceRequest
from bert_core.figures import cls as figures
from bert_core.measures.cls import Arrival, arrival, changed_words, usual_distance
from bert_core.tasks import Classification
from bert_core.tasks.support import trimmed
from ui import components, controls, state
from ui.state import Here
from ui.tables import Numbers
from ui.views.cls_answer import answer, labels_of, side, verdict
from ui.views.cls_layers import cls_states
from ui.views.task_models import DEFAULT_OF, examples, follow, put, say, share, signed

PARTS = ("logits", "hidden_states")
TITLE = "Where the change arrives"
#: Said of two sentences with the same tokens.
SAME = "To the model both are the same sentence: change a word in the copy."


def draw(here: Here) -> None:
    """Two answers, what changed between them, and in which layer the change arrives."""
    changed = dict(examples("cls")["changes"]).get(here.text, here.text)  # a shipped sentence comes with its change
    follow("changed", changed)
    new = controls.text("Changed sentence", "changed", changed, max_chars=2000)
    _examples()
    old_trace, new_trace = state.traces([
        here.request(parts=PARTS), TraceRequest(new, here.pair, model=here.model, parts=PARTS)])
    old_marks, new_marks = changed_words(old_trace.encoding.tokens, new_trace.encoding.tokens)
    results = answer(old_trace), answer(new_trace)
    labels = labels_of(old_trace)
    verdict([side(results[0], labels, "Old", _marked(old_trace, old_marks)),
             side(results[1], labels, "New", _marked(new_trace, new_marks))],
            "cls_change", "Old and new answer")
    is_changed = any(old_marks) or any(new_marks)
    say(_in_words(*results) if is_changed else SAME, strong=True)
    if is_changed and state.loaded(here.model).tokenizer.has_cls:
        name = old_trace.encoding.tokens[0]
        usual = state.shared(usual_of, here.model)
        found = arrival(old_trace.hidden_states[:, 0], new_trace.hidden_states[:, 0], usual)
        st.html(f"<h2>{TITLE}</h2>")
        components.chart(figures.arrival_figure(found, name), "cls_arrival", _numbers(found, name))
        say(f"1 means: as far apart as the {name} of two unrelated sentences in that layer, on average over "
            f"{len(unrelated())} shipped ones. {_largest_step(found)}")


@st.cache_resource(max_entries=8, show_spinner="Measuring unrelated sentences …")
def usual_of(model: str) -> np.ndarray:
    """How far the [CLS] of two unrelated sentences are from one another in each layer of this model, (L+1,)."""
    return usual_distance(cls_states(model, unrelated()))


def unrelated() -> list[str]:
    """Of each pair of the probes' sentences one, from either class in turn: no two have anything to do with another."""
    return [entry["sentences"][n % 2][n] for entry in examples("cls")["probes"]
            for n in range(len(entry["sentences"][0]))]


def _numbers(found: Arrival, name: str) -> Numbers:
    columns = ("layer", "times as far as two unrelated sentences", f"1 − cosine of old and new {name}",
               "1 − cosine of two unrelated sentences, mean")
    return Numbers(TITLE, columns, [(layer, *map(float, values)) for layer, *values in zip(
        figures.layer_names(len(found.apart)), *found)])


def _largest_step(found: Arrival) -> str:
    """The layer in which the distance grows most, in words."""
    if not found.relative.any():
        return "Nothing arrives here: in every layer it is the same for both sentences."
    layer, names = int(np.diff(found.relative).argmax()) + 1, figures.layer_names(len(found.relative))
    before = "the input" if layer == 1 else f"layer {names[layer - 1]}"
    return (f"The distance grows most from {before} ({found.relative[layer - 1]:.2f}) to layer {names[layer]} "
            f"({found.relative[layer]:.2f}). A distance far below 1 can be read too: see the probes under Layers.")


def _marked(trace: Trace, changed: Sequence[bool]) -> list[list]:
    """(what stands before it, piece of the text, changed) for the content tokens, as typed."""
    encoding, rows, last = trace.encoding, [], (0, 0, 0)
    for n in encoding.content:
        sentence = encoding.sequence_ids[n] or 0
        text = encoding.pair if sentence else encoding.text
        start, end = trimmed(text, *encoding.offsets[n])
        if (sentence, start, end) == last and rows:  # a tokenizer that aligns whole words only
            rows[-1][2] |= bool(changed[n])
            continue
        gap = text[last[2]:start] if sentence == last[0] else " "
        rows.append([gap, text[start:end], bool(changed[n])])
        last = sentence, start, end
    return rows


def _in_words(old: Classification, new: Classification) -> str:
    if not old.probabilities:
        before, after = (signed(one.values[old.label], plus="") for one in (old, new))
        return f"{old.label}: {before} before, {after} after."
    before, after = old.probabilities[old.label], new.probabilities[old.label]
    change = f"“{old.label}” goes from {share(before)} to {share(after)}"
    return f"{change}; the answer is now “{new.label}”." if new.label != old.label else f"{change}; the answer stays."


def _examples() -> None:
    with st.container(horizontal=True, gap="small"):
        for n, (old, new) in enumerate(examples("cls")["changes"]):
            st.button(f"{old} → {new}", key=f"try_change_{n}", on_click=_put, args=(old, new), type="tertiary")


def _put(old: str, new: str) -> None:
    put(old)
    st.session_state["changed"] = new
    st.session_state[DEFAULT_OF + "changed"] = new
