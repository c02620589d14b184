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
    "elmo": "Two one-way readers that never meet inside: what each adds for a word is added up at the end.",
}
#: Accent of each card.
ACCENTS = {"both": "both", "left": "oneway", "hidden": "oneway", "right": "oneway", "elmo": "neutral"}
#: Tokens of the sentence that a card repeats around the gap.
STRIP = 14
#: Probabilities nearer than this factor, and than so much of 1, are called alike.
ALIKE, NEAR = 1.5, 0.1


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


def card(
    reading: Reading, guesses: Sequence[Prediction], encoding: Encoding, word: str, is_true: bool = True
) -> dict[str, Any]:
    """One reader's card.

    Args:
        guesses: its best pieces.
        encoding: the input as this reader's tokenizer cuts it.
        word: the word that all are asked for, '' if there is none.
        is_true: whether it is what the gap hides; only then a guess can be right.
    """
    hit = reading.truth[0] if reading.truth and is_true else None
    said = truth(reading, word) | {"asked": "true word" if is_true else "asked"}
    rows = [{"t": g.token, "p": round(g.probability, 6), "hit": g.id == hit} for g in guesses]
    return {
        "reader": reading.reader, "title": NAMES[reading.reader], "models": " × ".join(reading.models),
        "note": NOTES[reading.reader], "accent": ACCENTS[reading.reader],
        "strip": strip(encoding, reading.reader, reading.positions), "truth": said, "rows": rows,
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


def side_by_side_line(readings: Mapping[str, Reading], word: str, stands_last: bool = False) -> str:
    """What the right side does for BERT, and what the one-way reader says; '' without a known word.

    Whether the right side matters is read from one model, with it and without it
    ('both' and 'before'): two models differ in more than what they see.

    Args:
        stands_last: whether nothing but specials stands after the gap.
    """
    known = {r: readings[r].probability for r in ("both", "before", "left", "hidden")
             if r in readings and readings[r].probability is not None}
    one_way = "left" if "left" in known else "hidden"
    if not {"both", one_way} <= known.keys():
        return ""
    other = f"“{NAMES[one_way]}” gives it **{percent(known[one_way])}**"
    if max(known.values()) < 0.01:
        return f"Nobody finds “{word}”: BERT gives it **{percent(known['both'])}**, {other}."
    if stands_last:
        return (f"Nothing stands after the gap, so all have read the same words: BERT gives “{word}” "
                f"**{percent(known['both'])}**, {other}. What differs is the model.")
    if "before" not in known:
        return (f"BERT gives “{word}” **{percent(known['both'])}**, {other}. They are two models, which differ in more "
                "than what they see.")
    causal = "" if one_way == "hidden" or "hidden" not in known else (
        f" (“{NAMES['hidden']}” also keeps the words before the gap from looking right: {percent(known['hidden'])})")
    return f"{_right_side(known['both'], known['before'], word)}{causal}; {other}."


def guessed_line(word: str) -> str:
    """What the large numbers are of where nobody said what the gap hides; '' where they are of nothing."""
    return word and (
        f"Nobody said what the gap hides. The large numbers are of BERT's best guess, “{word}”: BERT chose it, so they "
        "favour BERT. Type the word under “Word behind the gap” for a fair question.")


def _right_side(whole: float, before: float, word: str) -> str:
    """What BERT makes of the words after the gap: its probability with them and without them."""
    numbers = (f"BERT gives “{word}” **{percent(whole)}** with the words after the gap and **{percent(before)}** "
               "without them")
    if are_alike(whole, before):
        return f"Here the right side hardly matters: {numbers}"
    return f"Here the right side {'helps' if whole > before else 'misleads'}: {numbers}"


def are_alike(first: float, second: float) -> bool:
    """Whether two probabilities differ by little, both as a factor and as a share of all."""
    return max(first, second) <= ALIKE * min(first, second) and abs(first - second) < NEAR


def elmo_line(readings: Mapping[str, Reading], word: str) -> str:
    """What the numbers here say for or against the paper's argument, '' without a known word."""
    found = {r: readings[r].log_likelihood for r in ("both", "elmo", "left", "right") if r in readings}
    if len(found) < 4 or None in found.values():
        return ""
    gap = found["both"] - found["elmo"]
    numbers = (f"“{word}” gets {percent(np.exp(found['left']))} from the left, {percent(np.exp(found['right']))} from "
               f"the right, **{percent(np.exp(found['elmo']))}** from the two joined and "
               f"**{percent(np.exp(found['both']))}** both ways in every layer")
    if are_alike(float(np.exp(found["both"])), float(np.exp(found["elmo"]))):
        return f"Neither for nor against, at this word: {numbers}."
    side = "for" if gap > 0 else "against"
    return f"At this word the numbers speak **{side}** the paper: {numbers} ({abs(gap):.1f} nats apart)."
