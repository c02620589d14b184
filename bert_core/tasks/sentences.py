"""Tasks that read a whole input as one vector: classes, next sentence, sentence vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bert_core.tasks.support import require_head, sigmoid, softmax
from bert_core.trace import TraceRequest

if TYPE_CHECKING:
    from bert_core.config import BertConfig
    from bert_core.serving.engine import Engine


@dataclass(frozen=True)
class Classification:
    """A classifier's answer.

    Attributes:
        label: the most probable class, by its `class_names`; a regression's greatest number.
        probability: of that class, 0 to 1; the number itself for a regression.
        probabilities: of every class; they sum to 1 unless the model was
            trained for several labels at once. Empty for a regression.
        logits: one number a class, as the head gives them.
        values: of every class by name, its probability or a regression's number.
    """

    label: str
    probability: float
    probabilities: Mapping[str, float]
    logits: tuple[float, ...]
    values: Mapping[str, float]


def label_names(config: BertConfig, count: int) -> tuple[str, ...]:
    """The model's words for its classes, or LABEL_0, LABEL_1 where it names none; two may have the same."""
    return config.id2label if len(config.id2label) == count else tuple(f"LABEL_{n}" for n in range(count))


def class_names(config: BertConfig, count: int) -> tuple[str, ...]:
    """One name a class, each another: what a class is chosen and found by."""
    return told_apart(label_names(config, count))


def told_apart(names: Sequence[str]) -> tuple[str, ...]:
    """The names, with their numbers where several are the same: 'neg (0)', 'neg (1)', 'pos'."""
    times = Counter(names)
    found = tuple(name if times[name] == 1 else f"{name} ({n})" for n, name in enumerate(names))
    if len(set(found)) == len(found):
        return found
    return tuple(f"{name} ({n})" for n, name in enumerate(names))  # one is called 'neg (0)' by itself


def several_hold(config: BertConfig, count: int) -> bool:
    """Whether each of `count` classes holds or not by itself, instead of one of them."""
    return config.problem_type == "multi_label_classification" or count == 1


def class_probabilities(config: BertConfig, logits: np.ndarray) -> np.ndarray:
    """Softmax, or a sigmoid a class where several may hold (or there is only one).

    Args:
        logits: (C,).
    """
    return sigmoid(logits) if several_hold(config, len(logits)) else softmax(logits)


def read_logits(config: BertConfig, logits: np.ndarray) -> Classification:
    """A head's logits (C,) as an answer."""
    names = class_names(config, len(logits))
    regression = config.problem_type == "regression"
    numbers = logits if regression else class_probabilities(config, logits)
    best = int(np.argmax(numbers))
    values = dict(zip(names, map(float, numbers), strict=True))
    return Classification(
        names[best], float(numbers[best]), {} if regression else values, tuple(map(float, logits)), values)


def classify(engine: Engine, text: str, pair: str | None = None, model: str | None = None) -> Classification:
    """A sequence classifier over [CLS] (Devlin et al. 2018, section 4.1).

    Raises:
        NoHead: the model has no classification head.
    """
    loaded = require_head(engine, model, "classification")
    trace = engine.run(TraceRequest(text, pair, model=model, parts=("logits",)))
    return read_logits(loaded.config, trace.logits)


def is_next(engine: Engine, first: str, second: str, model: str | None = None) -> float:
    """Probability, 0 to 1, that `second` follows `first` (section 3.1, task 2).

    Raises:
        NoHead: the model has no next-sentence head.
    """
    require_head(engine, model, "nsp")
    trace = engine.run(TraceRequest(first, second, model=model, parts=("nsp_logits",)))
    return float(softmax(trace.nsp_logits)[0])


def embed(engine: Engine, text: str, model: str | None = None) -> np.ndarray:
    """Sentence vector (D,): mean of the last hidden states of the non-special tokens, L2-normalised.

    Raises:
        ValueError: the text has no token of its own.
    """
    trace = engine.run(TraceRequest(text, model=model, parts=("hidden_states",)))
    content = list(trace.encoding.content)
    if not content:
        raise ValueError("the text has no token to make a vector of")
    mean = trace.hidden_states[-1][content].astype(np.float64).mean(axis=0)
    return mean / max(float(np.linalg.norm(mean)), 1e-12)
