"""Compare, both guesses followed: BERT's from both sides, GPT's from the left, with the numbers of their runs."""

from __future__ import annotations

import numpy as np
import pytest

from bert_core import TraceRequest, load_engine
from bert_core.measures.flow import LENGTH_PARTS, by_lengths, flow
from tests.payloads import all_drawn, is_ready, said, visit

GAP, TEXT = "The dog [MASK] all night.", "The dog barked all night."


@pytest.fixture(scope="module")
def page():
    at = visit("compare", text=GAP, behind="barked", follow="true")
    is_ready(at)
    return at


@pytest.mark.parametrize(("n", "asked", "row"), [
    (0, TraceRequest(TEXT, model="twin-bert", masked=(3,), parts=LENGTH_PARTS), 3),
    (1, TraceRequest(TEXT, model="twin-gpt", parts=LENGTH_PARTS), 2)])
def test_each_stream_is_that_of_the_token_which_guesses(page, n, asked, row):
    engine = load_engine(asked.model)
    found, shown = flow(by_lengths(engine.run(asked), engine.loaded()), row), all_drawn(page, "flow")[n]
    assert np.allclose(shown["arrays"]["shares"], found.shares, atol=1e-6)
    assert shown["target"] == row
    assert shown["kind"] == ("bidirectional", "causal")[n]


def test_the_hidden_word_is_a_mask_in_berts_stream_and_gives_nothing_to_gpts(page):
    both, left = all_drawn(page, "flow")
    assert both["rows"][3]["t"] == "[MASK]"
    assert (left["arrays"]["shares"][:, 3:] == 0).all()
    right = both["arrays"]["shares"][0, 4:7].sum()  # all night .
    given = f"give <strong>{100 * right:.0f} %</strong> in twin-bert, <strong>nothing</strong> in twin-gpt."
    assert given in said(page)


def test_where_nothing_stands_right_of_the_gap_it_is_said():
    assert "There is no word right of the gap." in said(visit("compare", text="The [MASK]", follow="true"))


def test_without_the_switch_nothing_is_followed():
    assert all_drawn(visit("compare", text=GAP), "flow") == []


def test_a_reader_of_transformers_is_counted_by_its_weights(family, monkeypatch):
    monkeypatch.setenv("BOTH_WAYS_MODEL", family("GPT-2"))
    at = visit("compare", text="the dog barked", at="2", follow="true")
    is_ready(at)
    assert "attention weights where transformers runs the model" in said(at)
