"""A class's guesses for a gap beside the model's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bert_core.load import Loaded
from bert_core.tasks.support import softmax
from bert_core.trace import Trace


class Guess(NamedTuple):
    """One word: share of the class (0 to 1) and the model's probability, None where it is no piece of its own."""

    word: str
    share: float
    probability: float | None


def compare_guesses(guesses: Sequence[tuple[str, int]], trace: Trace, loaded: Loaded, most: int = 8) -> list[Guess]:
    """The class's commonest words and the model's best, most of each, the class's first.

    Args:
        guesses: (word, how often), most often first.
        trace: a run with mlm_logits at one gap at least; the first counts.

    Raises:
        ValueError: the run has no gap.
    """
    if not trace.has("mlm_logits") or not len(trace.mlm_logits):
        raise ValueError("the sentence of the poll has no gap that this model can fill")
    probabilities = softmax(trace.mlm_logits[0])
    total = sum(count for _, count in guesses) or 1
    rows = [Guess(word, count / total, _probability(word, probabilities, loaded)) for word, count in guesses[:most]]
    named = {row.word for row in rows}
    best = (int(i) for i in np.argsort(-probabilities)[: most // 2 + 1])
    own = [Guess(loaded.tokenizer.token_of(i), 0.0, float(probabilities[i])) for i in best]
    return rows + [guess for guess in own if guess.word not in named]


def _probability(word: str, probabilities: np.ndarray, loaded: Loaded) -> float | None:
    encoding = loaded.tokenizer.encode(word)
    pieces = [encoding.input_ids[n] for n in encoding.content]
    unknown = loaded.tokenizer.id_of(loaded.tokenizer.specials.get("unk", ""))
    return float(probabilities[pieces[0]]) if len(pieces) == 1 and pieces[0] != unknown else None
