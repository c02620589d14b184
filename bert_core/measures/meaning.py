"""One word in several sentences: its vector by layer, its neighbours, a map of both.

Reference: Ethayarajh 2019, arXiv 1909.00512. A word's vector is the mean of its
pieces' vectors, so that words that WordPiece splits can be followed too.

Dimensions: N occurrences, T tokens, D hidden size, L layers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from bert_core.measures.similarity import cosine_matrix, cosine_to
from bert_core.tokenizer import Encoding
from bert_core.trace import Array, Trace

#: A character that ends no word by itself and needs no space beside it: Thai, Lao, Burmese, Khmer, Hiragana, Chinese.
#: Katakana is not among them: a word of it ends where another script begins.
SPACELESS = ("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u309f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
             "\U00020000-\U0003ffff]")


class Occurrence(NamedTuple):
    """One word in one sentence.

    Attributes:
        word: as it is written there.
        sentence: number of the sentence in its list.
        text: the sentence.
        start, end: the word in code points of the sentence, end exclusive.
        positions: its pieces' token positions, [CLS] as 0.
        states: (L+1, D) mean of its pieces in each layer, 0 the embeddings.
        static: (D,) mean of its pieces' word embeddings, the same in any sentence.
    """

    word: str
    sentence: int
    text: str
    start: int
    end: int
    positions: tuple[int, ...]
    states: Array
    static: Array


class Neighbour(NamedTuple):
    """A word of the sentence set, and how near it is (cosine)."""

    occurrence: Occurrence
    cosine: float


class Projection(NamedTuple):
    """Points on the two directions of most variance.

    Attributes:
        points: (N, 2).
        explained: (2,) share of the variance on each axis.
    """

    points: Array
    explained: Array


class ByLayer(NamedTuple):
    """Cosines of the occurrences of a word, by layer.

    Attributes:
        pairs: (P, 2) occurrence numbers.
        cosines: (L+1, P) of each pair.
        to_static: (L+1, N) of each occurrence to its own static vector; NaN
            where the word table is narrower than the layers (ALBERT, ELECTRA).
    """

    pairs: Array
    cosines: Array
    to_static: Array


def word_places(encoding: Encoding, word: str) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Where a word stands in the first sentence: (start, end, token positions).

    Whole words, any case; in a script without spaces any stretch may be a word. What the model's limit cut off is not
    found.
    """
    word = word.strip()
    before = "" if re.match(SPACELESS, word) else rf"(?:(?<!\w)|(?<={SPACELESS}))"
    behind = "" if re.search(rf"{SPACELESS}\Z", word) else rf"(?:(?!\w)|(?={SPACELESS}))"
    for found in re.finditer(before + re.escape(word) + behind, encoding.text, re.IGNORECASE):
        positions = tuple(
            n for n, (start, end) in enumerate(encoding.offsets)
            if encoding.sequence_ids[n] == 0 and start < found.end() and end > found.start()
        )
        if positions:
            yield found.start(), found.end(), positions


def occurrence(trace: Trace, sentence: int, start: int, end: int, positions: tuple[int, ...]) -> Occurrence:
    """The vectors of one stretch of a sentence."""
    rows = list(positions)
    return Occurrence(
        trace.encoding.text[start:end], sentence, trace.encoding.text, start, end, positions,
        trace.hidden_states[:, rows].mean(axis=1),  # (L+1, pieces, D) -> (L+1, D)
        trace.token_embeddings[rows].mean(axis=0),
    )


def first_occurrences(traces: Sequence[Trace], word: str) -> list[Occurrence]:
    """The word's first occurrence in each sentence that has it.

    Raises:
        ValueError: an empty word.
    """
    if not word.strip():
        raise ValueError("no word to look for")
    found = []
    for number, trace in enumerate(traces):
        for start, end, positions in word_places(trace.encoding, word):
            found.append(occurrence(trace, number, start, end, positions))
            break
    return found


def every_occurrence(traces: Sequence[Trace], word: str, most: int) -> list[Occurrence]:
    """The word's occurrences in these sentences, also several in one; of many the first `most`."""
    places = ((n, *place) for n, trace in enumerate(traces) for place in word_places(trace.encoding, word))
    return [occurrence(traces[n], n, *place) for n, *place in islice(places, most)]


def all_words(traces: Sequence[Trace]) -> list[Occurrence]:
    """Every word of every sentence that has a letter or digit, subwords joined."""
    found = []
    for number, trace in enumerate(traces):
        encoding = trace.encoding
        by_word: dict[int, list[int]] = {}
        for position in encoding.content:
            by_word.setdefault(encoding.word_ids[position], []).append(position)
        for positions in by_word.values():
            start, end = encoding.offsets[positions[0]][0], encoding.offsets[positions[-1]][1]
            if any(c.isalnum() for c in encoding.text[start:end]):
                found.append(occurrence(trace, number, start, end, tuple(positions)))
    return found


def cosines_by_layer(found: Sequence[Occurrence]) -> ByLayer:
    """Cosine of every pair of occurrences in every layer, and to the static vector.

    Raises:
        ValueError: fewer than two.
    """
    if len(found) < 2:
        raise ValueError(f"{len(found)} sentence with the word; two are needed to compare")
    left, right = np.triu_indices(len(found), k=1)
    layers = range(found[0].states.shape[0])
    states = np.stack([one.states for one in found])  # (N, L+1, D)
    cosines = np.stack([cosine_matrix(states[:, layer])[left, right] for layer in layers])  # (L+1, P)
    to_static = np.full((states.shape[1], len(found)), np.nan)  # (L+1, N)
    if found[0].static.shape[-1] == states.shape[-1]:
        to_static = np.stack([cosine_to(one.states, one.static) for one in found], axis=1)
    return ByLayer(np.stack([left, right], axis=1), cosines, to_static)


def project(vectors: Array) -> Projection:
    """Principal components of exactly these vectors, (N, D) -> (N, 2).

    Each axis points so that its largest entry by size is positive, so that the
    picture doesn't flip from run to run.

    Raises:
        ValueError: fewer than three vectors.
    """
    if len(vectors) < 3:
        raise ValueError(f"{len(vectors)} points; a projection needs three")
    centred = np.asarray(vectors, dtype=np.float64) - np.mean(vectors, axis=0, dtype=np.float64)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    points = left[:, :2] * sizes[:2]  # (N, 2)
    flip = np.sign(points[np.abs(points).argmax(axis=0), [0, 1]])
    total = float((sizes**2).sum())
    explained = sizes[:2] ** 2 / total if total > 0 else np.zeros(2)
    return Projection(points * np.where(flip == 0, 1.0, flip), explained)


def nearest(
    one: Occurrence, words: Sequence[Occurrence], layer: int | None, count: int = 10, same_form: bool = True
) -> list[Neighbour]:
    """The words of a set whose vectors are nearest to one occurrence.

    Args:
        one: the occurrence to start from; its own sentence is left out.
        words: of `all_words`.
        layer: row of the states; None compares static vectors, of which each
            written form has one.
        same_form: whether the word itself may be among its neighbours.
    """
    kept = [w for w in words if w.text != one.text and (same_form or w.word.lower() != one.word.lower())]
    if layer is None:
        kept = list({w.word.lower(): w for w in kept}.values())
        cosines = cosine_to(np.stack([w.static for w in kept]), one.static) if kept else np.empty(0)
    else:
        cosines = cosine_to(np.stack([w.states[layer] for w in kept]), one.states[layer]) if kept else np.empty(0)
    order = np.argsort(-cosines, kind="stable")[:count]
    return [Neighbour(kept[n], float(cosines[n])) for n in order]
