"""What a masked-LM head says about a gap, and how two answers differ.

Probabilities are softmax over the whole vocabulary V in float64; ranks count
from 1. Devlin et al. 2018, section 3.1, task 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bert_core.tasks.support import softmax
from bert_core.tokenizer import Tokenizer
from bert_core.trace import Trace

Array = np.ndarray


@dataclass(frozen=True)
class Guess:
    """One piece with its probability."""

    id: int
    token: str
    probability: float


@dataclass(frozen=True)
class Gap:
    """The answer for one masked position.

    Attributes:
        position: counted with [CLS] as 0.
        guesses: the most probable pieces, best first.
        truth: the piece that was hidden, or None where [MASK] was typed.
        rank: the truth's place among all V pieces, from 1; None without truth.
    """

    position: int
    guesses: tuple[Guess, ...]
    truth: Guess | None = None
    rank: int | None = None


def top_ids(probabilities: Array, k: int) -> Array:
    """Ids of the k largest of (V,), largest first, ties by the smaller id."""
    k = min(k, len(probabilities))
    if k < 1:
        return np.array([], dtype=np.int64)
    border = np.partition(probabilities, -k)[-k]
    candidates = np.flatnonzero(probabilities >= border)  # ascending ids
    order = np.argsort(-probabilities[candidates], kind="stable")
    return candidates[order][:k]


def gap_distribution(trace: Trace, position: int) -> Array:
    """(V,) probabilities for a masked position.

    Raises:
        ValueError: the position was not scored in this run.
    """
    rows = np.flatnonzero(trace.mlm_positions == position)
    if not len(rows):
        raise ValueError(f"position {position} was not masked in this run")
    return softmax(trace.mlm_logits[rows[0]])


def read_gap(probabilities: Array, position: int, tokenizer: Tokenizer, k: int, truth: int | None = None) -> Gap:
    """The k best guesses out of (V,) probabilities, and where the true id stands."""
    guesses = tuple(Guess(int(i), piece(tokenizer, i), float(probabilities[i])) for i in top_ids(probabilities, k))
    if truth is None:
        return Gap(position, guesses)
    rank = int((probabilities > probabilities[truth]).sum()) + 1
    return Gap(position, guesses, Guess(truth, piece(tokenizer, truth), float(probabilities[truth])), rank)


def piece(tokenizer: Tokenizer, index: int) -> str:
    """The piece's text; a row of the table without one is shown by its number."""
    try:
        return tokenizer.token_of(int(index))
    except ValueError:
        return f"[id {int(index)}]"


def read_gaps(trace: Trace, tokenizer: Tokenizer, k: int, truths: dict[int, int], limit: int) -> tuple[Gap, ...]:
    """At most `limit` gaps of a run, by position: those that were hidden before those that were typed.

    Args:
        truths: position -> id that was hidden there.
    """
    rows = {position: row for row, position in enumerate(trace.mlm_positions.tolist())}
    asked = sorted(sorted(rows, key=lambda position: position not in truths)[:limit])
    return tuple(read_gap(softmax(trace.mlm_logits[rows[position]]), position, tokenizer, k, truths.get(position))
                 for position in asked)


def true_probabilities(trace: Trace, ids: Sequence[int]) -> Array:
    """(T,) probability of each given id at its own position; the run needs all_logits.

    Args:
        ids: T ids, one a position.
    """
    rows = softmax(trace.mlm_logits)
    return rows[np.arange(len(ids)), np.asarray(ids)]


# --- two answers over the whole vocabulary -----------------------------------


@dataclass(frozen=True)
class Contrast:
    """How two distributions over the vocabulary differ.

    Attributes:
        divergence: Jensen-Shannon, in bits, 0 (equal) to 1.
        up, down: ids whose probability rises and falls most from first to second.
    """

    divergence: float
    up: tuple[int, ...]
    down: tuple[int, ...]


def contrast(first: Array, second: Array, k: int) -> Contrast:
    """Compare two (V,) distributions."""
    change = second - first
    up = [int(i) for i in top_ids(change, k) if change[i] > 0]
    down = [int(i) for i in top_ids(-change, k) if change[i] < 0]
    return Contrast(jensen_shannon(first, second), tuple(up), tuple(down))


def jensen_shannon(first: Array, second: Array) -> float:
    """Jensen-Shannon divergence in bits (Lin 1991): mean KL to the average."""
    middle = (first + second) / 2
    return float((_kl_bits(first, middle) + _kl_bits(second, middle)) / 2)


def _kl_bits(p: Array, q: Array) -> float:
    there = p > 0
    return float(np.sum(p[there] * np.log2(p[there] / q[there])))


@dataclass(frozen=True)
class Scatter:
    """All V pieces by log10 probability in two sentences.

    Attributes:
        ids: (N,) the pieces that are drawn one by one: likely in either.
        first, second: (N,) log10 probabilities of those.
        counts: (S, S) how many of the other pieces fall into each cell; row is
            the second's, column the first's, from the low end.
        low: log10 probability of the low end of both axes (the high end is 0).
    """

    ids: Array
    first: Array
    second: Array
    counts: Array
    low: float


def vocabulary_scatter(first: Array, second: Array, drawn: int = 1500, cells: int = 60) -> Scatter:
    """Every piece of the vocabulary as a point; all but the likeliest `drawn` as counts."""
    logs = np.log10(np.maximum(np.stack([first, second]), 1e-30))  # (2, V)
    low = float(np.floor(logs.min()))
    ids = np.sort(top_ids(np.maximum(first, second), drawn))
    rest = np.ones(len(first), dtype=bool)
    rest[ids] = False
    edges = np.linspace(low, 0.0, cells + 1)
    counts, _, _ = np.histogram2d(logs[1, rest], logs[0, rest], bins=(edges, edges))
    return Scatter(ids, logs[0, ids], logs[1, ids], counts.astype(np.int64), low)
