"""What bf16 arithmetic changes and what it saves, measured on some sentences."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bert_core.serving import Engine
from bert_core.tasks.support import softmax
from bert_core.trace import Trace, TraceRequest

#: Sentences that the two are compared on, each with a gap.
SENTENCES = (
    "The [MASK] barked all night.",
    "She poured the [MASK] into her teacup and drank it.",
    "After the long winter the farmers were glad to see the first [MASK] of the year on their fields.",
)
_TURNS = 3


class Arithmetic(NamedTuple):
    """bf16 beside float32 on the same model and sentences.

    Attributes:
        time: bf16's share of float32's time, the median over turns; below 1 is faster.
        hidden: largest difference of a number in any hidden state.
        hidden_size: largest size of a number in the hidden states, to hold it against.
        attention: largest difference of an attention probability.
        probability: largest difference of a predicted probability; None where the model predicts nothing.
    """

    time: float
    hidden: float
    hidden_size: float
    attention: float
    probability: float | None


def compare(engine: Engine, model: str, sentences: Sequence[str] = SENTENCES) -> Arithmetic:
    """Run every sentence in both precisions, in turns after a warm-up.

    Args:
        model: its name; loaded in both precisions.
    """
    logits = _logits_of(engine, model)
    exact = [TraceRequest(text, model=model, parts=("hidden_states", "attention_probs", *logits)) for text in sentences]
    fast = [replace(request, precision="bf16") for request in exact]
    ratios = []
    true, rough = _timed(engine, exact)[1], _timed(engine, fast)[1]  # the warm-up
    for turn in range(_TURNS):
        order = (exact, fast) if turn % 2 else (fast, exact)
        seconds = {requests is fast: _timed(engine, requests)[0] for requests in order}
        ratios.append(seconds[True] / seconds[False])
    hidden, attention = (_pairs(true, rough, part) for part in ("hidden_states", "attention_probs"))
    chances = [(softmax(a), softmax(b)) for part in logits for a, b in _pairs(true, rough, part)]
    return Arithmetic(statistics.median(ratios), _difference(hidden), max(float(np.abs(a).max()) for a, _ in hidden),
                      _difference(attention), _difference(chances) if chances else None)


def _timed(engine: Engine, requests: Sequence[TraceRequest]) -> tuple[float, list[Trace]]:
    """Seconds and Traces of requests that run one after the other, as a visitor's do."""
    start = time.perf_counter()
    traces = [engine.run(request, keep=False) for request in requests]
    return time.perf_counter() - start, traces


def _logits_of(engine: Engine, model: str) -> tuple[str, ...]:
    """The part of a Trace that holds the model's predictions, if it makes any."""
    heads = engine.loaded(model).model.heads
    found = {"mlm": "mlm_logits", "lm": "lm_logits", "classification": "logits", "token_classification": "logits"}
    return tuple(part for head, part in found.items() if head in heads)[:1]


def _pairs(true: Sequence[Trace], rough: Sequence[Trace], part: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """A part of each sentence's two Traces."""
    return [(getattr(a, part), getattr(b, part)) for a, b in zip(true, rough, strict=True)]


def _difference(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> float:
    """Largest difference between two arrays of a pair."""
    return max(float(np.abs(a - b).max()) for a, b in pairs)
