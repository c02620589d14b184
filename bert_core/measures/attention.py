"""Numbers from attention maps: what a head does on this text, and maps made ready to be looked at.

Dimensions: L layers, H heads, T tokens; a map is (Tq, Tk), rows are the query
(from), columns the key (to). Every function takes (..., Tq, Tk) unless it says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bert_core.tokenizer import Encoding
from bert_core.trace import Array, Trace

SEGMENT_FILTERS = ("all", "aa", "ab", "ba", "bb")
SPECIALS = ("show", "hide", "renormalise")


class HeadNumbers(NamedTuple):
    """What each head does on one text; every field is (L, H).

    Attributes:
        entropy: mean over queries of -sum p ln p, nats; 0 looks at one token, ln T at all alike.
        distance: mean |key - query| in tokens, weighted by attention.
        cls, sep, previous, following, itself: mean share (0 to 1) of a query's attention on the first
            token, on separators, on the token before, after, and the query itself; of the queries that have a
            token before, or after. `cls` is NaN where the first token is no special one, `sep` where there is
            no separator (GPT-2), `previous` and `following` where there is one token only.
    """

    entropy: Array
    distance: Array
    cls: Array
    sep: Array
    previous: Array
    following: Array
    itself: Array


def head_numbers(trace: Trace) -> HeadNumbers:
    """All of HeadNumbers for a Trace with `attention_probs`."""
    probs = trace.attention_probs  # (L, H, Tq, Tk)
    separators, length = separator_positions(trace.encoding), probs.shape[-1]
    none = np.full(probs.shape[:2], np.nan, dtype=probs.dtype)
    return HeadNumbers(
        entropy(probs).mean(axis=-1),
        mean_distance(probs),
        probs[..., 0].mean(axis=-1) if trace.encoding.special[0] else none,
        probs[..., separators].sum(axis=-1).mean(axis=-1) if separators else none,
        np.trace(probs, offset=-1, axis1=-2, axis2=-1) / (length - 1) if length > 1 else none,
        np.trace(probs, offset=1, axis1=-2, axis2=-1) / (length - 1) if length > 1 else none,
        np.trace(probs, axis1=-2, axis2=-1) / length,
    )


def far_words(probs: Array, special: Array) -> Array:
    """How much each head looks at words further away than the neighbours.

    Args:
        probs: (L, H, T, T).
        special: (T,) bool, tokens that are no words.

    Returns:
        (L, H), 0 to 1: mean over word queries of the largest weight on a word at least two tokens away.
    """
    place = np.arange(len(special))
    far = (np.abs(place[:, None] - place[None, :]) > 1) & ~special[None, :]
    return np.where(far, probs, 0.0).max(axis=-1)[..., ~special].mean(axis=-1)


def separator_positions(encoding: Encoding) -> list[int]:
    """Positions of special tokens other than the first."""
    return [i for i, special in enumerate(encoding.special) if special and i > 0]


def special_names(encoding: Encoding) -> dict[str, str]:
    """[CLS] and [SEP] -> what this model writes for them; without the one that this input has none of."""
    places = {"[CLS]": [0] if encoding.special[:1] == (True,) else [], "[SEP]": separator_positions(encoding)}
    return {name: encoding.tokens[found[0]] for name, found in places.items() if found}


def entropy(probs: Array) -> Array:
    """(L, H, Tq, Tk) -> (L, H, Tq), nats; a layer at a time, since a base-size model at 512 tokens has 151 MB."""
    smallest = np.finfo(probs.dtype).tiny
    return np.stack([-np.einsum("hqk,hqk->hq", layer, np.log(np.maximum(layer, smallest))) for layer in probs])


def mean_distance(probs: Array) -> Array:
    """(..., Tq, Tk) -> (...), tokens."""
    place = np.arange(probs.shape[-1])
    apart = np.abs(place[:, None] - place[None, :]).astype(probs.dtype)
    return np.einsum("...qk,qk->...", probs, apart) / probs.shape[-2]


def ranks(values: Array) -> Array:
    """(L, H) -> share of all heads with a smaller value, 0 to 1."""
    flat = values.ravel()
    return (np.searchsorted(np.sort(flat), flat) / max(flat.size - 1, 1)).reshape(values.shape)


# --- maps made ready to be looked at -------------------------------------------


def thumbnails(probs: Array, size: int) -> Array:
    """Max-pool maps to at most `size` cells a side, as uint8.

    Args:
        probs: (L, H, Tq, Tk).

    Returns:
        (L, H, S, S) of round(255 sqrt(p)); a cell is the largest weight in it,
        so that a thin stripe is not lost.
    """
    pooled = probs
    if probs.shape[-1] > size:
        edges = -(-np.arange(size + 1) * probs.shape[-1] // size)  # cell of token i is floor(i S / T)
        rows = np.stack([probs[:, :, a:b].max(axis=2) for a, b in itertools.pairwise(edges)], axis=2)  # (L, H, S, T)
        pooled = np.stack([rows[..., a:b].max(axis=3) for a, b in itertools.pairwise(edges)], axis=3)
    return np.rint(255.0 * np.sqrt(np.clip(pooled, 0.0, 1.0))).astype(np.uint8)


def word_groups(encoding: Encoding) -> list[list[int]]:
    """Positions of each word's pieces, specials alone, in order."""
    groups: list[list[int]] = []
    before: tuple | None = None
    for position, (word, sentence) in enumerate(zip(encoding.word_ids, encoding.sequence_ids, strict=True)):
        here = None if word is None or encoding.special[position] else (sentence, word)
        if here is not None and here == before:
            groups[-1].append(position)
        else:
            groups.append([position])
        before = here
    return groups


def merge_words(probs: Array, groups: Sequence[Sequence[int]]) -> Array:
    """Pieces to words: columns are summed, rows averaged (Clark et al. 2019, section 4.1).

    A row of the result sums to what its pieces' rows summed to; a word without
    pieces (cut off at the limit) has 0 everywhere.
    """
    gather = np.zeros((len(groups), probs.shape[-1]), dtype=probs.dtype)  # (W, T)
    for word, pieces in enumerate(groups):
        gather[word, list(pieces)] = 1
    return (gather / np.maximum(gather.sum(axis=1, keepdims=True), 1)) @ probs @ gather.T


def hide_tokens(probs: Array, hidden: Array, renormalise: bool) -> Array:
    """Weights with some tokens out of sight as keys and as queries.

    Args:
        hidden: (T,) bool.
        renormalise: divide what is left of each row by its sum; without, the
            weights stay what the model used.
    """
    shown = np.where(hidden[None, :] | hidden[:, None], 0, probs)
    if not renormalise:
        return shown
    total = shown.sum(axis=-1, keepdims=True)
    return np.divide(shown, total, out=np.zeros_like(shown), where=total > 0)


def keep_segments(probs: Array, segments: Array, which: str) -> Array:
    """Only the weights from one sentence to one: 'aa', 'ab', 'ba', 'bb', or 'all'.

    Args:
        segments: (T,) 0 for the first sentence, 1 for the second.
    """
    if which == "all":
        return probs
    side = {"a": 0, "b": 1}
    keep = (segments == side[which[0]])[:, None] & (segments == side[which[1]])[None, :]
    return np.where(keep, probs, 0)


def strongest(probs: Array, count: int) -> Array:
    """Each row's `count` largest weights, the rest 0; ties go to the earlier key."""
    order = np.argsort(-probs, axis=-1, kind="stable")
    place = np.argsort(order, axis=-1, kind="stable")
    return np.where(place < count, probs, 0)


@dataclass(frozen=True)
class MapOptions:
    """How a map is shown; the browser applies the same, in this order.

    Attributes:
        words: merge the pieces of a word.
        specials: 'show', 'hide' (weights stay as they are), 'renormalise'.
        segments: one of SEGMENT_FILTERS.
        threshold: smaller weights are not drawn.
        top: only each row's so many largest; 0 is all.
    """

    words: bool = False
    specials: str = "show"
    segments: str = "all"
    threshold: float = 0.0
    top: int = 0


def shown_map(trace: Trace, probs: Array, options: MapOptions) -> tuple[list[str], Array]:
    """Labels and weights as the picture shows them.

    Args:
        probs: (..., Tq, Tk) of this Trace.

    Returns:
        Labels of the N tokens or words, and (..., N, N).
    """
    encoding = trace.encoding
    groups = word_groups(encoding) if options.words else [[i] for i in range(len(encoding))]
    first = [group[0] for group in groups]
    shown = merge_words(probs, groups) if options.words else probs
    if options.specials != "show":
        hidden = np.array([encoding.special[i] for i in first])
        shown = hide_tokens(shown, hidden, options.specials == "renormalise")
    shown = keep_segments(shown, np.array([encoding.token_type_ids[i] for i in first]), options.segments)
    if options.top:
        shown = strongest(shown, options.top)
    labels = ["".join(encoding.tokens[i].removeprefix("##") if n else encoding.tokens[i]
                      for n, i in enumerate(group)) for group in groups]
    return labels, np.where(shown >= options.threshold, shown, 0)
