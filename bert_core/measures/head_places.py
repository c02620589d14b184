"""Where in the shipped sentences a head looks most, and what it does there on average.

exBERT (Hoover et al. 2020, arXiv 1910.05276) asks an annotated corpus where else
a head does what it does here. This asks for a head's strongest looks, whatever
the text at hand, so that one sentence is not taken for what the head is for.

Dimensions: N sentences, K places kept, W words, F kinds of words, L layers, H heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bert_core.measures.attention import HeadNumbers, head_numbers, merge_words
from bert_core.measures.heads import STOPS, Sentence, corpus_groups, corpus_traces, head_corpus
from bert_core.serving import Engine
from bert_core.trace import Array

#: Places kept of each head.
KEPT = 6
#: What a word can be in the shipped sentences: what it depends on says it, or what depends on it.
_OWN = {"det": "determiner", "poss": "possessive", "amod": "adjective", "nsubj": "subject", "aux": "auxiliary",
        "prt": "particle", "dobj": "object", "pobj": "after a preposition"}
_HEADS = {"nsubj": "verb", "dobj": "verb", "aux": "verb", "prt": "verb", "pobj": "preposition"}
KINDS = ("determiner", "possessive", "adjective", "subject", "auxiliary", "verb", "particle", "object", "preposition",
         "after a preposition", "full stop", "other")


class LooksByKind(NamedTuple):
    """What kinds of words get a head's attention, in all sentences together; F kinds as in KINDS.

    Attributes:
        often: (F,) float32, each kind's share of all words.
        share: (F, L, H) float32, its share of what words give to words: special tokens are left out. NaN for a head
            that gives words nothing.
    """

    often: Array
    share: Array


class HeadPlaces(NamedTuple):
    """Each head's strongest look from one word to another, or to itself, in the sentences where it is strongest.

    Special tokens are no words; a word's pieces are merged as `merge_words` does.

    Attributes:
        sentences: words of all that were read.
        sentence: (K, L, H) int16, which of them; one place a sentence, the largest weight first.
        query, key: (K, L, H) int16, which word of it looks at which, counted from 0.
        weight: (K, L, H) float32, 0 to 1.
        means: HeadNumbers with special tokens, each field (L, H): the mean over all sentences.
        kinds: what kinds of words get its attention.
    """

    sentences: tuple[tuple[str, ...], ...]
    sentence: Array
    query: Array
    key: Array
    weight: Array
    means: HeadNumbers
    kinds: LooksByKind


def head_places(
    engine: Engine, model: str | None, corpus: Sequence[Sentence] | None = None, count: int = KEPT
) -> HeadPlaces:
    """Run the sentences through a model and find where each of its heads looks most.

    Args:
        corpus: the shipped sentences if None.
        count: K; fewer where there are fewer sentences.
    """
    corpus = head_corpus() if corpus is None else corpus
    looks, numbers, given = [], [], []
    for sentence, trace in zip(corpus, corpus_traces(engine, model, corpus, ("attention_probs",)), strict=True):
        merged = merge_words(trace.attention_probs, corpus_groups(trace, len(sentence.words)))  # (L, H, W, W)
        looks.append(_strongest(merged))
        numbers.append(head_numbers(trace))
        given.append(merged.sum(axis=-2))
    query, key, weight = (np.stack(part) for part in zip(*looks, strict=True))  # each (N, L, H)
    best = np.argsort(-weight, axis=0, kind="stable")[:count]  # (K, L, H)
    kept = (np.take_along_axis(part, best, axis=0) for part in (query, key, weight))
    means = HeadNumbers(*(np.mean(field, axis=0) for field in zip(*numbers, strict=True)))
    return HeadPlaces(tuple(sentence.words for sentence in corpus), best.astype(np.int16), *kept, means,
                      _by_kind([kind for sentence in corpus for kind in word_kinds(sentence)],
                               np.concatenate(given, axis=-1)))


def word_kinds(sentence: Sentence) -> list[str]:
    """One of KINDS for each word."""
    kinds = ["full stop" if word in STOPS else "other" for word in sentence.words]
    for name, _, head in sentence.relations:
        if name in _HEADS:
            kinds[head] = _HEADS[name]
    for name, dependent, _ in sentence.relations:
        kinds[dependent] = _OWN[name]
    return kinds


def _by_kind(kinds: Sequence[str], given: Array) -> LooksByKind:
    """Of all words one after the other: their kinds, and (L, H, words) what each is given by words that look at it."""
    which = np.array([KINDS.index(kind) for kind in kinds])
    total = np.zeros((len(KINDS), *given.shape[:-1]))
    np.add.at(total, which, np.moveaxis(given, -1, 0))
    with np.errstate(invalid="ignore"):
        share = total / total.sum(axis=0)
    often = np.bincount(which, minlength=len(KINDS)) / len(which)
    return LooksByKind(often.astype(np.float32), share.astype(np.float32))


def _strongest(merged: Array) -> tuple[Array, Array, Array]:
    """Query word, key word and weight of each head's largest in (L, H, W, W) word-to-word weights, each (L, H)."""
    words = merged.shape[-1]
    flat = merged.reshape(*merged.shape[:2], -1)
    best = flat.argmax(axis=-1)
    weight = np.take_along_axis(flat, best[..., None], axis=-1)[..., 0]
    return (best // words).astype(np.int16), (best % words).astype(np.int16), weight.astype(np.float32)
