"""Compare page: each reader's answer as plain data for the cards, and the sentence that sums them up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bert_core.figures.compare import NAMES, window_around
from bert_core.figures.masking import percent
from bert_core.measures.compare import MAX_PIECES, Reading
from bert_core.tasks.vocabulary import Prediction
from bert_core.tokenizer import Encoding

#: What each reader is, said on its card.
NOTES = {
    "both": "A [MASK] stands in the gap; every layer looks left and right.",
    "left": "Trained to guess the next word; it knows nothing right of the gap.",
    "hidden": "Not a GPT: the BERT beside it, under a causal mask that it was never trained with.",
    "right": "The same training on reversed text; it knows nothing left of the gap.",
    "elmo": "Two one-way readers that never meet inside: their lists multiplied and renormalised.",
}
#: Accent of each card.
ACCENTS = {"both": "both", "left": "oneway", "hidden": "oneway", "right": "oneway", "elmo": "neutral"}
#: Tokens of the sentence that a card repeats around the gap.
STRIP = 14
#: Probabilities nearer than this factor are called alike.
ALIKE = 1.5


def sees(reader: str, position: int, places: Sequence[int]) -> bool:
    """Whether this reader knows the token at a position outside the gap."""
    if reader in ("left", "hidden"):
        return position < min(places)
    return position > max(places) if reader == "right" else True


def strip(encoding: Encoding, reader: str, places: Sequence[int]) -> list[dict[str, str]]:
    """The sentence as this reader knows it: 'seen', 'unseen' and 'gap' tokens around the gap."""
    low, high = window_around(len(encoding), places[0], STRIP)
    more = {"t": "…", "k": "more"}  # only where a piece was cut off, not for a special token
    pieces = [] if all(encoding.special[:low]) else [more]
    for n in range(low, high):
        if n in places:
            pieces.append({"t": "?", "k": "gap"})
        elif not encoding.special[n]:
            pieces.append({"t": encoding.tokens[n], "k": "seen" if sees(reader, n, places) else "unseen"})
    return pieces if all(encoding.special[high:]) else [*pieces, more]


def card(reading: Reading, guesses: Sequence[Prediction], encoding: Encoding, word: str) -> dict[str, Any]:
    """One reader's card.

    Args:
        guesses: its best pieces.
        encoding: the input as this reader's tokenizer cuts it.
        word: the true word, '' if it is not known.
    """
    rows = [{"t": g.token, "p": round(g.probability, 6), "hit": bool(reading.truth) and g.id == reading.truth[0]}
            for g in guesses]
    return {
        "reader": reading.reader, "title": NAMES[reading.reader], "models": " × ".join(reading.models),
        "note": NOTES[reading.reader], "accent": ACCENTS[reading.reader],
        "strip": strip(encoding, reading.reader, reading.positions), "truth": truth(reading, word), "rows": rows,
    }


def truth(reading: Reading, word: str) -> dict[str, Any]:
    """What the reader says of the true word: its probability and rank, or why there is none."""
    if reading.probability is None:
        why = ("you typed [MASK], so nobody knows the true word" if not word else
               f"more than {MAX_PIECES} pieces" if reading.truth else "not in the vocabulary")
        return {"word": word, "why": why}
    return {"word": word, "p": reading.probability, "rank": reading.rank, "pieces": len(reading.truth)}


def gap_card(reader: str, reason: str) -> dict[str, Any]:
    """A reader that can't answer here, with the reason."""
    return {"reader": reader, "title": NAMES[reader], "models": "", "note": reason, "accent": ACCENTS[reader],
            "strip": [], "truth": None, "rows": []}


# --- the sentence under the cards --------------------------------------------


def side_by_side_line(readings: Mapping[str, Reading], word: str) -> str:
    """What the three readers' numbers say about the right side, '' without a known word."""
    known = {r: readings[r].probability for r in ("both", "left", "hidden")
             if r in readings and readings[r].probability is not None}
    if "both" not in known or len(known) < 2:
        return ""
    one_way = "left" if "left" in known else "hidden"
    with_right, without = known["both"], known[one_way]
    numbers = (f"“{word}” gets **{percent(with_right)}** from “{NAMES['both']}” and "
               f"**{percent(without)}** from “{NAMES[one_way]}”")
    if max(with_right, without) < 0.01:
        return f"Nobody finds it: {numbers}."
    if with_right > ALIKE * without:
        return f"Here the right side helps: {numbers}."
    if without > ALIKE * with_right:
        return f"Here the one-way reader does better: {numbers}."
    return f"Here the right side hardly matters: {numbers}."


def elmo_line(readings: Mapping[str, Reading], word: str) -> str:
    """What the numbers here say for or against the paper's argument, '' without a known word."""
    found = {r: readings[r].log_likelihood for r in ("both", "elmo", "left", "right") if r in readings}
    if len(found) < 4 or None in found.values():
        return ""
    gap = found["both"] - found["elmo"]
    numbers = (f"“{word}” gets {percent(np.exp(found['left']))} from the left, {percent(np.exp(found['right']))} from "
               f"the right, **{percent(np.exp(found['elmo']))}** from their product and "
               f"**{percent(np.exp(found['both']))}** both ways in every layer")
    if abs(gap) < np.log(ALIKE):
        return f"Neither for nor against, at this word: {numbers}."
    side = "for" if gap > 0 else "against"
    return f"At this word the numbers speak **{side}** the paper: {numbers} ({abs(gap):.1f} nats apart)."
