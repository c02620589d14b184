"""What [CLS] looks at, which tokens move its answer, and where the two disagree.

References:
    Jain and Wallace 2019, Attention is not Explanation, arXiv 1902.10186.
    Sundararajan et al. 2017, arXiv 1703.01365 (integrated gradients).

Dimensions: T tokens, H heads, L layers.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import NamedTuple

import numpy as np

from bert_core.load import Loaded
from bert_core.measures.attribution import Attribution, complete_gradients, leave_one_out, rank_correlation
from bert_core.measures.similarity import unit
from bert_core.measures.target import Target
from bert_core.tokenizer import Encoding, Tokenizer
from bert_core.trace import Array, Trace, TraceRequest

#: A mean distance up to this (1 - cosine) is rounding: every sentence has the same [CLS] there.
NO_DISTANCE = 1e-10


class Influence(NamedTuple):
    """Three accounts of one answer, token by token.

    Attributes:
        tokens: (T,) the pieces.
        content: positions that can be left out, in order: neither specials nor typed [MASK]s.
        left_out: (T,) what the class's logit loses without the token.
        gradients: (T,) integrated gradients, in the same unit.
        attention: (T,) weight from the token that answers, mean over the heads
            of the last layer, 0 to 1.
        output: the logit that is explained.
        gap: how far the gradients' sum is from the logit's change, as a share
            of it; None where the logit doesn't change.
    """

    tokens: tuple[str, ...]
    content: tuple[int, ...]
    left_out: Array
    gradients: Array
    attention: Array
    output: float
    gap: float | None


class Disagreement(NamedTuple):
    """Rank correlations between the accounts, and the token they differ on most.

    Attributes:
        leaving_gradients, leaving_attention: Spearman correlation of the
            sizes over the content tokens, -1 to 1; None with fewer than three
            tokens or where one account is constant.
        position: of the token whose ranks differ most; None where all three rank the tokens alike.
        ranks: its rank, 1 the largest, by leaving out, gradients, attention; () where there is none.
    """

    leaving_gradients: float | None
    leaving_attention: float | None
    position: int | None
    ranks: tuple[int, ...]


class Arrival(NamedTuple):
    """How far the [CLS] of two versions of a sentence are apart, by layer.

    Attributes:
        relative: (L+1,) `apart` as a multiple of `usual`; 0 where every sentence has the same [CLS].
        apart: (L+1,) 1 - cosine of the two.
        usual: (L+1,) 1 - cosine of two unrelated sentences, on average.
    """

    relative: Array
    apart: Array
    usual: Array


def answers_at(tokenizer: Tokenizer, encoding: Encoding) -> int:
    """Position of the token from which a classifier answers: [CLS], or the last one where a family has none (GPT-2)."""
    return 0 if tokenizer.has_cls else max(len(encoding) - 1, 0)


def cls_attention(trace: Trace, place: int = 0) -> Array:
    """Weights from [CLS], or from the token at `place`, to every token, (L, H, T), each row sums to 1."""
    return trace.attention_probs[:, :, place, :]


def attention_of_layer(trace: Trace, layer: int = -1, place: int = 0) -> Array:
    """Weights from [CLS], or from the token at `place`, mean over the layer's heads, (T,)."""
    return cls_attention(trace, place)[layer].mean(axis=0)


def accounts(
    loaded: Loaded, request: TraceRequest, target: Target
) -> Generator[None, None, tuple[Attribution, Attribution]]:
    """Leaving out and complete gradients, one after the other, a pass at each step."""
    left_out = yield from leave_one_out(loaded, request, target)
    return left_out, (yield from complete_gradients(loaded, request, target))


def disagreement(influence: Influence) -> Disagreement | None:
    """Where leaving out, gradients and attention part; None with fewer than two tokens."""
    places = list(influence.content)
    if len(places) < 2:
        return None
    accounts = [np.abs(np.asarray(a, dtype=np.float64)[places])
                for a in (influence.left_out, influence.gradients, influence.attention)]
    ranks = np.stack([ranks_of(a) for a in accounts])  # (3, tokens)
    apart = np.ptp(ranks, axis=0)
    widest = int(apart.argmax())
    pairs = [rank_correlation(accounts[a], accounts[b]) for a, b in ((0, 1), (0, 2))]
    if not apart[widest]:
        return Disagreement(*pairs, None, ())
    return Disagreement(*pairs, places[widest], tuple(int(r) for r in ranks[:, widest]))


def ranks_of(values: Array) -> Array:
    """1 for the largest; ties in reading order."""
    ranks = np.empty(len(values), dtype=int)
    ranks[np.argsort(-np.asarray(values), kind="stable")] = np.arange(1, len(values) + 1)
    return ranks


def usual_distance(states: Array) -> Array:
    """1 - cosine of the [CLS] of two sentences by layer, mean over all pairs, (L+1,); 0 where all have the same.

    Args:
        states: (N, L+1, D), [CLS] of N sentences.
    """
    units = unit(np.asarray(states, dtype=np.float64))
    distance = units.var(axis=0, ddof=1).sum(axis=-1)  # the variance is the mean of |a - b|² / 2, which is 1 - cosine
    return np.where(distance > NO_DISTANCE, distance, 0.0)


def arrival(old: Array, new: Array, usual: Array) -> Arrival:
    """How far a change has moved [CLS] in each layer, measured by what is usual there.

    Args:
        old, new: (L+1, D), [CLS] of the two versions.
        usual: (L+1,), `usual_distance` of sentences that have nothing to do with one another.
    """
    units = (unit(np.asarray(states, dtype=np.float64)) for states in (old, new))
    apart = np.square(np.subtract(*units)).sum(axis=-1) / 2  # exactly 0 for the same vector
    return Arrival(np.divide(apart, usual, out=np.zeros_like(apart), where=usual > 0), apart, usual)


def changed_words(old: Sequence[str], new: Sequence[str]) -> tuple[list[bool], list[bool]]:
    """Which tokens of two versions are not in their longest common sequence.

    Returns:
        One flag a token of the old and of the new version, True where changed.
    """
    lengths = _common_lengths(old, new)
    changed_old, changed_new = [True] * len(old), [True] * len(new)
    a, b = len(old), len(new)
    while a and b:
        if old[a - 1] == new[b - 1]:
            a, b = a - 1, b - 1
            changed_old[a] = changed_new[b] = False
        elif lengths[a - 1, b] >= lengths[a, b - 1]:
            a -= 1
        else:
            b -= 1
    return changed_old, changed_new


def _common_lengths(old: Sequence[str], new: Sequence[str]) -> Array:
    """(old + 1, new + 1): length of the longest common sequence of the first a tokens and the first b."""
    tokens = np.array([*new], dtype=object)
    lengths = np.zeros((len(old) + 1, len(new) + 1), dtype=int)
    for a, token in enumerate(old):
        longer = np.maximum(lengths[a, 1:], lengths[a, :-1] + (tokens == token))
        lengths[a + 1, 1:] = np.maximum.accumulate(longer)
    return lengths
