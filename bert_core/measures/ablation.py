"""What a change to the run does to the answers: the same sentence, before and after.

Dimensions: V vocabulary, P masked positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bert_core.tasks.support import softmax
from bert_core.tasks.vocabulary import last_read
from bert_core.tokenizer import Tokenizer
from bert_core.trace import Array, Trace


class Moved(NamedTuple):
    """One answer's classes, before and after.

    Attributes:
        title: what was asked.
        names: classes or tokens, those of either run's top, by the unchanged probability.
        before, after: their probabilities.
        divergence: KL(before || after) over all classes, nats.
    """

    title: str
    names: tuple[str, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]
    divergence: float


def masked_moves(before: Trace, after: Trace, tokenizer: Tokenizer, top: int = 6) -> list[Moved]:
    """The fill-ins of every [MASK], the `top` of each run together."""
    return [_vocabulary_moves(before.mlm_logits[row], after.mlm_logits[row], tokenizer, top,
                              f"[MASK] at position {position}") for row, position in enumerate(before.mlm_positions)]


def next_moves(before: Trace, after: Trace, tokenizer: Tokenizer, top: int = 6) -> Moved:
    """A causal model's word after the sentence (before it, if it reads right to left)."""
    position = last_read(before)
    return _vocabulary_moves(before.lm_logits[position], after.lm_logits[position], tokenizer, top,
                             f"Next after “{before.tokens[position]}”")


def _vocabulary_moves(before: Array, after: Array, tokenizer: Tokenizer, top: int, title: str) -> Moved:
    """(V,) logits of both runs, the `top` of each together."""
    old, new = softmax(before), softmax(after)
    keep = list(dict.fromkeys((*_largest(old, top), *_largest(new, top))))
    keep.sort(key=lambda i: -old[i])
    return _moved(title, [tokenizer.token_of(i) for i in keep], keep, old, new)


def class_moves(before: Array, after: Array, names: Sequence[str], title: str) -> Moved:
    """A classifier's answer; before and after are its logits."""
    old, new = softmax(before), softmax(after)
    return _moved(title, names, range(len(old)), old, new)


def _moved(title: str, names: Sequence[str], keep: Sequence[int], old: Array, new: Array) -> Moved:
    tiny = np.finfo(np.float64).tiny
    divergence = float(np.sum(old * (np.log(np.maximum(old, tiny)) - np.log(np.maximum(new, tiny)))))
    return Moved(title, tuple(names), tuple(float(old[i]) for i in keep), tuple(float(new[i]) for i in keep),
                 max(divergence, 0.0))


def _largest(values: Array, count: int) -> list[int]:
    return [int(i) for i in np.argsort(-values, kind="stable")[:count]]
