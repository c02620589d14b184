"""Top-k, ranks and the comparison of two answers, against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bert_core import TraceRequest, load_engine
from bert_core.measures import predictions

LOGITS = arrays(np.float32, st.integers(2, 40), elements=st.floats(-30, 30, width=32))


@given(LOGITS)
def test_softmax_is_a_distribution_in_the_order_of_the_logits(logits):
    p = predictions.softmax(logits)
    assert p.dtype == np.float64
    assert p.sum() == pytest.approx(1, abs=1e-12)
    assert (np.diff(p[np.argsort(logits, kind="stable")]) >= 0).all()


@given(arrays(np.float64, st.integers(1, 30), elements=st.sampled_from([0.0, 0.1, 0.2, 0.5])), st.integers(1, 40))
def test_top_ids_are_the_largest_and_ties_go_to_the_smaller_id(values, k):
    expected = sorted(range(len(values)), key=lambda i: (-values[i], i))[:k]
    assert predictions.top_ids(values, k).tolist() == expected


def test_read_gap_ranks_the_truth_among_all_pieces(tiny_bert):
    tokenizer = load_engine(tiny_bert).loaded().tokenizer
    p = np.linspace(1, 2, tokenizer.vocab_size)
    p /= p.sum()
    gap = predictions.read_gap(p, 3, tokenizer, 2, truth=0)
    assert gap.rank == tokenizer.vocab_size
    assert [guess.id for guess in gap.guesses] == [tokenizer.vocab_size - 1, tokenizer.vocab_size - 2]
    assert gap.truth.token == tokenizer.token_of(0)


@pytest.mark.parametrize(("truth", "rank"), [(3, 1), (1, 2), (2, 2), (4, 2), (0, 5)])
def test_pieces_of_one_probability_share_the_best_rank(tiny_bert, truth, rank):
    tokenizer = load_engine(tiny_bert).loaded().tokenizer
    p = np.zeros(tokenizer.vocab_size)
    p[:5] = [0.05, 0.2, 0.2, 0.35, 0.2]
    assert predictions.read_gap(p, 3, tokenizer, 2, truth).rank == rank


def test_read_gaps_gives_each_masked_position_its_own_distribution(tiny_bert):
    engine = load_engine(tiny_bert)
    trace = engine.run(TraceRequest("the dog [MASK] all night", masked=(2,)))
    gaps = predictions.read_gaps(trace, engine.loaded().tokenizer, 4, {2: 5}, limit=9)
    assert [gap.position for gap in gaps] == [2, 3]
    assert gaps[0].truth.id == 5
    assert gaps[1].truth is None
    for row, gap in enumerate(gaps):
        best = int(np.argmax(trace.mlm_logits[row]))
        assert gap.guesses[0].id == best
        assert gap.guesses[0].probability == pytest.approx(predictions.softmax(trace.mlm_logits[row])[best])


@pytest.mark.parametrize(("hidden", "limit", "asked"), [
    ((), 3, [1, 2, 3]), ((6,), 3, [1, 2, 6]), ((4, 6), 2, [4, 6]), ((4, 5, 6), 2, [4, 5]), ((5,), 9, [1, 2, 3, 5]),
])
def test_what_was_hidden_comes_before_what_was_typed_and_all_stand_by_position(tiny_bert, hidden, limit, asked):
    engine = load_engine(tiny_bert)
    trace = engine.run(TraceRequest("[MASK] [MASK] [MASK] the dog barked", masked=hidden))
    gaps = predictions.read_gaps(trace, engine.loaded().tokenizer, 2, dict.fromkeys(hidden, 5), limit)
    assert [gap.position for gap in gaps] == asked
    assert [gap.truth is not None for gap in gaps] == [n in hidden for n in asked]
    for gap in gaps:
        best = predictions.gap_distribution(trace, gap.position).max()
        assert gap.guesses[0].probability == pytest.approx(best)


def test_gap_distribution_refuses_a_position_that_was_not_masked(tiny_bert):
    trace = load_engine(tiny_bert).run(TraceRequest("the [MASK]"))
    with pytest.raises(ValueError, match="position 1 was not masked"):
        predictions.gap_distribution(trace, 1)


def test_true_probabilities_are_read_at_each_ones_own_position(tiny_bert):
    trace = load_engine(tiny_bert).run(TraceRequest("the dog slept", all_logits=True))
    ids = trace.encoding.input_ids
    found = predictions.true_probabilities(trace, ids)
    for n, index in enumerate(ids):
        assert found[n] == pytest.approx(predictions.softmax(trace.mlm_logits[n])[index])


def test_jensen_shannon_is_zero_for_equal_and_one_bit_for_disjoint():
    p, q = np.array([0.5, 0.5, 0, 0]), np.array([0, 0, 0.25, 0.75])
    assert predictions.jensen_shannon(p, p) == pytest.approx(0)
    assert predictions.jensen_shannon(p, q) == pytest.approx(1)
    assert predictions.jensen_shannon(p, np.array([1.0, 0, 0, 0])) == pytest.approx(0.311278, abs=1e-6)


def test_contrast_names_what_rose_and_what_fell():
    first, second = np.array([0.5, 0.3, 0.2, 0.0]), np.array([0.1, 0.3, 0.25, 0.35])
    compared = predictions.contrast(first, second, 3)
    assert compared.up == (3, 2)
    assert compared.down == (0,)


@given(st.integers(3, 300), st.integers(1, 50), st.integers(0, 9))
def test_scatter_holds_every_piece_exactly_once(size, drawn, seed):
    rng = np.random.default_rng(seed)
    first, second = predictions.softmax(rng.normal(size=(2, size)) * 5)
    scatter = predictions.vocabulary_scatter(first, second, drawn, cells=7)
    assert len(scatter.ids) + scatter.counts.sum() == size
    np.testing.assert_allclose(10 ** scatter.first, first[scatter.ids])
    np.testing.assert_allclose(10 ** scatter.second, second[scatter.ids])


def test_scatter_counts_have_the_second_sentence_as_rows():
    first, second = np.array([0.9, 0.0999]), np.array([0.9, 1e-4])
    scatter = predictions.vocabulary_scatter(first, second, drawn=1, cells=4)  # a cell a power of ten
    expected = np.zeros((4, 4))
    expected[0, 2] = 1  # the second piece: 1e-4 in the second sentence, 0.0999 in the first
    np.testing.assert_array_equal(scatter.counts, expected)
