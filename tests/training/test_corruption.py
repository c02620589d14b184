"""80/10/10 within binomial error, specials never chosen, targets where they belong."""

import numpy as np
import pytest

from bert_core.training.corruption import (
    KEPT,
    MASKED,
    RANDOM,
    UNTOUCHED,
    corrupt,
    next_token_positions,
    reverse_order,
)
from bert_core.training.packing import NO_PAIR, Example
from tests.training.tiny import objective

MASK = 4


def test_masking_statistics_over_100000_tokens():
    rng = np.random.default_rng(0)
    ids = rng.integers(5, 77, size=101_000)
    special = np.zeros(len(ids), dtype=bool)
    special[::101] = True
    seen = corrupt(ids, special, MASK, np.arange(5, 77), rng)
    candidates = int((~special).sum())
    assert candidates == 100_000
    assert abs(len(seen.positions) - 0.15 * candidates) <= 1
    for kind, share in ((MASKED, 0.8), (RANDOM, 0.1), (KEPT, 0.1)):
        count, chosen = int((seen.outcome == kind).sum()), len(seen.positions)
        assert abs(count - share * chosen) < 4 * np.sqrt(chosen * share * (1 - share)), kind
    assert not special[seen.positions].any()


def test_short_sequences_are_masked_as_often_as_long_ones():
    rng = np.random.default_rng(1)
    ids, special = np.arange(5, 12), np.zeros(7, dtype=bool)
    chosen = sum(len(corrupt(ids, special, MASK, ids, rng).positions) for _ in range(20_000))
    assert abs(chosen - 0.15 * 140_000) < 4 * np.sqrt(140_000 * 0.15 * 0.85)


def test_what_each_outcome_does():
    ids = np.arange(100, 300)
    seen = corrupt(ids, np.zeros(200, dtype=bool), MASK, np.array([7]), np.random.default_rng(2), rate=0.5)
    assert (seen.input_ids[seen.outcome == MASKED] == MASK).all()
    assert (seen.input_ids[seen.outcome == RANDOM] == 7).all()
    for kind in (KEPT, UNTOUCHED):
        assert (seen.input_ids[seen.outcome == kind] == ids[seen.outcome == kind]).all()
    assert (seen.labels == ids[seen.positions]).all()
    assert (np.flatnonzero(seen.outcome != UNTOUCHED) == seen.positions).all()


def test_all_masked_split_leaves_nothing_else():
    ids = np.arange(100, 300)
    seen = corrupt(ids, np.zeros(200, dtype=bool), MASK, ids, np.random.default_rng(3), split=(1.0, 0.0, 0.0))
    assert set(seen.outcome[seen.positions]) == {MASKED}


def test_each_chance_of_a_split_is_its_own():
    ids = np.arange(100, 10_100)
    seen = corrupt(ids, np.zeros(10_000, dtype=bool), MASK, ids, np.random.default_rng(4), 1.0, (0.2, 0.7, 0.1))
    shares = [np.mean(seen.outcome == kind) for kind in (MASKED, RANDOM, KEPT)]
    assert shares == pytest.approx([0.2, 0.7, 0.1], abs=0.02)


@pytest.mark.parametrize(("length", "order"), [(2, [0, 1]), (3, [0, 1, 2]), (6, [0, 4, 3, 2, 1, 5])])
def test_reverse_order(length, order):
    assert reverse_order(length).tolist() == order
    assert reverse_order(length)[reverse_order(length)].tolist() == list(range(length))


def test_next_token_positions_are_unbiased():
    rng = np.random.default_rng(4)
    counts = np.zeros(10)
    for _ in range(9000):
        counts[next_token_positions(11, 1 / 3, rng)] += 1
    assert np.abs(counts - 3000).max() < 4 * np.sqrt(9000 * 2 / 9)
    assert next_token_positions(11, 1.0, rng).tolist() == list(range(10))


def test_the_twins_read_the_same_pieces():
    ids = np.array([2, 10, 11, 3, 12, 13, 14, 3])
    example = Example(ids, 4, NO_PAIR, 9)
    forward, backward = objective("clm").sample(example), objective("rtl").sample(example)
    assert forward.input_ids.tolist() == ids.tolist()
    assert forward.targets.tolist() == ids[1:].tolist()
    assert backward.input_ids.tolist() == [2, 14, 13, 12, 3, 11, 10, 3]
    assert backward.token_type_ids.tolist() == [0, 1, 1, 1, 0, 0, 0, 1]
    masked = objective("mlm").sample(example)
    assert set(masked.positions) <= {1, 2, 4, 5, 6}
    assert masked.token_type_ids.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


def test_what_the_vocabulary_lacks_is_never_asked_for():
    unknown = 1
    example = Example(np.array([2, 10, unknown, 11, 3, unknown, 12, 3]), 5, NO_PAIR, 9)
    seen = objective("mlm", mask_rate=1.0).sample(example)
    assert (seen.positions.tolist(), seen.targets.tolist()) == ([1, 3, 6], [10, 11, 12])
    assert (seen.input_ids[[2, 5]] == unknown).all()


def test_corruption_depends_on_the_sequence_not_on_its_batch():
    first = objective().sample(Example(np.arange(2, 40), 38, NO_PAIR, 4))
    again = objective().sample(Example(np.arange(2, 40), 38, NO_PAIR, 4))
    other = objective().sample(Example(np.arange(2, 40), 38, NO_PAIR, 5))
    assert first.positions.tolist() == again.positions.tolist()
    assert first.positions.tolist() != other.positions.tolist()


def test_settings_are_checked():
    with pytest.raises(ValueError, match="mask_rate is 0"):
        objective("mlm", mask_rate=0)
    with pytest.raises(ValueError, match="'bert' is unknown"):
        objective("bert")
