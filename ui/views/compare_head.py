"""Compare page: one piece's probability laid open, as BERT and as GPT come to it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import streamlit as st

from bert_core.figures.compare import NAMES
from bert_core.figures.masking import percent
from bert_core.load import Loaded
from bert_core.measures import compare
from bert_core.measures.compare import Reading
from bert_core.measures.pieces import same_pieces
from bert_core.measures.predictions import piece
from bert_core.measures.vocabulary_head import HeadSteps, head_steps
from bert_core.model import Model
from ui import components, controls, notices, state
from ui.views import operands
from ui.views.compare_ask import Asked, VisitorEngine, say
from ui.views.task_models import signed

#: Who is laid open, and what a run of theirs has to keep for it.
READERS, PARTS = ("both", "left"), ("hidden_states",)
#: Guesses of each reader that can be opened, beside the true piece.
BEST = 3


def draw(asked: Asked, readings: Mapping[str, Reading]) -> None:
    """Which piece, then the strips of both readers side by side.

    Args:
        readings: made with PARTS.
    """
    mine = state.loaded(readings["both"].models[0])
    if not isinstance(mine.model, Model):
        _closed(mine)
        return
    names = _pieces(readings, mine)
    name = controls.choice("Open the logit of", list(names), "guess")
    for column, reader in zip(st.columns(2, gap="large"), READERS, strict=True):
        with column:
            if reader in readings:
                _one(readings[reader], name, names[name])


def _closed(loaded: Loaded) -> None:
    notices.note(f"{loaded.name} runs through transformers: only a head on this explorer's own encoder can be opened.")


def _pieces(readings: Mapping[str, Reading], mine: Loaded) -> dict[str, int]:
    """Name -> id: the true piece first, then the best guesses of both."""
    both = readings["both"]
    ids = list(both.truth[:1])
    for reader in READERS:
        if reader in readings and _same_words(readings[reader], mine):
            ids += [guess.id for guess in compare.top(readings[reader], VisitorEngine(), BEST)]
    return {piece(mine.tokenizer, one): one for one in ids}


def _same_words(reading: Reading, mine: Loaded) -> bool:
    """Whether a reader's ids are the masked model's."""
    return same_pieces(state.loaded(reading.models[0]).tokenizer, mine.tokenizer)


def _one(reading: Reading, name: str, number: int) -> None:
    """One reader's way from a vector to the piece."""
    loaded, trace = state.loaded(reading.models[0]), reading.trace
    say(f"**{NAMES[reading.reader]}** · {loaded.name}", "cmp-small")
    if not isinstance(loaded.model, Model):
        _closed(loaded)
        return
    if piece(loaded.tokenizer, number) != name:
        notices.note(f"{loaded.name} cuts words into pieces of its own: “{name}” is none of them.")
        return
    steps = head_steps(loaded, trace, reading.positions[0], [number])
    token = trace.encoding.tokens[steps.source]
    components.mount("operands", f"head_{reading.reader}", operands.strips(f"From {token} to the logit of {name}", [
        *([(f"“{token}” at position {steps.source}, last layer", steps.hidden)] if _same_width(steps) else []),
        ("after the head's dense layer and LayerNorm", steps.transformed), (f"vector of “{name}”", steps.vectors[0]),
        ("product", steps.products[0])]))
    summed, bias, logit, traced = (signed(float(one), 4) for one in (
        steps.products.sum(), steps.biases[0], steps.logits[0], steps.traced[0]))
    say(f"Sum of the last strip {summed} + bias {bias} = {logit}; the run itself gave **{traced}**, by softmax "
        f"**{_probability(steps)}**.")


def _same_width(steps: HeadSteps) -> bool:
    return steps.hidden.shape == steps.transformed.shape


def _probability(steps: HeadSteps) -> str:
    return percent(float(np.squeeze(steps.softmax.probabilities)))
