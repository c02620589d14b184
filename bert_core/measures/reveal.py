"""Context revealed word by word: which side of a gap gives the word away?

The same masked model answers with more and more words around the gap in sight,
nearest first. Words not yet revealed keep their place but no token may look at
them, so nothing but the context changes from step to step. All steps of all
sides are one batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bert_core.measures.compare import (
    MAX_PIECES,
    Question,
    masked_requests,
    mlm_row,
    positions_of,
    true_ids,
    why_not_masked,
)
from bert_core.measures.predictions import piece
from bert_core.serving import Engine
from bert_core.tasks.support import log_softmax
from bert_core.tokenizer import Encoding
from bert_core.trace import Trace, TraceRequest

#: Steps a side at most; the last one then reveals all that is left.
MAX_STEPS = 12
#: A side gives the word away if it alone brings this share of the probability.
SHARE = 0.5
#: Below this the model never finds the word, and no side decides.
FOUND = 0.02


@dataclass(frozen=True)
class Step:
    """One point of a curve.

    Attributes:
        words: number of words in sight, both sides together.
        revealed: tokens of the word or words revealed last, joined, '' at the start.
        probability: of the true word (chain rule over its pieces).
        answer: the best piece at the gap.
        right: whether that is the true word's first piece.
    """

    words: int
    revealed: str
    probability: float
    answer: str
    right: bool


@dataclass(frozen=True)
class Curve:
    """The steps of one side, from nothing to all of it."""

    side: str
    steps: tuple[Step, ...]

    @property
    def final(self) -> float:
        """The true word's probability with all of this side in sight."""
        return self.steps[-1].probability

    @property
    def flips(self) -> tuple[int, ...]:
        """Indices of the steps where the answer becomes or ceases to be the true word."""
        return tuple(n for n in range(1, len(self.steps)) if self.steps[n].right != self.steps[n - 1].right)

    @property
    def joined(self) -> int:
        """Words that the last step reveals at once; 0 where each has a step of its own (see MAX_STEPS)."""
        one_each = self.side != "both" and len(self.steps) > MAX_STEPS
        last = self.steps[-1].words - self.steps[-2].words if one_each else 1
        return last if last > 1 else 0


def words_around(encoding: Encoding, positions: tuple[int, ...]) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Words left and right of the gap as groups of positions, nearest first."""
    groups: dict[tuple, list[int]] = {}
    for n in encoding.content:
        if n not in positions:
            groups.setdefault((encoding.sequence_ids[n], encoding.word_ids[n]), []).append(n)
    words = [tuple(group) for group in groups.values()]
    left = [w for w in words if w[0] < positions[0]]
    return left[::-1], [w for w in words if w[0] > positions[-1]]


def steps_of(words: list[tuple[int, ...]], limit: int = MAX_STEPS) -> list[tuple[int, ...]]:
    """At most `limit` groups to reveal; the last takes all that would be left over."""
    if len(words) <= limit:
        return words
    return words[:limit - 1] + [tuple(sorted(n for w in words[limit - 1:] for n in w))]


def sights(encoding: Encoding, positions: tuple[int, ...]) -> dict[str, list[frozenset[int]]]:
    """Side -> the context positions in sight at each step; step 0 shows none."""
    left, right = (steps_of(words) for words in words_around(encoding, positions))
    count = max(len(left), len(right))
    seen = {"left": (left, []), "right": ([], right), "both": (left, right)}
    lengths = {"left": len(left), "right": len(right), "both": count}
    return {
        side: [frozenset(n for words in parts for w in words[:step] for n in w) for step in range(lengths[side] + 1)]
        for side, parts in seen.items()
    }


def requests(question: Question, model: str, encoding: Encoding, positions: tuple[int, ...], pieces: int,
             seen: frozenset[int]) -> list[TraceRequest]:
    """The rows of one step: as many as the true word has pieces."""
    hidden = tuple(n for n in encoding.content if n not in seen and n not in positions)
    return masked_requests(question, model, "bidirectional", positions, pieces, hidden=hidden)


def reveal(engine: Engine, question: Question, model: str) -> tuple[Curve, ...]:
    """The three curves, computed in one batch.

    Raises:
        ValueError: the true word is not known, or has more than MAX_PIECES; or
            the model takes no other mask than its own.
    """
    if reason := why_not_masked(engine.loaded(model)):
        raise ValueError(reason)
    tokenizer = engine.loaded(model).tokenizer
    encoding = tokenizer.encode(question.text, question.pair)
    positions = positions_of(encoding, question)
    truth = true_ids(engine, model, encoding, positions)
    if not 0 < len(truth) <= MAX_PIECES:
        raise ValueError(f"{question.word!r} can't be revealed: it must be a known word of at most {MAX_PIECES} pieces")
    plans = sights(encoding, positions)
    wanted = list(dict.fromkeys(seen for steps in plans.values() for seen in steps))
    rows = [requests(question, model, encoding, positions, len(truth), seen) for seen in wanted]
    traces = iter(engine.run_many([row for group in rows for row in group]))
    answers = {seen: _answer([next(traces) for _ in group], positions, truth)
               for seen, group in zip(wanted, rows, strict=True)}
    return tuple(_curve(side, steps, answers, encoding, tokenizer, truth) for side, steps in plans.items())


def _answer(runs: list[Trace], positions: tuple[int, ...], truth: tuple[int, ...]) -> tuple[float, int]:
    """The true word's probability and the best id at its first piece."""
    rows = [log_softmax(mlm_row(run, p)) for run, p in zip(runs, positions, strict=True)]
    return float(np.exp(sum(row[i] for row, i in zip(rows, truth, strict=True)))), int(rows[0].argmax())


def _curve(side: str, steps: list[frozenset[int]], answers: dict, encoding: Encoding, tokenizer,
           truth: tuple[int, ...]) -> Curve:
    points, before = [], frozenset()
    for seen in steps:
        probability, best = answers[seen]
        words = {(encoding.sequence_ids[n], encoding.word_ids[n]) for n in seen}
        new = tokenizer.decode([encoding.input_ids[n] for n in sorted(seen - before)])
        points.append(Step(len(words), new, probability, piece(tokenizer, best), best == truth[0]))
        before = seen
    return Curve(side, tuple(points))


def verdict(curves: tuple[Curve, ...]) -> str:
    """Which side decides: 'left', 'right', 'either', 'together' or 'neither'.

    A side decides if, alone, it brings at least SHARE of the probability that
    both bring and the other does not. 'together' means that it takes both.
    """
    final = {curve.side: curve.final for curve in curves}
    if max(final.values()) < FOUND:
        return "neither"
    enough = [side for side in ("left", "right") if final[side] >= SHARE * final["both"]]
    return {0: "together", 2: "either"}.get(len(enough), enough[0] if enough else "together")
