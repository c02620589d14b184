"""Accuracy, confusion, calibration and mistakes, counted by hand."""

import numpy as np
import pytest

from bert_core.measures import classification, embeddings
from bert_core.measures.compare_pairs import Pair, Tally, overall, tallies, wilson

#: Six answers of three classes; given 0, 0, 1, 2, 2, 0.
CHANCES = np.array([[.7, .2, .1], [.72, .08, .2], [.05, .9, .05], [.3, .3, .4], [0, 0, 1], [.55, .4, .05]])
TRUE = np.array([0, 1, 1, 0, 2, 1])


def test_the_true_class_is_the_row():
    assert classification.accuracy(CHANCES, TRUE) == pytest.approx(3 / 6)
    assert classification.confusion(CHANCES, TRUE).tolist() == [[1, 0, 1], [2, 1, 0], [0, 0, 1]]


def test_calibration_by_bins_of_a_tenth():
    found = classification.calibration(CHANCES, TRUE)
    assert found.count.tolist() == [1, 1, 2, 2]  # 0.4, 0.55, 0.7 and 0.72, 0.9 and 1
    assert found.confidence == pytest.approx([.4, .55, .71, .95])
    assert found.accuracy == pytest.approx([0, 0, .5, 1])
    assert found.error == pytest.approx((.4 + .55 + 2 * .21 + 2 * .05) / 6)


def test_a_bin_ends_at_its_tenth_and_is_not_rounded_to_it():
    sure = np.array([.61, .67, .72, .86, .9])
    found = classification.calibration(np.stack([sure, 1 - sure], axis=1), np.array([0, 1, 0, 0, 0]))
    assert found.count.tolist() == [2, 1, 1, 1]
    assert found.confidence == pytest.approx([.64, .72, .86, .9])
    assert found.accuracy == pytest.approx([.5, 1, 1, 1])
    assert found.error == pytest.approx((2 * .14 + .28 + .14 + .1) / 5)


def test_mistakes_begin_with_the_surest():
    found = classification.mistakes(CHANCES, TRUE)
    assert [(one.index, one.given, one.true) for one in found] == [(1, 0, 1), (5, 0, 1), (3, 2, 0)]
    assert [one.probability for one in found] == pytest.approx([.72, .55, .4])


def test_random_pairs_are_of_two_rows():
    assert embeddings.mean_random_cosine(np.array([[1.0, 0], [0, 2.0]])) == pytest.approx(0)


def test_pairs_judged_right_are_counted_by_phenomenon():
    pairs = [Pair(name, "good", "bad") for name in ("a", "b", "a", "a", "b")]
    found = tallies(pairs, [True, False, True, False])  # the last is not judged yet
    assert found == {"a": Tally(2, 3), "b": Tally(0, 1)}
    assert overall(found) == Tally(2, 4)
    assert wilson(2, 4) == pytest.approx((0.15004, 0.84996), abs=1e-4)
