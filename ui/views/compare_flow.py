"""Compare page: what reaches BERT's guess and GPT's through all layers, and how much of it from the right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

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


class _Stream(NamedTuple):
    """A reader, the position that it guesses from, and what reaches it there."""

    reading: Reading
    row: int
    flow: Flow


def draw(readings: Mapping[str, Reading]) -> None:
    """What the right side gives to each, and the two streams side by side.

    Args:
        readings: made with PARTS.
    """
    found = [_followed(readings[reader]) for reader in READERS if reader in readings]
    if not found:
        return  # the cards say why neither reader answers
    say(_from_the_right(found))
    for column, stream in zip(st.columns(2, gap="large"), found, strict=False):
        with column:
            _one(stream)
    say(f"Shares are counted by {_counted(found)}. Grey is what a token keeps of its own, coloured what it takes "
        "from others.", "cmp-small")


def _followed(reading: Reading) -> _Stream:
    """The stream that reaches the token which guesses: by vectors where they can be seen, else by weights."""
    trace, row = reading.trace, asking_row(reading.trace, reading.positions)
    loaded = state.loaded(reading.models[0])
    mixed = state.or_stop(lambda: by_lengths(trace, loaded)) if _is_ours(reading) else by_weights(trace)
    return _Stream(reading, row, flow(mixed, row))


def _is_ours(reading: Reading) -> bool:
    return isinstance(state.loaded(reading.models[0]).model, Model)


def _from_the_right(found: Sequence[_Stream]) -> str:
    """How much the words behind the hidden one give to each."""
    given = []
    for reading, _, stream in found:
        words = [n for n in reading.trace.encoding.content if n > max(reading.positions)]
        if not words:
            return "There is no word right of the gap."
        share = float(stream.shares[0, words].sum())
        given.append(f"**{percent(share) if share else 'nothing'}** in {reading.models[0]}")
    return f"Of what reaches the guess, the words right of the gap give {', '.join(given)}."


def _counted(found: Sequence[_Stream]) -> str:
    """How the shares of these readers are counted."""
    names = {True: "the vectors that are added", False: "attention weights where transformers runs the model"}
    return ", ".join(names[one] for one in sorted({_is_ours(stream.reading) for stream in found}, reverse=True))


def _one(stream: _Stream) -> None:
    reading, row, found = stream
    trace = reading.trace
    pieces = [("[MASK]", "mask") if n in trace.request.masked else piece
              for n, piece in enumerate(chips.describe(trace.encoding))]
    say(f"**{NAMES[reading.reader]}** · {reading.models[0]} guesses from “{pieces[row][0]}” at position {row}",
        "cmp-small")
    attention_flow.mount(f"flow_{reading.reader}", found, pieces, row, trace.attention_kind)
