"""Compare page: what reaches BERT's guess and GPT's through all layers, and how much of it from the right."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from bert_core.figures.compare import NAMES, asking_row
from bert_core.figures.masking import percent
from bert_core.measures.compare import Reading
from bert_core.measures.flow import LENGTH_PARTS, Flow, by_lengths, by_weights, flow
from bert_core.model import Model
from ui import chips, state
from ui.views import attention_flow
from ui.views.compare_ask import say

#: Who is followed, and what a run of theirs has to keep for it.
READERS, PARTS = ("both", "left"), LENGTH_PARTS


def draw(readings: Mapping[str, Reading]) -> None:
    """What the right side gives to each, and the two streams side by side.

    Args:
        readings: made with PARTS.
    """
    found = {reader: _followed(readings[reader]) for reader in READERS if reader in readings}
    given = [f"**{_share(_from_the_right(readings[reader], stream))}** in {readings[reader].models[0]}"
             for reader, stream in found.items()]
    say(f"Of what reaches the guess, the words right of the gap give {', '.join(given)}.")
    for column, (reader, stream) in zip(st.columns(2, gap="large"), found.items(), strict=False):
        with column:
            _one(readings[reader], stream)
    say(f"Shares are counted by {_counted(readings)}. Grey is what a token keeps of its own, coloured what it takes "
        "from others.", "cmp-small")


def _share(value: float) -> str:
    return percent(value) if value else "nothing"


def _followed(reading: Reading) -> Flow:
    """The stream that reaches the token which guesses: by vectors where they can be seen, else by weights."""
    loaded, trace = state.loaded(reading.models[0]), reading.trace
    mixed = by_lengths(trace, loaded) if isinstance(loaded.model, Model) else by_weights(trace)
    return flow(mixed, asking_row(trace, reading.positions))


def _counted(readings: Mapping[str, Reading]) -> str:
    """How the shares of these readers are counted."""
    models = [state.loaded(readings[reader].models[0]).model for reader in READERS if reader in readings]
    names = {True: "the vectors that are added", False: "attention weights where transformers runs the model"}
    return ", ".join(names[one] for one in sorted({isinstance(model, Model) for model in models}, reverse=True))


def _one(reading: Reading, found: Flow) -> None:
    trace = reading.trace
    pieces = [("[MASK]", "mask") if n in trace.request.masked else piece
              for n, piece in enumerate(chips.describe(trace.encoding))]
    row = asking_row(trace, reading.positions)
    say(f"**{NAMES[reading.reader]}** · {reading.models[0]} guesses from “{pieces[row][0]}” at position {row}",
        "cmp-small")
    attention_flow.mount(f"flow_{reading.reader}", found, pieces, row, trace.attention_kind)


def _from_the_right(reading: Reading, found: Flow) -> float:
    """Share of the input's words behind the hidden one."""
    words = [n for n in reading.trace.encoding.content if n > max(reading.positions)]
    return float(found.shares[0, words].sum())
