"""Minimal pairs: does a model find the good sentence likelier than the bad one?

The method is BLiMP's (Warstadt et al. 2020, arXiv 1912.00582): two sentences
that differ in one thing, of which one is grammatical. A causal model is scored
by log-likelihood, BERT by pseudo-log-likelihood (one piece masked at a time).
The set in assets/minimal_pairs is the project's own.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bert_core.measures.compare import join, shared_bias
from bert_core.measures.surprise import (
    causal_log_probs,
    masked_one_at_a_time,
    masked_surprise,
    scored_places,
    taken,
)
from bert_core.serving import Engine
from bert_core.trace import TraceRequest

FOLDER = Path(__file__).resolve().parents[2] / "assets" / "minimal_pairs"
_CHOICE = re.compile(r"\{([^|}]+)\|([^|}]+)\}")
#: Normal quantile of a 95 % interval.
Z95 = 1.959964


@dataclass(frozen=True)
class Pair:
    """Two sentences of equally many words, the first good, the second not."""

    phenomenon: str
    good: str
    bad: str


@dataclass(frozen=True)
class Tally:
    """How often a model preferred the good sentence.

    Attributes:
        right: pairs judged right; a tie is not.
        count: pairs judged.
    """

    right: int
    count: int

    @property
    def accuracy(self) -> float:
        """Share judged right, 0 to 1; NaN if none was judged."""
        return self.right / self.count if self.count else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of the accuracy (Wilson 1927)."""
        return wilson(self.right, self.count)


def wilson(right: int, count: int, z: float = Z95) -> tuple[float, float]:
    """Wilson's score interval for `right` out of `count`; (0, 1) for none."""
    if not count:
        return 0.0, 1.0
    p, z2 = right / count, z * z
    middle = (p + z2 / (2 * count)) / (1 + z2 / count)
    half = z / (1 + z2 / count) * math.sqrt(p * (1 - p) / count + z2 / (4 * count * count))
    return max(0.0, middle - half), min(1.0, middle + half)


@functools.cache
def read_pairs() -> tuple[Pair, ...]:
    """The shipped set, phenomenon by phenomenon."""
    return tuple(Pair(name, _CHOICE.sub(r"\1", line), _CHOICE.sub(r"\2", line))
                 for name, _, lines in _groups() for line in lines)


@functools.cache
def phenomena() -> dict[str, str]:
    """Name -> what it asks, in the order of the file."""
    return {name: about for name, about, _ in _groups()}


def _groups() -> list[tuple[str, str, list[str]]]:
    """(name, what it asks, lines with {good|bad}) of pairs.txt."""
    groups: list[tuple[str, str, list[str]]] = []
    for line in (FOLDER / "pairs.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            name, about = line[1:].split("] ", 1)
            groups.append((name.replace("_", " "), about, []))
        elif line and not line.startswith("#"):
            groups[-1][2].append(line)
    return groups


def sample(pairs: Sequence[Pair], each: int) -> tuple[Pair, ...]:
    """The first `each` pairs of every phenomenon, interleaved so that a cancelled run is balanced."""
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.phenomenon, []).append(pair)
    return tuple(group[n] for n in range(each) for group in groups.values() if n < len(group))


def log_likelihoods(engine: Engine, model: str, texts: Sequence[str]) -> list[float]:
    """(Pseudo-)log-likelihood of each text in nats, all in one batch.

    The first piece is given, not scored, where a causal model has no token to start from (GPT-2).
    """
    loaded = engine.loaded(model)
    encodings = [loaded.tokenizer.encode(text) for text in texts]
    places = [scored_places(encoding, loaded.tokenizer) for encoding in encodings]
    if "lm" in loaded.model.heads:
        runs = engine.run_many([TraceRequest(text, model=model, parts=("lm_logits",)) for text in texts],
                               keep=False)
        return [-float(np.nansum(taken(causal_log_probs(run, where), run, where)))
                for run, where in zip(runs, places, strict=True)]
    rows = [masked_one_at_a_time(text, None, model, loaded.config.attention_kind, where)
            for text, where in zip(texts, places, strict=True)]
    runs = iter(engine.run_many([row for group in rows for row in group], keep=False))
    return [-float(masked_surprise([next(runs) for _ in group], encoding, where).sum())
            for group, encoding, where in zip(rows, encodings, places, strict=True)]


def joined_likelihoods(engine: Engine, left: str, right: str, texts: Sequence[str]) -> list[float]:
    """ELMo's way: each token scored by the two one-way readers joined (`compare.join`), summed, in nats.

    A piece that one of them can't guess is left out, as in `log_likelihoods`.

    Raises:
        ValueError: the two models cut the texts into different pieces.
    """
    tokenizer, bias = engine.loaded(left).tokenizer, shared_bias(engine, left, right)
    places = [scored_places(tokenizer.encode(text), tokenizer) for text in texts]
    runs = engine.run_many([TraceRequest(text, model=name, parts=("lm_logits",)) for name in (left, right)
                            for text in texts], keep=False)
    scores = []
    for one, other, where in zip(runs[:len(texts)], runs[len(texts):], places, strict=True):
        if one.input_ids.tolist() != other.input_ids.tolist():
            raise ValueError(f"{left} and {right} cut the text into different pieces; they can't be joined")
        joined = join(causal_log_probs(one, where), causal_log_probs(other, where), bias)
        scores.append(-float(np.nansum(taken(joined, one, where))))
    return scores


def judge(engine: Engine, models: Mapping[str, Sequence[str]], pairs: Sequence[Pair],
          at_once: int = 4) -> Iterator[tuple[int, dict[str, list[bool]]]]:
    """Let every model judge the pairs, a few at a time.

    Args:
        models: name of a judge -> its model, or the left and the right reader
            that judge joined.
        at_once: pairs in one batch.

    Yields:
        The number of pairs judged so far, and for each judge whether it was
        right about each pair of this batch.
    """
    for start in range(0, len(pairs), at_once):
        some = pairs[start:start + at_once]
        texts = [text for pair in some for text in (pair.good, pair.bad)]
        verdicts = {}
        for name, parts in models.items():
            score = joined_likelihoods if len(parts) == 2 else log_likelihoods
            scores = score(engine, *parts, texts)
            verdicts[name] = [good > bad for good, bad in zip(scores[::2], scores[1::2], strict=True)]
        yield start + len(some), verdicts


def tallies(pairs: Sequence[Pair], right: Sequence[bool]) -> dict[str, Tally]:
    """Phenomenon -> Tally over the pairs judged so far, in their order."""
    counts: dict[str, list[int]] = {}
    for pair, good in zip(pairs, right, strict=False):
        tally = counts.setdefault(pair.phenomenon, [0, 0])
        tally[0] += good
        tally[1] += 1
    return {name: Tally(*counts[name]) for name in counts}


def overall(parts: dict[str, Tally]) -> Tally:
    """All phenomena together."""
    return Tally(sum(t.right for t in parts.values()), sum(t.count for t in parts.values()))
