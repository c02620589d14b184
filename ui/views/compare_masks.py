"""Compare page: the three masks, and any head's attention under each."""

from __future__ import annotations

import streamlit as st

from bert_core.figures import compare as figures
from bert_core.measures import compare
from bert_core.measures.compare import Reading
from ui import controls
from ui.state import Here
from ui.views.compare_ask import VisitorEngine, ask, chart, say

#: Readers that have a mask of their own, in the order of the page.
SHOWN = ("both", "left", "hidden")


def masks_and_heads(here: Here) -> None:
    """Masks side by side; below, one head under each, and how much of it looks right."""
    asked = ask(here)
    wanted = (*SHOWN, "right") if asked.readers.right else SHOWN
    readings, gaps = compare.read(VisitorEngine(), asked.question, asked.readers, wanted, ("attention_probs",))
    with controls.row():
        what = controls.choice("Show", ["attention", "mask"], "show", "attention")
        config = readings["both"].trace.config
        layer = controls.slider("Layer", 1, config.num_hidden_layers, "layer", config.num_hidden_layers) - 1
        head = controls.slider("Head", 1, config.num_attention_heads, "head", 1) - 1
    columns = st.columns(len(readings), gap="medium")
    for column, (reader, reading) in zip(columns, readings.items(), strict=True):
        with column:
            say(f"**{figures.NAMES[reader]}** · {reading.models[0]}", "cmp-small")
            _maps(reading, what, layer, head)
    for reader, reason in gaps.items():
        say(f"{figures.NAMES[reader]}: {reason}.", "cmp-small")
    say("Rows look, columns are looked at; the framed row is the hidden word. What a mask forbids is left empty: "
        "its weight is exactly 0. Below: how much of each head's attention goes from the hidden word to its right.",
        "cmp-small")


def _maps(reading: Reading, what: str, layer: int, head: int) -> None:
    """One reader's column: its map, and the share that each head sends right."""
    trace, place = reading.trace, reading.positions[0]
    layer, head = min(layer, trace.config.num_hidden_layers - 1), min(head, trace.config.num_attention_heads - 1)
    if what == "mask":
        figure = figures.mask_figure(trace, place, reading.reader)
        rows = [(f"{n} {token}", int(sum(row))) for n, (token, row) in
                enumerate(zip(trace.encoding.tokens, figures.allowed_pairs(trace), strict=True))]
        chart(figure, f"map_{reading.reader}", "How many tokens each token may see", ("token", "sees"), rows)
    else:
        figure = figures.attention_figure(trace, layer, head, place, reading.reader)
        rows = [(f"{n} {token}", float(p)) for n, (token, p) in
                enumerate(zip(trace.encoding.tokens, trace.attention_probs[layer, head, place], strict=True))]
        chart(figure, f"map_{reading.reader}", f"Attention of the hidden word, layer {layer + 1}, head {head + 1}",
              ("to", "attention"), rows)
    shares = figures.side_shares(trace, reading.positions)["right"]
    table = [(f"layer {n + 1}", *map(float, row)) for n, row in enumerate(shares)]
    chart(figures.right_share_figure(shares, reading.reader, (layer, head)), f"right_{reading.reader}",
          "Share of the hidden word's attention that goes to its right",
          ("", *(f"head {n + 1}" for n in range(shares.shape[1]))), table)
