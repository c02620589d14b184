"""Cosines, neighbours and position orders against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bert_core import load_engine
from bert_core.measures import embeddings
from bert_core.measures.similarity import cosine_matrix


def test_cosine_matrix_agrees_with_torch():
    table = np.random.default_rng(1).normal(size=(13, 5))
    rows = torch.from_numpy(table)
    expected = torch.nn.functional.cosine_similarity(rows[:, None], rows[None], dim=-1)
    np.testing.assert_allclose(cosine_matrix(table), expected, atol=1e-12)


def test_neighbours_are_the_nearest_rows_without_the_row_itself():
    table = np.random.default_rng(2).normal(size=(31, 7))
    cosines = cosine_matrix(table)[4]
    found = embeddings.neighbours(table, 4, 6)
    expected = [i for i in np.argsort(-cosines) if i != 4][:6]
    assert [near.id for near in found] == expected
    assert [near.cosine for near in found] == pytest.approx(cosines[expected].tolist())


def test_a_row_of_zeros_has_no_neighbours_and_no_nan():
    table = np.vstack([np.zeros(3), np.eye(3)])
    assert embeddings.neighbours(table, 0, 3) == ()
    assert np.isfinite(cosine_matrix(table)).all()


@given(kind=st.sampled_from(embeddings.ORDERS), length=st.integers(2, 60), seed=st.integers(0, 99))
def test_orders_hand_out_each_position_once_and_keep_both_ends(kind, length, seed):
    order = embeddings.order(kind, range(length), seed)
    if order is None:
        assert kind == "as written" or length < 3
    elif kind == "all the same":
        assert order == (0,) * length
    else:
        assert sorted(order) == list(range(length))
        assert (order[0], order[-1]) == (0, length - 1)


def test_tables_are_those_of_the_checkpoint(tiny_bert):
    model = load_engine(tiny_bert).loaded().model
    assert embeddings.word_table(model).shape == (model.config.vocab_size, model.config.hidden_size)
    np.testing.assert_array_equal(embeddings.position_table(model),
                                  model.weights["bert.embeddings.position_embeddings.weight"].numpy())
    weight, bias = embeddings.norm_parameters(model)
    np.testing.assert_array_equal(weight, model.weights["bert.embeddings.LayerNorm.weight"].numpy())
    np.testing.assert_array_equal(bias, model.weights["bert.embeddings.LayerNorm.bias"].numpy())


def test_random_pairs_of_one_direction_have_cosine_one():
    assert embeddings.mean_random_cosine(np.outer(np.arange(1, 9), [1.0, 2.0])) == pytest.approx(1)


def test_every_pair_counts_once_and_a_row_of_zeros_is_like_no_other():
    table = np.random.default_rng(3).normal(0.3, 1, (11, 7)).astype(np.float32)
    table[4] = 0
    cosines = [0.0 if 4 in (i, j) else float(table[i] @ table[j] / np.linalg.norm(table[i]) / np.linalg.norm(table[j]))
               for i in range(11) for j in range(i)]
    assert embeddings.mean_random_cosine(table) == pytest.approx(np.mean(cosines), abs=1e-6)
