"""[CLS] through the layers: what a probe reads there, and what [CLS] looks at."""

from __future__ import annotations

import numpy as np
import streamlit as st

from bert_core import Trace, TraceRequest
from bert_core.figures import cls as figures
from bert_core.measures.cls import attention_of_layer, cls_attention
from bert_core.measures.probe import Probe, fit_probe, read_probe
from bert_core.tasks.support import run_all
from ui import components, controls, state
from ui.state import Here
from ui.views.task_models import examples, say, share

PARTS = ("hidden_states", "attention_probs")


def draw(here: Here) -> None:
    """The probes' reading by layer, then [CLS]'s attention by layer and head."""
    names = [entry["name"] for entry in examples("cls")["probes"]]
    left, right = st.columns([2, 1], gap="medium")
    with left:
        chosen = controls.choice("Read from [CLS]", names, "probe")
    trace = state.trace(here.request(parts=PARTS))
    with right:
        layer = controls.slider("Layer (heads below)", 1, trace.config.num_hidden_layers, "layer",
                                trace.config.num_hidden_layers)
    probe = probe_of(here.model, chosen)
    reading = read_probe(probe, trace.hidden_states[:, 0])
    components.chart(figures.probe_figure(probe, reading), "cls_probe")
    say(_in_words(probe, reading))
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
    return np.stack([trace.hidden_states[:, 0] for trace in run_all(state.engine(), requests, keep=False)])


def _in_words(probe: Probe, reading: np.ndarray) -> str:
    best = int(probe.accuracy.argmax())
    names = figures.layer_names(len(reading))
    return (f"In layer {names[-1]} the probe reads “{probe.labels[1]}” with {share(reading[-1])}. "
            f"It is right most often in layer {names[best]}: {share(probe.accuracy[best])} of {probe.sentences} "
            "sentences, each judged by a probe that had not seen it (guessing gives 50 %). "
            "Before layer 1 every sentence has the same [CLS], so there is nothing to read.")


def _draw_attention(trace: Trace, layer: int) -> None:
    """Two maps: layers against tokens, and the heads of one layer against tokens."""
    weights = cls_attention(trace)  # (L, H, T)
    tokens = trace.encoding.tokens
    layers = np.stack([attention_of_layer(trace, n) for n in range(len(weights))])
    left, right = st.columns(2, gap="medium")
    with left:
        st.html("<h2>What [CLS] looks at, by layer</h2>")
        rows = [str(n + 1) for n in range(len(layers))]
        components.chart(figures.attention_figure(layers, tokens, rows, "layer (mean of its heads)"), "cls_layers")
    with right:
        st.html(f"<h2>The heads of layer {layer + 1}</h2>")
        rows = [str(n + 1) for n in range(weights.shape[1])]
        components.chart(figures.attention_figure(weights[layer], tokens, rows, "head"), "cls_heads")
