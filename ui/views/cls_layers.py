"""[CLS] through the layers: what a probe reads there, and what [CLS] looks at."""

from __future__ import annotations

import html

import numpy as np
import streamlit as st

from bert_core import Trace, TraceRequest
from bert_core.figures import cls as figures
from bert_core.figures.columns import joined
from bert_core.measures.cls import attention_of_layer, cls_attention
from bert_core.measures.probe import Probe, fit_probe, read_probe
from bert_core.serving import EVERYONE
from ui import components, controls, notices, state
from ui.state import Here
from ui.tables import Numbers
from ui.views.task_models import examples, say, share

PARTS = ("hidden_states", "attention_probs")
#: A classifier that has a [CLS], offered where the chosen model has none.
INSTEAD = "twin-bert-sst2"


def draw(here: Here) -> None:
    """The probes' reading by layer, then [CLS]'s attention by layer and head; a line where there is no [CLS]."""
    if not state.loaded(here.model).tokenizer.has_cls:
        state.stop(f"{here.model} puts no [CLS] before its input and classifies from another token, so there "
                   f"is none to follow through the layers. Choose a BERT, such as {INSTEAD}, for this view.", INSTEAD)
    names = [entry["name"] for entry in examples("cls")["probes"]]
    left, right = st.columns([2, 1], gap="medium")
    with left:
        chosen = controls.choice(f"Read from {here.encoding.tokens[0]}", names, "probe")
    trace = state.trace(here.request(parts=PARTS))
    with right:
        layer = controls.slider("Layer (heads below)", 1, trace.config.num_hidden_layers, "layer",
                                trace.config.num_hidden_layers)
    probe = state.shared(probe_of, here.model, chosen)
    reading = read_probe(probe, trace.hidden_states[:, 0])
    components.chart(figures.probe_figure(probe, reading), "cls_probe", _probe_numbers(probe, reading, trace))
    say(_in_words(probe, reading, trace))
    _draw_attention(trace, layer - 1)


@st.cache_resource(max_entries=8, show_spinner="Fitting a probe on every layer …")
def probe_of(model: str, name: str) -> Probe:
    """The probe of this name on every layer of this model."""
    entry = next(one for one in examples("cls")["probes"] if one["name"] == name)
    sentences = [text for group in entry["sentences"] for text in group]
    states = cls_states(model, sentences)
    classes = np.repeat([0, 1], [len(group) for group in entry["sentences"]])
    pairs = np.concatenate([np.arange(len(group)) for group in entry["sentences"]])
    return fit_probe(states, classes, pairs, tuple(entry["labels"]))


def cls_states(model: str, sentences: list[str]) -> np.ndarray:
    """[CLS] of each sentence in each layer, (N, L+1, D)."""
    requests = [TraceRequest(text, model=model, parts=("hidden_states",)) for text in sentences]
    traces = state.engine().run_many(requests, EVERYONE, keep=False)
    return np.stack([trace.hidden_states[:, 0] for trace in traces])


def _probe_numbers(probe: Probe, reading: np.ndarray, trace: Trace) -> Numbers:
    """The probe's reading and its worth by layer."""
    columns = ("layer", f"probability of “{probe.labels[1]}”", "right on sentences it was not fitted on",
               "standard deviation over the folds")
    return Numbers(f"What a probe reads from {trace.encoding.tokens[0]}", columns, [
        (name, *map(float, values))
        for name, *values in zip(figures.layer_names(len(reading)), reading, probe.accuracy, probe.spread)])


def _in_words(probe: Probe, reading: np.ndarray, trace: Trace) -> str:
    names = figures.layer_names(len(reading))
    best = [names[n] for n in np.flatnonzero(probe.accuracy == probe.accuracy.max())]
    where = f"layers {', '.join(best[:-1])} and {best[-1]}" if len(best) > 1 else f"layer {best[0]}"
    return (f"In layer {names[-1]} the probe reads “{probe.labels[1]}” with {share(reading[-1])}. "
            f"It is right most often in {where}: {share(probe.accuracy.max())} of {probe.sentences} "
            "sentences, each judged by a probe that had not seen it (guessing gives 50 %). "
            f"Before layer 1 every sentence has the same {trace.encoding.tokens[0]}, so there is nothing to read.")


def _draw_attention(trace: Trace, layer: int) -> None:
    """Two maps: layers against tokens, and the heads of one layer against tokens."""
    weights = cls_attention(trace)  # (L, H, T)
    layers = np.stack([attention_of_layer(trace, n) for n in range(len(weights))])
    title = f"What {trace.encoding.tokens[0]} looks at, by layer"
    left, right = st.columns(2, gap="medium")
    with left:
        _attention_map(title, layers, trace, "layer (mean of its heads)", "cls_layers")
    with right:
        _attention_map(f"The heads of layer {layer + 1}", weights[layer], trace, "head", "cls_heads")
    if (size := joined(len(trace))) > 1:
        notices.note(f"So many tokens don't fit on these maps: {size} neighbours share a column, which shows the "
                     "largest of their weights. The tables have every token.")


def _attention_map(title: str, weights: np.ndarray, trace: Trace, row: str, key: str) -> None:
    """Weights (rows, T) from [CLS] as a map under its title, with its table."""
    tokens, rows = trace.encoding.tokens, [str(n + 1) for n in range(len(weights))]
    names = [f"{n} {token}" for n, token in enumerate(tokens)]
    st.html(f"<h2>{html.escape(title)}</h2>")
    components.chart(figures.attention_figure(weights, tokens, rows, row, tokens[0]), key, Numbers(
        title, (row, *names), [(name, *values) for name, values in zip(rows, weights.tolist())]))
