"""Compare page: the masks side by side, and any head's attention under each."""

from __future__ import annotations

from typing import Any

import streamlit as st

from bert_core.figures import compare as figures
from bert_core.measures import compare
from ui import components, controls
from ui.state import Here
from ui.views.compare_ask import VisitorEngine, ask, say

HINT = (
    "Rows look, columns are looked at. What the mask forbids is left empty: its weight is exactly 0. The framed row is "
    "the one that guesses the hidden word: BERT guesses at the [MASK] itself, a one-way reader from the token that it "
    "has just read. Move over a map or use the arrow keys for another row; click a small square to open that head."
)


def masks_and_heads(here: Here) -> None:
    """One head under each mask; below, how much of every head looks right."""
    asked = ask(here)
    wanted = ("both", "left", "hidden", *(["right"] if asked.readers.right else []))
    readings, gaps = compare.read(VisitorEngine(), asked.question, asked.readers, wanted, ("attention_probs",))
    config = readings["both"].trace.config
    with controls.row():
        only_mask = controls.choice("Show", ["attention", "mask"], "show", "attention") == "mask"
        layer = controls.slider("Layer", 1, config.num_hidden_layers, "layer", min(2, config.num_hidden_layers)) - 1
        head = controls.slider("Head", 1, config.num_attention_heads, "head", 1) - 1
    header, arrays = [], {}
    for n, (reader, reading) in enumerate(readings.items()):
        header.append(figures.panel(reading.trace, reader, reading.positions))
        found = figures.panel_arrays(reading.trace, reading.positions, layer, head, only_mask)
        arrays |= {f"{name}{n}": array for name, array in found.items()}
    low, _ = figures.window_around(len(asked.encoding), asked.positions[0])
    data = components.pack({
        "readers": header, "layer": layer, "head": head, "low": low, "what": "mask" if only_mask else
        f"layer {layer + 1}, head {head + 1}", "hint": HINT, "caption": "The framed row under each reader",
    }, arrays)
    components.mount("compare_maps", "compare_maps", data,
                     _opener(config.num_hidden_layers, config.num_attention_heads))
    for reader, reason in gaps.items():
        say(f"{figures.NAMES[reader]}: {reason}.", "cmp-small")


def _opener(layers: int, heads: int):
    """The on_event of the maps: {'layer', 'head'}, 0-based, moves the sliders."""

    def receive(message: dict[str, Any]) -> None:
        layer, head = components.number(message, "layer", layers), components.number(message, "head", heads)
        st.session_state["layer"], st.session_state["head"] = layer + 1, head + 1

    return receive
