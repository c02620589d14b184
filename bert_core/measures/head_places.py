"""Where in the shipped sentences a head looks most, and what it does there on average.

exBERT (Hoover et al. 2020, arXiv 1910.05276) asks an annotated corpus where else
a head does what it does here. This asks for a head's strongest looks, whatever
the text at hand, so that one sentence is not taken for what the head is for.

Dimensions: N sentences, K places kept, W words, L layers, H heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bert_core.measures.attention import HeadNumbers, head_numbers, merge_words
from bert_core.measures.heads import Sentence, corpus_groups, corpus_traces, head_corpus
from bert_core.serving import Engine
from bert_core.trace import Array, Trace

#: Places kept of each head.
KEPT = 6


class HeadPlaces(NamedTuple):
    """Each head's strongest look from one word to another, or to itself, in the sentences where it is strongest.

    Special tokens are no words; a word's pieces are merged as `merge_words` does.

    Attributes:
        sentences: words of all that were read.
        sentence: (K, L, H) int16, which of them; one place a sentence, the largest weight first.
        query, key: (K, L, H) int16, which word of it looks at which, counted from 0.
        weight: (K, L, H) float32, 0 to 1.
        means: HeadNumbers with special tokens, each field (L, H): the mean over all sentences.
    """

    sentences: tuple[tuple[str, ...], ...]
    sentence: Array
    query: Array
    key: Array
    weight: Array
    means: HeadNumbers


def head_places(
    engine: Engine, model: str | None, corpus: Sequence[Sentence] | None = None, count: int = KEPT
) -> HeadPlaces:
    """Run the sentences through a model and find where each of its heads looks most.

    Args:
        corpus: the shipped sentences if None.
        count: K; fewer where there are fewer sentences.
    """
    corpus = head_corpus() if corpus is None else corpus
    looks, numbers = [], []
    for sentence, trace in zip(corpus, corpus_traces(engine, model, corpus, ("attention_probs",)), strict=True):
        looks.append(_strongest(trace, len(sentence.words)))
        numbers.append(head_numbers(trace))
    query, key, weight = (np.stack(part) for part in zip(*looks, strict=True))  # each (N, L, H)
    best = np.argsort(-weight, axis=0, kind="stable")[:count]  # (K, L, H)
    kept = (np.take_along_axis(part, best, axis=0) for part in (query, key, weight))
    means = HeadNumbers(*(np.mean(field, axis=0) for field in zip(*numbers, strict=True)))
    return HeadPlaces(tuple(sentence.words for sentence in corpus), best.astype(np.int16), *kept, means)


def _strongest(trace: Trace, words: int) -> tuple[Array, Array, Array]:
    """Query word, key word and weight of each head's largest word-to-word weight, each (L, H)."""
    merged = merge_words(trace.attention_probs, corpus_groups(trace, words))  # (L, H, W, W)
    flat = merged.reshape(*merged.shape[:2], -1)
    best = flat.argmax(axis=-1)
    weight = np.take_along_axis(flat, best[..., None], axis=-1)[..., 0]
    return (best // words).astype(np.int16), (best % words).astype(np.int16), weight.astype(np.float32)
