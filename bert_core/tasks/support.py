"""What every task needs: the head or a clear refusal, and a stable softmax."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from bert_core.load import Loaded
    from bert_core.serving.engine import Engine

#: Head of `Model.heads` -> what it does, for messages.
HEADS = {
    "mlm": "masked-language-model", "lm": "next-token", "nsp": "next-sentence", "classification": "classification",
    "token_classification": "token-classification", "question_answering": "question-answering",
}


class NoHead(ValueError):
    """The model's checkpoint lacks the head that this task needs."""


def require_head(engine: Engine, model: str | None, *heads: str) -> Loaded:
    """The model of this name, which has one of `heads`.

    Raises:
        NoHead: it has none of them; the message says what it can do.
    """
    loaded = engine.loaded(model)
    if heads == ("mlm",) and "lm" in loaded.model.heads:
        raise NoHead(f"{loaded.name} is causal: it predicts the next token and can't fill a [MASK]; use `next`")
    if not loaded.model.heads.intersection(heads):
        tasks = ", ".join(loaded.info.tasks) or "none but its hidden states"
        wanted = " or ".join(HEADS[head] for head in heads)
        raise NoHead(f"{loaded.name} has no trained {wanted} head; its tasks: {tasks}")
    return loaded


def require_text(text: str, what: str = "text") -> None:
    """ValueError if there is nothing to read."""
    if not text.strip():
        raise ValueError(f"the {what} is empty")


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without the spaces at its ends, which some tokenizers count to the piece."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities over the last axis, in float64."""
    shifted = np.exp(np.asarray(logits, dtype=np.float64) - np.max(logits, axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def sigmoid(logits: np.ndarray) -> np.ndarray:
    """A probability for each logit by itself, in float64."""
    return np.exp(-np.logaddexp(0.0, -np.asarray(logits, dtype=np.float64)))  # without overflow at either end


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Natural logarithm of the probabilities over the last axis, in float64."""
    shifted = np.asarray(logits, dtype=np.float64) - np.max(logits, axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
