"""A class's guesses for a gap beside the model's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bert_core.load import Loaded
from bert_core.measures.predictions import piece
from bert_core.tasks.support import softmax, trimmed
from bert_core.tokenizer import MASK, Tokenizer
from bert_core.trace import Trace


class Guess(NamedTuple):
    """One word: share of the class (0 to 1) and the model's probability, None where it is no piece of its own."""

    word: str
    share: float
    probability: float | None


def compare_guesses(guesses: Sequence[tuple[str, int]], trace: Trace, loaded: Loaded, most: int = 8) -> list[Guess]:
    """The class's commonest words, at most `most`, then the model's best, half as many and one.

    A class's word stands in the spelling that the model finds likeliest: as it
    was typed, in lower case, or with a capital.

    Args:
        guesses: (word, how often), most often first.
        trace: a run with mlm_logits at one gap at least; the first counts.

    Raises:
        ValueError: the run has no gap.
    """
    if not trace.has("mlm_logits") or not len(trace.mlm_logits):
        raise ValueError("the sentence of the poll has no gap that this model can fill")
    probabilities, tokenizer = softmax(trace.mlm_logits[0]), loaded.tokenizer
    total = sum(count for _, count in guesses) or 1
    rows, taken = [], set()
    for word, count in guesses[:most]:
        spelled, index = _likeliest(word, trace.encoding.text, tokenizer, probabilities)
        rows.append(Guess(spelled, count / total, None if index is None else float(probabilities[index])))
        taken.add(index)
    best = (int(i) for i in np.argsort(-probabilities)[: most // 2 + 1])
    return rows + [Guess(piece(tokenizer, i), 0.0, float(probabilities[i])) for i in best if i not in taken]


def _likeliest(word: str, text: str, tokenizer: Tokenizer, probabilities: np.ndarray) -> tuple[str, int | None]:
    """The spelling of a word to which the model gives most, with its id; as typed, with None, where none is a piece."""
    found = {spelled: piece_in_gap(spelled, text, tokenizer) for spelled in (word, word.lower(), word.capitalize())}
    known = {spelled: index for spelled, index in found.items()  # a word that was added later may have no row
             if index is not None and index < len(probabilities)}
    return max(known.items(), key=lambda entry: probabilities[entry[1]]) if known else (word, None)


def piece_in_gap(word: str, text: str, tokenizer: Tokenizer) -> int | None:
    """Id of the one piece that a word is in the first gap of a text, None where it is none or several.

    It is looked for where it stands: RoBERTa's piece of a word holds the space before it.
    """
    start = text.index(MASK)
    end = start + len(word)
    encoding = tokenizer.encode(text[:start] + word + text[start + len(MASK):])
    there = [n for n in encoding.content if encoding.sequence_ids[n] == 0
             and encoding.offsets[n][0] < end and encoding.offsets[n][1] > start]
    if len(there) == 1 and trimmed(encoding.text, *encoding.offsets[there[0]]) == (start, end):
        found = {encoding.input_ids[there[0]]}
    else:  # a tokenizer that aligns whole words only: the gap's word holds the comma behind it
        alone = tokenizer.encode(word)
        ids = [alone.input_ids[n] for n in alone.content]
        found = set(ids) & {encoding.input_ids[n] for n in there} if len(ids) == 1 else set()
    unknown = tokenizer.id_of(tokenizer.specials.get("unk", ""))
    return next(iter(found - {unknown}), None)
