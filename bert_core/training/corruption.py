"""What a training step sees: 80/10/10 masking, next-token targets, reversed reading.

Devlin et al. 2018, section 3.1, task 1, and appendix A.1. Works on one
unpadded sequence of NumPy ids at a time, so that a sequence's corruption
depends on its own seed only, not on the batch or process it lands in.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

#: What happened to a piece; the loss counts on all but UNTOUCHED.
UNTOUCHED, MASKED, RANDOM, KEPT = 0, 1, 2, 3
OUTCOMES = ("untouched", "masked", "random", "kept")


class Corrupted(NamedTuple):
    """A sequence as the masked-LM objective sees it.

    Attributes:
        input_ids: (T,) with the replacements made.
        positions: (P,) the chosen positions, ascending.
        labels: (P,) the true ids there.
        outcome: (T,) UNTOUCHED, MASKED, RANDOM or KEPT.
    """

    input_ids: np.ndarray
    positions: np.ndarray
    labels: np.ndarray
    outcome: np.ndarray


def draw_count(candidates: int, rate: float, rng: np.random.Generator) -> int:
    """How many of `candidates` to choose: rate x candidates, rounded up or down by chance."""
    return min(candidates, int(np.floor(rate * candidates + rng.random())))


def corrupt(
    ids: np.ndarray, special: np.ndarray, mask_id: int, random_ids: np.ndarray, rng: np.random.Generator,
    rate: float = 0.15, split: tuple[float, float, float] = (0.8, 0.1, 0.1),
) -> Corrupted:
    """Choose pieces and replace them.

    Args:
        ids: (T,) piece ids.
        special: (T,) bool, True where nothing may be chosen.
        mask_id: id of [MASK].
        random_ids: (R,) ids that a random replacement is drawn from.
        rate: share of the other pieces that is chosen.
        split: chances that a chosen piece becomes [MASK], a random piece, or
            stays as it is.
    """
    candidates = np.flatnonzero(~special)
    count = draw_count(len(candidates), rate, rng)
    positions = np.sort(rng.choice(candidates, count, replace=False))
    chance = rng.random(count)
    kind = np.where(chance < split[0], MASKED, np.where(chance < split[0] + split[1], RANDOM, KEPT))
    drawn = random_ids[rng.integers(len(random_ids), size=count)]
    labels = ids[positions]
    outcome = np.full(len(ids), UNTOUCHED)
    outcome[positions] = kind
    out = ids.copy()
    out[positions] = np.where(kind == MASKED, mask_id, np.where(kind == RANDOM, drawn, labels))
    return Corrupted(out, positions, labels, outcome)


def reverse_order(length: int) -> np.ndarray:
    """(T,) order in which twin-rtl reads: all pieces between [CLS] and the last [SEP] reversed."""
    return np.concatenate([[0], np.arange(length - 2, 0, -1), [length - 1]])


def next_token_positions(length: int, fraction: float, rng: np.random.Generator) -> np.ndarray:
    """Rows t whose target, token t + 1, is in the loss, ascending; all of them at fraction 1."""
    rows = np.arange(length - 1)
    if fraction >= 1:
        return rows
    return np.sort(rng.choice(rows, draw_count(len(rows), fraction, rng), replace=False))
