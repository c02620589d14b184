"""The Attention page's step view: one query token through one head and the rest of its layer, with its operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import streamlit as st

from bert_core import MissingPart
from bert_core.measures import feed_forward, neurons
from bert_core.measures.head_steps import PARTS, HeadSteps, head_steps
from ui import chips, components, controls, notices, state
from ui.state import Here
from ui.views import attention, operands

#: q.k, scale, mask, softmax, weighted values, projection, feed-forward.
STEPS = 7
ELSEWHERE = "Where else are these neurons strong?"


def draw(here: Here) -> None:
    """One head for one query token, or why this model's steps can't be seen; the neurons while their step is open."""
    layer, head = attention.opened(here)
    step = state.param("step", chips.place(STEPS, 1), 0)
    wide = step == STEPS - 1
    trace = state.trace(here.request(parts=PARTS + feed_forward.PARTS if wide else PARTS))
    query = state.param("token", chips.place(len(trace)), chips.first_choice(trace.encoding))
    loaded = state.loaded(here.model)
    try:
        arrays = _arrays(head_steps(trace, loaded, layer, head, query))
        if wide:
            arrays |= _neurons(feed_forward.feed_forward(trace, loaded, layer, query))
    except MissingPart as problem:
        notices.note(f"No steps: {problem}.")
        return
    layers, heads = attention.sizes(here)
    key = state.param("key", chips.place(len(trace)), None)
    neuron = state.param("neuron", chips.place(trace.config.intermediate_size), None) if wide else None
    header = {
        "tokens": list(trace.encoding.tokens), "chips": [kind for _, kind in chips.describe(trace.encoding)],
        "layer": layer, "head": head, "query": query, "step": step, "key": key, "neuron": neuron,
        "layers": layers, "heads": heads,
        "activation": operands.activation_name(trace.config.hidden_act),
    }
    picture = st.container()
    if wide and controls.toggle(ELSEWHERE, "strong"):
        header["elsewhere"] = _elsewhere(here.model, layer, arrays["neurons"].tolist())
    with picture:
        components.mount("attention_steps", "attention_steps", components.pack(header, arrays),
                         on_event=_receive(layers, heads, len(trace), trace.config.intermediate_size))


def _arrays(steps: HeadSteps) -> dict[str, np.ndarray]:
    named = steps._asdict() | {"norms": steps.contribution_norms}
    del named["contribution_norms"]
    return {name: array.astype(np.uint8 if name == "blocked" else np.float32) for name, array in named.items()}


def _neurons(steps: feed_forward.FeedForward) -> dict[str, np.ndarray]:
    return {name: array.astype(np.int32 if name == "neurons" else np.float32) for name, array in steps._asdict().items()
            if name != "output"} | {"layer_output": steps.output.astype(np.float32)}


def _elsewhere(model: str, layer: int, numbers: list[int]) -> list[list[neurons.Place]]:
    """For each of these neurons, where in the shipped sentences it gives most."""
    found = state.shared(_activations, model, layer)
    return [list(neurons.strongest_places(found, number)) for number in numbers]


@st.cache_resource(max_entries=4, show_spinner="Reading the shipped sentences …")
def _activations(model: str, layer: int) -> neurons.Activations:
    return neurons.corpus_activations(state.engine(), model, layer)


def _receive(layers: int, heads: int, tokens: int, neurons_of_layer: int) -> Callable[[Mapping[str, Any]], None]:
    """on_event: where the visitor went, checked, into the address."""

    def receive(message: Mapping[str, Any]) -> None:
        layer, head = components.number(message, "layer", layers), components.number(message, "head", heads)
        token, step = components.number(message, "token", tokens), components.number(message, "step", STEPS)
        state.set_param("layer", str(layer + 1))
        state.set_param("head", str(head + 1))
        state.set_param("token", str(token))
        state.set_param("step", str(step + 1) if step else None)
        for name, bound in (("key", tokens), ("neuron", neurons_of_layer)):  # null until one is chosen
            chosen = None if message.get(name) is None else components.number(message, name, bound)
            state.set_param(name, None if chosen is None else str(chosen))

    return receive
