"""Scores of the fine-tuned models, through the same functions that the pages call."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bert_core.serving.engine import Engine
from bert_core.tasks.answers import answer
from bert_core.tasks.entities import decoded, group_entities, kind_of, label_tokens, merge_words
from bert_core.tasks.sentences import embed, label_names, read_logits
from bert_core.tasks.support import require_head, softmax
from bert_core.trace import TraceRequest
from bert_core.training import datasets
from bert_core.training.taskdata import TASKS

Span = tuple[int, int, str]
#: Rows that a correlation needs.
FEWEST_ROWS = 2
#: Cosines of equal vectors differ by less.
ROUNDING = 1e-9


def _classes(
    engine: Engine, rows: Sequence[datasets.Labelled], wanted: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """(N,) predicted and (N,) true class indices.

    Args:
        wanted: names of classes 0 and 1. A model's are known by their names, in whatever order and case it has them;
            by their places only where it names them LABEL_0 and LABEL_1.

    Raises:
        ValueError: the model tells other classes apart.
    """
    loaded = require_head(engine, None, "classification")
    order = sorted(range(len(rows)), key=lambda i: len(rows[i].text))
    predicted = np.zeros(len(rows), dtype=np.int64)
    traces = engine.run_many([TraceRequest(rows[i].text, parts=("logits",)) for i in order])
    count = len(read_logits(loaded.config, traces[0].logits).logits)
    names = [name.lower() for name in label_names(loaded.config, count)]
    if sorted(names) not in (sorted(wanted), [f"label_{n}" for n in range(len(wanted))]):
        raise ValueError(f"this task's classes are {' and '.join(wanted)}, those of {loaded.name} {', '.join(names)}")
    places = [wanted.index(name) if name in wanted else n for n, name in enumerate(names)]
    for i, trace in zip(order, traces, strict=True):
        predicted[i] = places[names.index(read_logits(loaded.config, trace.logits).label.lower())]
    return predicted, np.array([row.label for row in rows])


def sentiment(engine: Engine, path: Path, limit: int | None = None) -> dict[str, Any]:
    """Accuracy on SST-2."""
    predicted, true = _classes(engine, datasets.every(datasets.read_sst2(path), limit, path), TASKS["sst2"].labels)
    return {"n": len(true), "accuracy": float((predicted == true).mean())}


def acceptability(engine: Engine, path: Path, limit: int | None = None) -> dict[str, Any]:
    """Matthews correlation (0 where only one class was given or found, as sklearn defines it) and accuracy on CoLA."""
    from sklearn.metrics import matthews_corrcoef

    predicted, true = _classes(engine, datasets.every(datasets.read_cola(path), limit, path), TASKS["cola"].labels)
    several = len(np.unique(np.concatenate([predicted, true]))) > 1  # sklearn warns of a single one
    return {"n": len(true), "matthews": float(matthews_corrcoef(true, predicted)) if several else 0.0,
            "accuracy": float((predicted == true).mean())}


def entities(engine: Engine, path: Path, limit: int | None = None) -> dict[str, Any]:
    """Entity-level precision, recall and F1, decoded as the model says; span and class must be exactly right."""
    loaded = require_head(engine, None, "token_classification")
    rows = datasets.every(datasets.read_ner(path), limit, path)
    traces = engine.run_many([TraceRequest(" ".join(row.words), parts=("logits",)) for row in rows])
    right = predicted = true = 0
    for row, trace in zip(rows, traces, strict=True):
        labels = label_names(loaded.config, trace.logits.shape[-1])
        tokens = label_tokens(trace.encoding, softmax(trace.logits), labels)
        words = merge_words(trace.encoding.text, tokens, labels, "first")
        found = group_entities(trace.encoding.text, decoded(words, labels, loaded.config.label_decoding))
        ours, gold = {(e.start, e.end, e.label) for e in found}, gold_spans(row)
        right, predicted, true = right + len(ours & gold), predicted + len(ours), true + len(gold)
    precision, recall = right / max(1, predicted), right / max(1, true)
    f1 = 2 * precision * recall / max(1e-12, precision + recall)
    return {"n": len(rows), "f1": f1, "precision": precision, "recall": recall, "entities": true}


def gold_spans(row: datasets.TaggedWords) -> set[Span]:
    """(start, end, class) in the words joined by blanks."""
    spans: list[Span] = []
    start, running = 0, False
    for word, tag in zip(row.words, row.tags, strict=True):
        end, kind = start + len(word), kind_of(tag)
        if tag != "O" and running and tag.startswith("I-") and kind == spans[-1][2]:
            spans[-1] = (spans[-1][0], end, kind)
        elif tag != "O":
            spans.append((start, end, kind))
        running, start = tag != "O", end + 1
    return set(spans)


def answers(engine: Engine, path: Path, limit: int | None = None) -> dict[str, Any]:
    """Exact match and token F1 of SQuAD 1.1, the best over the reference answers."""
    rows = datasets.every(datasets.read_squad(path), limit, path)
    require_head(engine, None, "question_answering")
    exact = overlap = 0.0
    for row in rows:
        found = answer(engine, row.question, row.context).text
        exact += max(float(normalise(found) == normalise(text)) for text, _ in row.answers)
        overlap += max(token_f1(found, text) for text, _ in row.answers)
    return {"n": len(rows), "f1": overlap / len(rows), "exact_match": exact / len(rows)}


def normalise(text: str) -> str:
    """SQuAD's: lower case, no punctuation, no articles, single blanks."""
    text = "".join(c for c in text.lower() if c not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def token_f1(found: str, gold: str) -> float:
    """Harmonic mean of word precision and recall, 0 to 1."""
    ours, theirs = normalise(found).split(), normalise(gold).split()
    common = sum((Counter(ours) & Counter(theirs)).values())
    if not common:
        return float(ours == theirs)
    return 2 * common / (len(ours) + len(theirs))


def similarity(engine: Engine, path: Path, limit: int | None = None) -> dict[str, Any]:
    """Spearman and Pearson correlation of cosines with people's scores on STS-B.

    Raises:
        ValueError: fewer than two rows, or scores or cosines that are all the same, which have no correlation.
    """
    from scipy.stats import pearsonr, spearmanr

    rows = datasets.every(datasets.read_stsb(path), limit, path)
    if len(rows) < FEWEST_ROWS:
        raise ValueError(f"a correlation needs {FEWEST_ROWS} rows at least; give a greater --limit")
    gold = [row.score for row in rows]
    _require_spread(gold, "scores")
    cosine = [float(embed(engine, row.first) @ embed(engine, row.second)) for row in rows]
    _require_spread(cosine, "cosines")
    return {"n": len(rows), "spearman": float(spearmanr(cosine, gold)[0]), "pearson": float(pearsonr(cosine, gold)[0])}


def _require_spread(values: Sequence[float], what: str) -> None:
    """ValueError if the values are the same but for rounding."""
    if np.ptp(values) < ROUNDING:
        raise ValueError(f"the {what} are all the same, so there is no correlation")


LABELLED_TASKS: dict[str, Callable[[Engine, Path, int | None], dict[str, Any]]] = {
    "sst2": sentiment, "ner": entities, "squad": answers, "stsb": similarity, "cola": acceptability,
}
