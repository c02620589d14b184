"""Numbers from attention maps against hand-made cases and plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert_core.measures import attention as measure
from bert_core.measures.rollout import rollout


def maps(*shape: int, seed: int = 0) -> np.ndarray:
    """Random rows that sum to 1."""
    raw = np.random.default_rng(seed).gamma(0.3, size=shape)
    return (raw / raw.sum(axis=-1, keepdims=True)).astype(np.float32)


def test_entropy_runs_from_one_token_to_all():
    probs = np.zeros((1, 2, 7, 7), dtype=np.float32)
    probs[0, 0, :, 3] = 1.0
    probs[0, 1] = 1 / 7
    assert measure.entropy(probs)[0, 0] == pytest.approx(0.0)
    assert measure.entropy(probs)[0, 1] == pytest.approx(np.log(7))


def test_distance_counts_tokens_between_query_and_key():
    probs = np.zeros((1, 2, 5, 5), dtype=np.float32)
    probs[0, 0, :, 0] = 1.0  # all look at the first: 0 + 1 + 2 + 3 + 4
    probs[0, 1] = np.eye(5)
    assert measure.mean_distance(probs)[0].tolist() == [2.0, 0.0]


def test_head_numbers_are_those_of_plain_loops(trace):
    numbers, probs, length = measure.head_numbers(trace), trace.attention_probs, len(trace)
    separators = [i for i, token in enumerate(trace.tokens) if token == "[SEP]"]
    for layer in range(3):
        for head in range(5):
            one = probs[layer, head]
            surprise = [-sum(p * np.log(p) for p in row if p > 0) for row in one.astype(float)]
            assert numbers.entropy[layer, head] == pytest.approx(np.mean(surprise), rel=1e-5)
            on_sep = sum(one[q, k] for q in range(length) for k in separators)
            after = sum(one[q, q + 1] for q in range(length - 1))
            assert numbers.sep[layer, head] == pytest.approx(on_sep / length)
            assert numbers.cls[layer, head] == pytest.approx(one[:, 0].mean())
            before = sum(one[q, q - 1] for q in range(1, length))
            assert numbers.previous[layer, head] == pytest.approx(before / (length - 1))
            assert numbers.following[layer, head] == pytest.approx(after / (length - 1))
            assert numbers.itself[layer, head] == pytest.approx(sum(one[q, q] for q in range(length)) / length)
            assert numbers.distance[layer, head] == pytest.approx(
                sum(one[q, k] * abs(q - k) for q in range(length) for k in range(length)) / length, rel=1e-5)


def test_far_words_are_two_tokens_away_at_least_and_no_specials():
    probs = np.zeros((1, 2, 5, 5))
    special = np.array([True, False, False, False, True])
    probs[0, 0] = [[0, 0, 0, 1, 0], [0.3, 0, 0.2, 0.1, 0.4],
                   [0, 0.5, 0, 0.5, 0], [0.1, 0.25, 0.65, 0, 0], [0, 1, 0, 0, 0]]
    probs[0, 1] = np.eye(5)
    assert measure.far_words(probs, special)[0] == pytest.approx([(0.1 + 0 + 0.25) / 3, 0])


def test_ranks_are_the_share_of_smaller_heads():
    assert measure.ranks(np.array([[3.0, 1.0], [2.0, 2.0]])).tolist() == [[1.0, 0.0], [1 / 3, 1 / 3]]


@given(st.integers(1, 97), st.integers(1, 41), st.integers(0, 9))
@settings(max_examples=40, deadline=None)
def test_a_thumbnail_keeps_the_largest_weight_of_each_cell(length, size, seed):
    probs = maps(1, 2, length, length, seed=seed)
    thumbs = measure.thumbnails(probs, size)
    side = min(length, size)
    assert thumbs.shape == (1, 2, side, side)
    cell = np.arange(length) * side // length
    expected = np.zeros((2, side, side), dtype=np.float32)
    for q in range(length):
        for k in range(length):
            expected[:, cell[q], cell[k]] = np.maximum(expected[:, cell[q], cell[k]], probs[0, :, q, k])
    assert np.array_equal(thumbs[0], np.rint(255 * np.sqrt(expected)).astype(np.uint8))


def test_words_sum_columns_and_average_rows(trace):
    groups = measure.word_groups(trace.encoding)
    assert [3, 4] in groups  # barked ##s
    merged = measure.merge_words(trace.attention_probs, groups)
    assert np.allclose(merged.sum(axis=-1), 1, atol=1e-5)
    word = groups.index([3, 4])
    one = trace.attention_probs[2, 1]
    assert merged[2, 1, word, 0] == pytest.approx((one[3, 0] + one[4, 0]) / 2, rel=1e-5)
    assert merged[2, 1, 0, word] == pytest.approx(one[0, 3] + one[0, 4], rel=1e-5)


def test_hidden_tokens_vanish_and_only_renormalised_rows_sum_to_one():
    probs, hidden = maps(6, 6), np.array([True, False, False, False, False, True])
    plain = measure.hide_tokens(probs, hidden, renormalise=False)
    assert np.array_equal(plain[1:5, 1:5], probs[1:5, 1:5])
    assert not plain[[0, 5]].any()
    assert not plain[:, [0, 5]].any()
    scaled = measure.hide_tokens(probs, hidden, renormalise=True)
    assert np.allclose(scaled[1:5].sum(axis=-1), 1)
    assert np.allclose(scaled[2] * plain[2].sum(), plain[2])


@pytest.mark.parametrize(("which", "rows", "columns"), [("aa", 0, 0), ("ab", 0, 1), ("ba", 1, 0), ("bb", 1, 1)])
def test_segment_filters_keep_one_block(which, rows, columns):
    probs, segments = maps(5, 5), np.array([0, 0, 0, 1, 1])
    kept = measure.keep_segments(probs, segments, which)
    block = np.ix_(segments == rows, segments == columns)
    assert np.array_equal(kept[block], probs[block])
    assert kept.sum() == pytest.approx(probs[block].sum())


def test_the_strongest_of_a_row_stay_and_ties_go_to_the_earlier_key():
    row = np.array([[0.2, 0.3, 0.2, 0.3]])
    assert measure.strongest(row, 3).tolist() == [[0.2, 0.3, 0.0, 0.3]]


def test_the_picture_applies_its_options_in_order(trace):
    options = measure.MapOptions(words=True, specials="renormalise", segments="ab", threshold=0.05, top=2)
    labels, shown = measure.shown_map(trace, trace.attention_probs[1, 4], options)
    assert labels[3] == "barkeds"
    groups = measure.word_groups(trace.encoding)
    by_hand = measure.merge_words(trace.attention_probs[1, 4], groups)
    special = np.array([trace.encoding.special[g[0]] for g in groups])
    by_hand = measure.hide_tokens(by_hand, special, renormalise=True)
    by_hand = measure.keep_segments(by_hand, np.array([trace.encoding.token_type_ids[g[0]] for g in groups]), "ab")
    by_hand = measure.strongest(by_hand, 2)
    assert np.array_equal(shown, np.where(by_hand < 0.05, 0, by_hand))
    assert ((shown > 0).sum(axis=-1) <= 2).all()


def test_rollout_by_hand():
    first = np.array([[1.0, 0.0], [0.5, 0.5]])
    second = np.array([[0.0, 1.0], [0.0, 1.0]])
    flows = rollout(np.stack([first[None], second[None]]))
    assert np.allclose(flows[0], [[1.0, 0.0], [0.25, 0.75]])
    assert np.allclose(flows[1], np.array([[0.5, 0.5], [0.0, 1.0]]) @ flows[0])
    assert np.allclose(flows.sum(axis=-1), 1)


def test_a_token_that_sees_nothing_passes_only_itself_on():
    blind = np.array([[0.5, 0.25, 0.25], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    left = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    flows = rollout(np.stack([[left, blind, 2 * blind - left, blind], [blind] * 4]))  # two layers of four heads
    assert flows.shape == (2, 3, 3)
    assert np.allclose(flows[:, 1], [0, 1, 0])
    assert np.allclose(flows[0], [[0.75, 0.125, 0.125], [0, 1, 0], [0, 0.5, 0.5]])
    assert np.allclose(flows.sum(axis=-1), 1)
