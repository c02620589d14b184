"""What a change to the run does to the answers: the same sentence, before and after.

Dimensions: V vocabulary, P masked positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bert_core.load import Loaded
from bert_core.measures.predictions import piece, top_ids
from bert_core.tasks.sentences import label_names, several_hold
from bert_core.tasks.support import sigmoid, softmax
from bert_core.tasks.vocabulary import last_read
from bert_core.tokenizer import Tokenizer
from bert_core.trace import Array, Trace

#: Kinds of answers, in the order in which they are shown -> the arrays of a Trace that one is read from.
ANSWERS = {"gap": ("mlm_positions", "mlm_logits"), "next": ("lm_logits",), "class": ("logits",),
           "follows": ("nsp_logits",)}


class Moved(NamedTuple):
    """One answer's classes, before and after.

    Attributes:
        title: what was asked.
        names: classes or tokens, those of either run's top, by the unchanged probability.
        before, after: their probabilities.
        divergence: KL(before || after) over all classes, nats; the sum over the classes where each holds by itself.
    """

    title: str
    names: tuple[str, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]
    divergence: float


def answer_moves(loaded: Loaded, kind: str, before: Trace, after: Trace, gaps: int | None = None) -> list[Moved]:
    """What a model answers in two runs: one entry, or one for each [MASK].

    Args:
        kind: of ANSWERS; both runs have its arrays.
        gaps: how many [MASK]s are read, from the first; None reads all.
    """
    if kind == "gap":
        return masked_moves(before, after, loaded.tokenizer, gaps=gaps)
    if kind == "next":
        return [next_moves(before, after, loaded.tokenizer)]
    if kind == "class":
        count = len(before.logits)
        names, several = label_names(loaded.config, count), several_hold(loaded.config, count)
        return [class_moves(before.logits, after.logits, names, "Class", several)]
    question = "Does the second sentence follow?"
    return [class_moves(before.nsp_logits, after.nsp_logits, ("next", "not next"), question)]


def masked_moves(
    before: Trace, after: Trace, tokenizer: Tokenizer, top: int = 6, also: Sequence[int] = (), gaps: int | None = None
) -> list[Moved]:
    """The fill-ins of every [MASK], the `top` of each run together.

    Args:
        also: ids that are shown wherever they stand.
        gaps: how many [MASK]s are read, from the first; None reads all.
    """
    return [_vocabulary_moves(before.mlm_logits[row], after.mlm_logits[row], tokenizer, top,
                              f"[MASK] at position {position}", also)
            for row, position in enumerate(before.mlm_positions[:gaps])]


def next_moves(before: Trace, after: Trace, tokenizer: Tokenizer, top: int = 6) -> Moved:
    """A causal model's word after the sentence (before it, if it reads right to left)."""
    position = last_read(before)
    side = "Before" if before.config.reading_order == "right-to-left" else "Next after"
    return _vocabulary_moves(before.lm_row(position), after.lm_row(position), tokenizer, top,
                             f"{side} “{before.tokens[position]}”")


def _vocabulary_moves(
    before: Array, after: Array, tokenizer: Tokenizer, top: int, title: str, also: Sequence[int] = ()
) -> Moved:
    """(V,) logits of both runs, the `top` of each together."""
    old, new = softmax(before), softmax(after)
    keep = list(dict.fromkeys((*map(int, top_ids(old, top)), *map(int, top_ids(new, top)), *also)))
    keep.sort(key=lambda i: -old[i])
    return Moved(title, tuple(piece(tokenizer, i) for i in keep), tuple(float(old[i]) for i in keep),
                 tuple(float(new[i]) for i in keep), max(_divergence(old, new), 0.0))


def class_moves(before: Array, after: Array, names: Sequence[str], title: str, several: bool = False) -> Moved:
    """A classifier's answer.

    Args:
        before, after: its logits, (C,).
        several: each class holds or not by itself (sigmoid), instead of one of them (softmax).
    """
    old, new = (sigmoid(before), sigmoid(after)) if several else (softmax(before), softmax(after))
    divergence = _divergence(old, new) + (_divergence(1.0 - old, 1.0 - new) if several else 0.0)
    return Moved(title, tuple(names), tuple(map(float, old)), tuple(map(float, new)), max(divergence, 0.0))


def _divergence(old: Array, new: Array) -> float:
    """Sum of old log(old / new), nats."""
    tiny = np.finfo(np.float64).tiny
    return float(np.sum(old * (np.log(np.maximum(old, tiny)) - np.log(np.maximum(new, tiny)))))
