"""Cosines: between vectors, within a set, and of a random pair.

Reference: Ethayarajh 2019, How Contextual are Contextualized Word
Representations?, arXiv 1909.00512: vectors of every layer crowd into a cone, so
a cosine is read beside the average cosine of random word pairs of that layer.

Dimensions: N vectors, D hidden size, L layers, T tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bert_core.trace import Array, Trace

#: Ways to make one vector of a sentence.
SENTENCE_VECTORS = ("cls", "mean", "static")


def unit(vectors: Array) -> Array:
    """Vectors (..., D) at length 1; a zero vector stays zero."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.divide(vectors, length, out=np.zeros_like(vectors, dtype=np.float64), where=length > 0)


def cosine_matrix(vectors: Array) -> Array:
    """All cosines of N vectors, (N, D) -> (N, N), float64 in -1 to 1."""
    units = unit(np.asarray(vectors, dtype=np.float64))
    return np.clip(units @ units.T, -1.0, 1.0)


def cosine_to(vectors: Array, one: Array) -> Array:
    """Cosine of each of (..., D) to one (D,), (...,) float64."""
    return np.clip(unit(np.asarray(vectors, dtype=np.float64)) @ unit(np.asarray(one, dtype=np.float64)), -1.0, 1.0)


class RandomPairs(NamedTuple):
    """Cosines of random word pairs by layer.

    Attributes:
        mean: (L+1,) average cosine.
        spread: (L+1,) standard deviation over the pairs.
        pairs: how many pairs were drawn.
    """

    mean: Array
    spread: Array
    pairs: int


def random_pairs(states: Array, sentences: Array, count: int = 2000, seed: int = 0) -> RandomPairs:
    """Average cosine of words drawn from different sentences, by layer.

    Args:
        states: (N, L+1, D), a vector of each word in each layer.
        sentences: (N,) number of the sentence that each word is from.
        count: pairs to draw, with replacement.
        seed: of the draw.

    Raises:
        ValueError: all words are from one sentence.
    """
    if len(np.unique(sentences)) < 2:
        raise ValueError("random pairs need words of at least two sentences")
    rng = np.random.default_rng(seed)
    left, right = rng.integers(0, len(states), size=(2, 3 * count))
    apart = np.flatnonzero(sentences[left] != sentences[right])[:count]
    left, right = left[apart], right[apart]
    units = unit(states)
    cosines = np.einsum("nld,nld->nl", units[left], units[right])  # (pairs, L+1)
    return RandomPairs(cosines.mean(axis=0), cosines.std(axis=0), len(apart))


def sentence_vector(trace: Trace, kind: str, layer: int = -1) -> Array:
    """One vector of a sentence, (D,).

    Args:
        kind: 'cls' is [CLS] of the layer, 'mean' the mean of the layer's
            non-special tokens, 'static' the mean of their word embeddings,
            which no context has touched.
        layer: row of hidden_states, 0 the embeddings, -1 the last.

    Raises:
        ValueError: an unknown kind, or a sentence without a token.
    """
    if kind not in SENTENCE_VECTORS:
        raise ValueError(f"sentence vector {kind!r}: choose one of {', '.join(SENTENCE_VECTORS)}")
    if kind == "cls":
        return trace.hidden_states[layer, 0].astype(np.float64)
    places = list(trace.encoding.content)
    if not places:
        raise ValueError(f"{trace.encoding.text[:40]!r} holds no token besides the special ones")
    source = trace.hidden_states[layer] if kind == "mean" else trace.token_embeddings  # (T, D)
    return source[places].astype(np.float64).mean(axis=0)


def similarity_matrix(traces: Sequence[Trace], kind: str, layer: int = -1) -> Array:
    """Cosine of every sentence to every other, (N, N).

    Raises:
        ValueError: no sentence, or one without a token.
    """
    if not traces:
        raise ValueError("cosines need a sentence at least")
    return cosine_matrix(np.stack([sentence_vector(trace, kind, layer) for trace in traces]))
