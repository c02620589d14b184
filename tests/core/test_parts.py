"""Which arrays a Trace holds: those that were asked for, each by itself, whatever the other rows of the batch want."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from bert_core import model as bert
from bert_core.load import load_model
from bert_core.request import INPUT_PARTS
from bert_core.trace import MissingPart, TraceRequest, run_batch

TEXT = "the [MASK] barked"


@pytest.fixture(scope="module")
def loaded(tiny_bert):
    return load_model(tiny_bert, torch.float64)


def parts_of(trace) -> set[str]:
    """Its arrays, those of the input left out."""
    assert set(INPUT_PARTS) <= set(trace.arrays)
    return set(trace.arrays) - set(INPUT_PARTS)


@pytest.mark.parametrize(("fixture", "parts"), [
    ("tiny_bert", ("nsp_logits",)), ("tiny_bert", ("pooled_output",)), ("tiny_bert", ("mlm_positions",)),
    ("tiny_bert", ("mlm_logits", "mlm_positions")), ("tiny_bert", ("hidden_states", "query")),
    ("tiny_gpt", ("lm_logits",)), ("tiny_gpt", ("context",)), ("tiny_classifier", ("logits",)),
    ("tiny_classifier", ("pooled_output",)), ("tiny_ner", ("logits",)), ("tiny_qa", ("end_logits",)),
    ("tiny_qa", ("start_logits",)), ("tiny_qa", ("embedding_output",)),
])
def test_each_part_comes_alone_and_is_that_of_the_whole_trace(fixture, parts, request):
    model = load_model(request.getfixturevalue(fixture), torch.float64)
    some = run_batch(model, [TraceRequest(TEXT, "we slept", parts=parts)])[0]
    whole = run_batch(model, [TraceRequest(TEXT, "we slept")])[0]
    assert parts_of(some) == set(parts)
    for part in parts:
        np.testing.assert_allclose(some.arrays[part], whole.arrays[part], rtol=0, atol=1e-12, err_msg=part)


def test_rows_of_a_batch_get_what_each_asked_for(loaded):
    asked = [("hidden_states",), ("nsp_logits", "pooled_output"), ("mlm_logits", "mlm_positions"), ("query",)]
    found = run_batch(loaded, [TraceRequest(TEXT, parts=parts) for parts in asked])
    assert [parts_of(trace) for trace in found] == [set(parts) for parts in asked]


def test_a_part_that_is_not_there_says_why(loaded):
    some = run_batch(loaded, [TraceRequest(TEXT, parts=("query", "lm_logits"))])[0]
    with pytest.raises(MissingPart, match="gives no key: the request did not ask for it"):
        some.key  # noqa: B018 - it raises
    assert some.missing_reason("query") == ""
    assert some.missing_reason("value") == "the request did not ask for it"
    whole = run_batch(loaded, [TraceRequest(TEXT)])[0]
    assert whole.missing_reason("lm_logits") == "it reads both ways: it can't predict a next token"
    assert replace(whole, gaps={}).missing_reason("lm_logits") == "it has no such part"
    with pytest.raises(AttributeError, match="^qwery$"):
        whole.qwery  # noqa: B018 - it raises


def test_a_copy_of_a_trace_is_one(loaded):
    """Python asks a copy that is still empty for its own methods."""
    whole = run_batch(loaded, [TraceRequest(TEXT)])[0]
    assert copy.copy(whole).query is whole.query


def test_masks_of_a_model_that_reads_right_to_left_are_scored_where_they_stand(loaded):
    backward = replace(loaded, model=replace(loaded.model, config=replace(loaded.config,
                                                                          reading_order="right-to-left")))
    text, reversed_text = "the [MASK] barked all night", "night all barked [MASK] the"
    found = run_batch(backward, [TraceRequest(text), TraceRequest("we [MASK]")])[0]
    by_hand = run_batch(loaded, [TraceRequest(reversed_text)])[0]
    assert (found.mlm_positions.tolist(), by_hand.mlm_positions.tolist()) == ([2], [4])
    np.testing.assert_allclose(found.mlm_logits, by_hand.mlm_logits, rtol=0, atol=1e-10)


def test_position_ids_are_given_in_reading_order(loaded):
    """Those that a right-to-left model would count itself change nothing."""
    backward = replace(loaded, model=replace(loaded.model, config=replace(loaded.config,
                                                                          reading_order="right-to-left")))
    usual, same, other = run_batch(backward, [TraceRequest("the dog barked all night", position_order=order)
                                              for order in (None, (0, 5, 4, 3, 2, 1, 6), (0, 1, 2, 3, 4, 5, 6))])
    np.testing.assert_allclose(same.hidden_states, usual.hidden_states, rtol=0, atol=1e-12)
    assert np.abs(other.hidden_states - usual.hidden_states).max() > 0.1


def test_many_places_and_few_give_the_same_logits(loaded):
    """A row of many places has its own product, those of few share one."""
    requests = [TraceRequest("dog " * 34, all_logits=True), TraceRequest(TEXT), TraceRequest("[MASK] slept")]
    for together, request in zip(run_batch(loaded, requests), requests, strict=True):
        alone = run_batch(loaded, [request])[0]
        assert together.mlm_logits.shape == (len(together.mlm_positions), 117)
        np.testing.assert_allclose(together.mlm_logits, alone.mlm_logits, rtol=0, atol=1e-10)


def test_half_precision_comes_out_as_float32_and_nothing_can_be_written(tiny_bert):
    half = run_batch(load_model(tiny_bert, torch.bfloat16), [TraceRequest(TEXT)])[0]
    assert {array.dtype for name, array in half.arrays.items() if name not in INPUT_PARTS} == {
        np.dtype(np.float32), np.dtype(np.int64)}
    for array in half.arrays.values():
        with pytest.raises(ValueError, match="read-only"):
            array[...] = array


# --- the last layer where it is read only ---------------------------------------

LONG = "the [MASK] barked all night while we slept and the dog saw the cat " * 2
SWITCHED_OFF = {"heads_off": ((1, 0),), "feed_forward_off": (1,), "neurons": ((1, 3, 0.5),)}


@pytest.fixture
def read(monkeypatch):
    """Shapes of what every layer of the runs that follow gives."""
    shapes, layer = [], bert.layer

    def watched(*args, **kwargs):
        done = layer(*args, **kwargs)
        shapes.append(tuple(done.hidden.shape[:2]))
        return done

    monkeypatch.setattr(bert, "layer", watched)
    return shapes


@pytest.mark.parametrize(("fixture", "parts", "places"), [
    ("tiny_bert", ("mlm_logits", "mlm_positions"), 2 + 1 + 1), ("tiny_bert", ("nsp_logits", "pooled_output"), 3),
    ("tiny_bert", ("mlm_logits", "mlm_positions", "nsp_logits"), 4 + 3), ("tiny_bert", ("attention_probs",), 0),
    ("tiny_classifier", ("logits",), 3), ("tiny_bert", ("key",), 0),
])
def test_the_last_layer_goes_on_only_where_its_output_is_read(fixture, parts, places, request, read):
    """Rows of other lengths, with parts of their last layer switched off, on their own and beside each other."""
    model = load_model(request.getfixturevalue(fixture), torch.float64)
    last, asked = model.config.num_hidden_layers - 1, [
        TraceRequest(LONG, parts=parts, **SWITCHED_OFF), TraceRequest(TEXT, "we slept", parts=parts),
        TraceRequest(TEXT, attention="causal", parts=parts, neurons=((1, 3, -2.0),))]
    found = run_batch(model, asked)
    assert read[last] == (places, 1)
    whole = [run_batch(model, [replace(one, parts=None)])[0] for one in asked]
    assert all(count > 1 for _, count in read[last + 1:])
    for some, all_of_it in zip(found, whole, strict=True):
        for part in parts:
            np.testing.assert_allclose(some.arrays[part], all_of_it.arrays[part], rtol=0, atol=1e-12, err_msg=part)


@pytest.mark.parametrize(("fixture", "parts"), [
    ("tiny_bert", ("hidden_states",)), ("tiny_bert", ("intermediate", "mlm_logits")), ("tiny_ner", ("logits",)),
    ("tiny_bert", ("attention_output",)), ("tiny_qa", ("start_logits",)), ("tiny_gpt", ("lm_logits",)),
])
def test_what_holds_every_token_has_the_last_layer_of_every_token(fixture, parts, request, read):
    model = load_model(request.getfixturevalue(fixture), torch.float64)
    some = run_batch(model, [TraceRequest(LONG, parts=parts), TraceRequest(TEXT, parts=("attention_probs",))])[0]
    whole = run_batch(model, [TraceRequest(LONG)])[0]
    assert len({shape for shape in read if shape[0] == 2}) == 1
    for part in parts:
        np.testing.assert_allclose(some.arrays[part], whole.arrays[part], rtol=0, atol=1e-12, err_msg=part)


def test_a_short_sentence_is_read_whole_as_choosing_costs_more_than_it_saves(loaded, read):
    run_batch(loaded, [TraceRequest(TEXT, parts=("mlm_logits",))])
    assert set(read) == {(1, 5)}


@pytest.mark.parametrize("order", ["left-to-right", "right-to-left"])
def test_rows_of_a_causal_model_come_as_they_were_asked_for(tiny_gpt, order, read):
    model = load_model(tiny_gpt, torch.float64)
    model = replace(model, model=replace(model.model, config=replace(model.config, reading_order=order)))
    whole = run_batch(model, [TraceRequest(LONG)])[0]
    read.clear()
    some = run_batch(model, [TraceRequest(LONG, parts=("lm_logits",), lm_at=(7, 2))])[0]
    assert read[-1] == (2, 1)
    np.testing.assert_allclose(some.lm_logits, whole.lm_logits[[7, 2]], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(some.lm_row(2), some.lm_logits[1])
    np.testing.assert_array_equal(whole.lm_row(2), whole.lm_logits[2])
    with pytest.raises(ValueError, match="asked for rows 7, 2, not 3; see lm_at"):
        some.lm_row(3)


@pytest.mark.parametrize(("at", "message"), [
    ((99,), "position 99 is outside 0 to 4"), ((-1,), "position -1 is outside"), ([1], "give a tuple of whole numbers"),
    ((1.0,), "give a tuple of whole numbers"), ("12", "give a tuple of whole numbers"),
])
def test_rows_that_are_not_there_are_refused(tiny_gpt, at, message):
    with pytest.raises(ValueError, match=message):
        run_batch(load_model(tiny_gpt), [TraceRequest("the dog barked", parts=("lm_logits",), lm_at=at)])


def test_no_row_at_all_is_an_answer_too(tiny_gpt):
    model = load_model(tiny_gpt)
    assert run_batch(model, [TraceRequest(TEXT, parts=("lm_logits",), lm_at=())])[0].lm_logits.shape == (0, 117)
