"""How good a classifier's probabilities are: confusion, calibration, and the errors to read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Calibration(NamedTuple):
    """Confidence against accuracy, in bins of equal width.

    Attributes:
        confidence: (K,) mean probability of the class given, per bin that has any.
        accuracy: (K,) share of right answers there.
        count: (K,) examples there.
        error: expected calibration error, 0 to 1: the mean gap, weighted by count.
    """

    confidence: np.ndarray
    accuracy: np.ndarray
    count: np.ndarray
    error: float


class Mistake(NamedTuple):
    """A test example that got the wrong class."""

    index: int
    given: int
    true: int
    probability: float


def accuracy(probabilities: np.ndarray, classes: np.ndarray) -> float:
    """Share of right answers; probabilities (n, C), classes (n,)."""
    return float((probabilities.argmax(-1) == classes).mean())


def confusion(probabilities: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """(C, C) counts: rows are the true class, columns the class given."""
    size = probabilities.shape[1]
    table = np.zeros((size, size), dtype=np.int64)
    np.add.at(table, (classes, probabilities.argmax(-1)), 1)
    return table


def calibration(probabilities: np.ndarray, classes: np.ndarray, bins: int = 10) -> Calibration:
    """Guo et al. 2017, arXiv 1706.04599: whether 90 % sure is right nine times in ten."""
    sure = probabilities.max(-1)
    right = probabilities.argmax(-1) == classes
    where = np.minimum((sure * bins).astype(int), bins - 1)
    there = [n for n in range(bins) if (where == n).any()]
    confidence = np.array([sure[where == n].mean() for n in there])
    hits = np.array([right[where == n].mean() for n in there])
    count = np.array([(where == n).sum() for n in there])
    error = float((np.abs(confidence - hits) * count).sum() / len(classes))
    return Calibration(confidence, hits, count, error)


def mistakes(probabilities: np.ndarray, classes: np.ndarray) -> list[Mistake]:
    """Wrong answers, the surest first."""
    given = probabilities.argmax(-1)
    wrong = np.flatnonzero(given != classes)
    found = [Mistake(int(n), int(given[n]), int(classes[n]), float(probabilities[n, given[n]])) for n in wrong]
    return sorted(found, key=lambda mistake: -mistake.probability)
