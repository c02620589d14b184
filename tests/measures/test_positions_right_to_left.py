"""Position orders of a model that counts from the right: they permute the ids that its tokens have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bert_core.load import Loaded, load_model
from bert_core.measures import embeddings
from bert_core.trace import TraceRequest, run_batch

TEXT = "the dog barked all night"


@pytest.fixture(scope="module")
def backward(tiny_gpt) -> Loaded:
    loaded = load_model(tiny_gpt)
    config = replace(loaded.config, reading_order="right-to-left")
    return replace(loaded, model=replace(loaded.model, config=config))


def positions(loaded: Loaded, order: tuple[int, ...] | None) -> np.ndarray:
    """(T, D) position embeddings that a run adds, in reading order."""
    return run_batch(loaded, [TraceRequest(TEXT, position_order=order)])[0].position_embeddings


def test_the_natural_ids_are_those_of_a_plain_run(backward):
    natural = embeddings.natural_order(backward.config, 7)
    assert natural == (0, 5, 4, 3, 2, 1, 6)
    np.testing.assert_array_equal(positions(backward, natural), positions(backward, None))


def test_reversed_positions_reverse_them(backward):
    order = embeddings.order("reversed", embeddings.natural_order(backward.config, 7), 0)
    assert order == (0, 1, 2, 3, 4, 5, 6)
    plain, turned = positions(backward, None), positions(backward, order)
    np.testing.assert_array_equal(turned[1:-1], plain[1:-1][::-1])
    assert not np.array_equal(turned, plain)


def test_a_model_that_counts_from_the_left_has_its_own(tiny_bert):
    natural = embeddings.natural_order(load_model(tiny_bert).config, 7)
    assert natural == (0, 1, 2, 3, 4, 5, 6)
    assert embeddings.order("reversed", natural, 0) == (0, 5, 4, 3, 2, 1, 6)
