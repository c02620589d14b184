"""Entities: a class for each token, joined to words and then to spans of the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bert_core.config import LABEL_DECODINGS
from bert_core.tasks.sentences import label_names
from bert_core.tasks.support import require_head, softmax, trimmed
from bert_core.trace import TraceRequest

if TYPE_CHECKING:
    from bert_core.serving.engine import Engine
    from bert_core.tokenizer import Encoding

AGGREGATIONS = ("simple", "first", "average", "max")
OUTSIDE = "O"


@dataclass(frozen=True)
class TokenLabel:
    """One token (or word) and its class probabilities.

    Attributes:
        token: the piece; the covered text for a word.
        start, end: code points of the text, end exclusive.
        word: index of the word in the text.
        probabilities: one a label, in the model's order, each 0 to 1.
        label: the most probable label, such as 'B-PER', or what `most_probable_path` makes of it.
        probability: of `label`.
    """

    token: str
    start: int
    end: int
    word: int | None
    probabilities: tuple[float, ...]
    label: str
    probability: float


@dataclass(frozen=True)
class Entity:
    """A span of the text that names something.

    Attributes:
        label: without B- or I-, such as 'PER'.
        start, end: code points of the text, end exclusive.
        score: mean probability of its words, 0 to 1.
    """

    text: str
    label: str
    start: int
    end: int
    score: float


@dataclass(frozen=True)
class Reading:
    """A text read for entities: what each token was taken for, and what comes of it.

    Attributes:
        words: as decoded; with the aggregation 'simple' they are the tokens. Those of spaces alone are left out.
    """

    text: str
    labels: tuple[str, ...]
    tokens: tuple[TokenLabel, ...]
    words: tuple[TokenLabel, ...]
    entities: tuple[Entity, ...]


def find_entities(
    engine: Engine, text: str, model: str | None = None, aggregation: str = "first", visitor: str | None = None,
    decoding: str | None = None,
) -> Reading:
    """Entities of a text (Devlin et al. 2018, section 5.3).

    Args:
        aggregation: how the pieces of a word agree on one label: 'first' (the
            paper: the first piece speaks for the word), 'average', 'max', or
            'simple' (no words: each piece for itself).
        visitor: who asks, as in Engine.run.
        decoding: 'argmax' takes each word's most probable label, 'viterbi' the
            most probable valid sequence; None is what the model's config says.

    Raises:
        NoHead: the model has no token-classification head.
        ValueError: the aggregation or the decoding is unknown.
    """
    loaded = require_head(engine, model, "token_classification")
    trace = engine.run(TraceRequest(text, model=model, parts=("logits",)), visitor)
    labels = label_names(loaded.config, trace.logits.shape[-1])
    tokens = label_tokens(trace.encoding, softmax(trace.logits), labels)
    words = merge_words(trace.encoding.text, tokens, labels, aggregation)
    words = decoded(words, labels, decoding or loaded.config.label_decoding)
    return Reading(trace.encoding.text, labels, tokens, words, group_entities(trace.encoding.text, words))


def label_tokens(encoding: Encoding, probabilities: np.ndarray, labels: Sequence[str]) -> tuple[TokenLabel, ...]:
    """One TokenLabel for each token that is not special.

    Args:
        probabilities: (T, C), rows sum to 1.
    """
    return tuple(
        _labelled(encoding.tokens[n], encoding.offsets[n], encoding.word_ids[n], probabilities[n], labels)
        for n in encoding.content
    )


def _labelled(
    token: str, span: tuple[int, int], word: int | None, probabilities: np.ndarray, labels: Sequence[str]
) -> TokenLabel:
    best = int(np.argmax(probabilities))
    return TokenLabel(token, *span, word, tuple(map(float, probabilities)), labels[best], float(probabilities[best]))


def merge_words(
    text: str, tokens: Sequence[TokenLabel], labels: Sequence[str], aggregation: str
) -> tuple[TokenLabel, ...]:
    """Let the pieces of each word agree on one label; a word of spaces alone (byte-level BPE has them) is none."""
    if aggregation not in AGGREGATIONS:
        raise ValueError(f"aggregation {aggregation!r}: choose one of {', '.join(AGGREGATIONS)}")
    if aggregation == "simple":
        return tuple(token for token in tokens if text[token.start:token.end].strip())
    words: list[list[TokenLabel]] = []
    for token in tokens:
        if words and token.word is not None and token.word == words[-1][0].word:
            words[-1].append(token)
        else:
            words.append([token])
    merged = []
    for pieces in words:
        span = (pieces[0].start, pieces[-1].end)
        if not text[slice(*span)].strip():
            continue
        merged.append(_labelled(text[slice(*span)], span, pieces[0].word, _agree(pieces, aggregation), labels))
    return tuple(merged)


def _agree(pieces: Sequence[TokenLabel], aggregation: str) -> np.ndarray:
    """(C,) probabilities that stand for a whole word."""
    table = np.array([piece.probabilities for piece in pieces])
    if aggregation == "average":
        return table.mean(axis=0)
    return table[0] if aggregation == "first" else table[int(table.max(axis=1).argmax())]


def decoded(words: Sequence[TokenLabel], labels: Sequence[str], decoding: str) -> tuple[TokenLabel, ...]:
    """The words with the labels that a decoding gives them."""
    if decoding not in LABEL_DECODINGS:
        raise ValueError(f"decoding {decoding!r}: choose one of {', '.join(LABEL_DECODINGS)}")
    if decoding == "argmax" or not words:
        return tuple(words)
    path = most_probable_path(np.array([word.probabilities for word in words]), labels)
    return tuple(replace(word, label=labels[n], probability=word.probabilities[n])
                 for word, n in zip(words, path, strict=True))


def most_probable_path(probabilities: np.ndarray, labels: Sequence[str]) -> list[int]:
    """The most probable valid sequence of IOB2 labels (Viterbi 1967).

    Valid: I- stands only after B- or I- of its own kind. The words' own
    probabilities are multiplied; nothing is learned. An I- whose kind has no B-
    is free, so labels of another scheme give each word's most probable one.

    Args:
        probabilities: (W, C), rows sum to 1; W at least 1.
        labels: C names.

    Returns:
        W indices of labels.
    """
    begin = {kind_of(label): n for n, label in enumerate(labels) if label.startswith("B-")}
    inside = np.array([n for n, label in enumerate(labels) if label.startswith("I-") and kind_of(label) in begin], int)
    before = np.array([begin[kind_of(labels[n])] for n in inside], int)
    logs = np.log(np.maximum(probabilities, np.finfo(float).tiny))  # (W, C)
    total = logs[0].copy()  # of the best valid sequence that ends in each label
    total[inside] = -np.inf
    came = np.empty(logs.shape, int)  # the label before, on that sequence
    for n in range(1, len(logs)):
        came[n] = total.argmax()
        came[n, inside] = np.where(total[before] >= total[inside], before, inside)
        total = total[came[n]] + logs[n]
    path = [int(total.argmax())]
    for n in range(len(logs) - 1, 0, -1):
        path.append(int(came[n, path[-1]]))
    return path[::-1]


def group_entities(text: str, words: Sequence[TokenLabel]) -> tuple[Entity, ...]:
    """Neighbouring words of one kind are one entity; B- starts a new one, O is none."""
    groups: list[list[TokenLabel]] = []
    for word in words:
        begins, kind = word.label.startswith("B-"), kind_of(word.label)
        if groups and not begins and kind == kind_of(groups[-1][-1].label):
            groups[-1].append(word)
        else:
            groups.append([word])
    return tuple(_entity(text, group) for group in groups if kind_of(group[0].label) != OUTSIDE)


def kind_of(label: str) -> str:
    """'PER' of 'B-PER' and 'I-PER'; a label without a prefix is its own kind."""
    return label[2:] if label[:2] in ("B-", "I-") else label


def _entity(text: str, group: Sequence[TokenLabel]) -> Entity:
    start, end = trimmed(text, group[0].start, group[-1].end)
    score = float(np.mean([word.probability for word in group]))
    return Entity(text[start:end], kind_of(group[0].label), start, end, score)
