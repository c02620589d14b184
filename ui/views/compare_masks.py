"""Compare page: the masks side by side, and any head's attention under each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from bert_core.figures import compare as figures
from bert_core.measures import compare
from bert_core.measures.compare import Reading
from ui import components, controls
from ui.state import Here
from ui.views.compare_ask import VisitorEngine, ask, say

HINT = (
    "Rows look, columns are looked at. What the mask forbids is left empty: its weight is exactly 0. The framed row is "
    "the one that guesses the hidden word: BERT guesses at the [MASK] itself, a one-way reader from the token that it "
    "has just read. [CLS] is the token with which every reader starts, right to left too; it says nothing about the "
    "words. Move over a map or use the arrow keys for another row; click a small square to open that head."
)


def masks_and_heads(here: Here) -> None:
    """One head under each mask; below, how much of every head looks right."""
    asked = ask(here, beside=True, one_way=("left", "right"))
    wanted = ("both", "left", "hidden", *(["right"] if asked.readers.right else []))
    readings, gaps = compare.read(VisitorEngine(), asked.question, asked.readers, wanted, ("attention_probs",))
    traces = [reading.trace for reading in readings.values()]
    layers = max(trace.config.num_hidden_layers for trace in traces)
    heads = max(trace.config.num_attention_heads for trace in traces)
    first = figures.opening_head(traces)
    with asked.beside, controls.row():
        only_mask = controls.choice("Show", ["attention", "mask"], "show", "attention") == "mask"
        layer = controls.slider("Layer", 1, layers, "layer", first[0] + 1, width=105) - 1
        head = controls.slider("Head", 1, heads, "head", first[1] + 1, width=105) - 1
    components.mount("compare_maps", "compare_maps", _packed(readings, layer, head, only_mask),
                     _opener(layers, heads))
    for reader, reason in gaps.items():
        say(f"{figures.NAMES[reader]}: {reason}.", "cmp-small")


def _packed(readings: Mapping[str, Reading], layer: int, head: int, only_mask: bool) -> bytes:
    """A panel for each reader; only those who cut the sentence alike share the table."""
    alike = figures.cut_alike([reading.trace for reading in readings.values()])
    header, arrays = [], {}
    for n, (reader, reading) in enumerate(readings.items()):
        shown = reading.trace, reading.positions, layer, head, only_mask
        header.append(figures.panel(shown[0], reader, *shown[1:]) | {"in_table": alike[n]})
        arrays |= {f"{name}{n}": array for name, array in figures.panel_arrays(*shown).items()}
    others = [figures.NAMES[reader] for reader, same in zip(readings, alike, strict=True) if not same]
    caption = "The framed row under each reader" + (f"; {', '.join(others)}: other pieces, so not here" * bool(others))
    return components.pack({"readers": header, "hint": HINT, "caption": caption}, arrays)


def _opener(layers: int, heads: int):
    """The on_event of the maps: {'layer', 'head'}, 0-based, moves the sliders."""

    def receive(message: dict[str, Any]) -> None:
        layer, head = components.number(message, "layer", layers), components.number(message, "head", heads)
        st.session_state["layer"], st.session_state["head"] = layer + 1, head + 1

    return receive
