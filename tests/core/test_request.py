"""What a request may name, and what it puts into the input: the checks at their edges, the ids, the blocked pairs."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch

from bert_core.load import load_model
from bert_core.request import prepare, with_ids
from bert_core.trace import TraceRequest, run_batch


@pytest.fixture(scope="module")
def loaded(tiny_bert):
    """A BERT of 117 pieces, 2 layers, 3 heads and 37 positions."""
    return load_model(tiny_bert)


@pytest.mark.parametrize(("wrong", "message"), [
    ({"text": 3}, "must be strings"), ({"text": "x", "pair": b"x"}, "must be strings"),
    ({"text": "x", "attention": "up"}, "attention 'up': choose one of bidirectional, causal"),
    ({"text": "x", "precision": "int8"}, "precision 'int8': choose fp32, bf16 or fp64"),
    ({"text": "x", "parts": ("query", "nonsense")}, "unknown part 'nonsense'"),
    ({"text": "x", "embeddings_off": ("token", "word")}, "embedding 'word': choose token, segment or position"),
    ({"text": "x", "model": 3}, "model 3: give its name, or None"),
    ({"text": "x", "all_logits": 1}, "all_logits 1: choose True or False"),
    ({"text": "x", "window": 2.5}, "window 2.5: give a whole number, or None"),
    ({"text": "x", "window": True}, "window True: give a whole number"),
    ({"text": "x", "parts": "query"}, "parts 'query': give a tuple of words"),
    ({"text": "x", "parts": ([],)}, r"parts \(\[\],\): give a tuple of words"),
    ({"text": "x", "embeddings_off": ["token"]}, r"embeddings_off \['token'\]: give a tuple of words"),
])
def test_what_a_request_can_t_be_is_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        TraceRequest(**wrong)


@pytest.mark.parametrize("name", ["masked", "hidden", "feed_forward_off", "position_order", "segments"])
@pytest.mark.parametrize("wrong", [[1], 1, "1", (1.0,), (1.5,), (True,), ("a",), (None,), np.array([1])], ids=repr)
def test_what_is_no_tuple_of_whole_numbers_is_named(name, wrong):
    """1.0 and True would be 1 to a cache; 1.5 would be a position that no token has."""
    with pytest.raises(ValueError, match=f"^{name} .*: give a tuple of whole numbers, such as"):
        TraceRequest("the dog", **{name: wrong})


@pytest.mark.parametrize("name", ["replaced", "cut", "heads_off"])
@pytest.mark.parametrize("wrong", [(1,), (1, 2), ((1,),), ((1, 2, 3),), ([1, 2],), ((1, 2.0),), [(1, 2)]], ids=repr)
def test_what_is_no_tuple_of_pairs_is_named(name, wrong):
    with pytest.raises(ValueError, match=f"^{name} .*: give a tuple of pairs of whole numbers, such as"):
        TraceRequest("the dog", **{name: wrong})


@pytest.mark.parametrize("wrong", [((1, 2),), ((1, 2, "0"),), ((1, 2.0, 0.0),), ((1, 2, True),),
                                   [(1, 2, 0.0)], (1, 2, 0.0)])
def test_a_neuron_comes_with_its_layer_and_its_factor(wrong):
    with pytest.raises(ValueError, match=r"^neurons .*: give a tuple of \(layer, neuron, factor\)"):
        TraceRequest("the dog", neurons=wrong)


@pytest.mark.parametrize("factor", [float("nan"), float("inf"), -100.5, 10**400])
def test_a_factor_is_a_number_within_bounds(factor):
    with pytest.raises(ValueError, match="of a neuron: choose -100 to 100"):
        TraceRequest("the dog", neurons=((0, 1, factor),))


@pytest.mark.parametrize("name", ["masked", "replaced", "hidden", "cut", "heads_off", "embeddings_off",
                                  "feed_forward_off"])
def test_what_must_be_given_can_t_be_none(name):
    with pytest.raises(ValueError, match=f"^{name} None: give a tuple"):
        TraceRequest("the dog", **{name: None})


def test_a_wrong_value_of_any_length_is_named_in_a_line():
    with pytest.raises(ValueError, match="^masked .{100}: give") as problem:
        TraceRequest("the dog", masked=[7] * 10_000)
    assert "\n" not in str(problem.value)


def test_numpy_s_whole_numbers_are_the_same_request(loaded):
    asked = TraceRequest("the dog", masked=(np.int64(1),), cut=((np.int32(0), 2),), window=np.int64(3))
    plain = TraceRequest("the dog", masked=(1,), cut=((0, 2),), window=3)
    assert {asked: prepare(loaded, asked).encoding} == {plain: prepare(loaded, plain).encoding}


@pytest.mark.parametrize(("wrong", "message"), [
    ({"masked": (4,)}, "position 4 is outside 0 to 3"), ({"masked": (-1,)}, "position -1 is outside"),
    ({"hidden": (4,)}, "position 4 is"), ({"replaced": ((4, 1),)}, "position 4 is"),
    ({"cut": ((4, 0),)}, "position 4 is"), ({"cut": ((0, 4),)}, "position 4 is"),
    ({"heads_off": ((2, 0),)}, "layer 2 is outside 0 to 1"), ({"heads_off": ((0, 3),)}, "head 3 is outside 0 to 2"),
    ({"neurons": ((2, 0, 0.0),)}, "layer 2 is outside 0 to 1"),
    ({"neurons": ((0, 23, 0.0),)}, "neuron 23 is outside 0 to 22"),
    ({"replaced": ((1, 117),)}, "vocabulary id 117 is outside 0 to 116"),
    ({"segments": (0, 0, 1, 1, 1)}, "segments has 5 entries; the input has 4 tokens"),
    ({"segments": (0, 1, 2, 0)}, "segments 2 is outside 0 to 1"),
    ({"position_order": (0, 1, 2, 37)}, "position_order 37 is outside 0 to 36"),
    ({"position_order": (0, 1, 2, 3, 4)}, "position_order has 5 entries"),
])
def test_the_first_place_that_is_not_there_is_named(loaded, wrong, message):
    with pytest.raises(ValueError, match=message):
        prepare(loaded, TraceRequest("the dog", **wrong))


def test_the_last_place_that_is_there_may_be_named(loaded):
    asked = TraceRequest("the dog", masked=(3,), hidden=(3,), cut=((3, 3),), heads_off=((1, 2),),
                         replaced=((0, 116),), segments=(0, 1, 1, 0), position_order=(36, 0, 1, 2), window=0)
    found = prepare(loaded, asked).encoding
    assert (found.input_ids[0], found.input_ids[3]) == (116, loaded.tokenizer.mask_id)
    assert found.token_type_ids == (0, 1, 1, 0)


def test_positions_end_where_a_token_s_do_not_where_the_table_does(family):
    """RoBERTa's table has 43 rows, and the first two are no token's."""
    roberta = load_model(family("RoBERTa"))
    length = len(roberta.tokenizer.encode("the dog"))
    prepare(roberta, TraceRequest("the dog", position_order=(40,) * length))
    with pytest.raises(ValueError, match="position_order 41 is outside 0 to 40"):
        prepare(roberta, TraceRequest("the dog", position_order=(41,) * length))


def test_whose_positions_a_neighbour_in_the_batch_moves_keeps_its_own(family):
    """RoBERTa counts no padding token, also where one stands in the text."""
    roberta = load_model(family("RoBERTa"), torch.float64)
    text = "the dog <pad> barked"
    order = tuple(range(len(roberta.tokenizer.encode("a cat"))))[::-1]
    beside = run_batch(roberta, [TraceRequest(text), TraceRequest("a cat", position_order=order)])
    for trace in beside:
        alone = run_batch(roberta, [trace.request])[0]
        np.testing.assert_allclose(trace.hidden_states, alone.hidden_states, rtol=0, atol=1e-12)


def test_a_model_without_segments_takes_those_of_its_own_kind(family):
    distilbert = load_model(family("DistilBERT"))
    assert prepare(distilbert, TraceRequest("the dog", segments=(0,) * 4)).encoding.token_type_ids == (0,) * 4
    with pytest.raises(ValueError, match="segments 1 is outside 0 to 0"):
        prepare(distilbert, TraceRequest("the dog", segments=(1,) * 4))


def test_a_mask_is_refused_where_the_family_has_none(family):
    with pytest.raises(ValueError, match=r"has no \[MASK\] token"):
        prepare(load_model(family("GPT-2")), TraceRequest("the dog", masked=(0,)))


def test_a_piece_that_stands_in_for_a_special_is_none(loaded):
    """[CLS] and [SEP] may be replaced too; what stands there then is a piece to look at, and a mask one to fill."""
    encoding = loaded.tokenizer.encode("the [MASK]")
    dog = loaded.tokenizer.id_of("dog")
    found = with_ids(loaded, encoding, {0: dog, 2: dog, 3: loaded.tokenizer.mask_id})
    assert found.tokens == ("dog", "the", "dog", "[MASK]")
    assert found.special == (False, False, False, False)
    assert found.mask_positions == (3,)
    assert with_ids(loaded, encoding, {1: dog}).special == (True, False, False, True)


def test_a_mask_wins_over_a_replacement(loaded):
    dog = loaded.tokenizer.id_of("dog")
    found = prepare(loaded, TraceRequest("the cat", replaced=((1, dog), (2, dog)), masked=(2,))).encoding
    assert found.tokens == ("[CLS]", "dog", "[MASK]", "[SEP]")


def test_a_window_of_nought_leaves_each_token_itself(loaded):
    probs = run_batch(loaded, [TraceRequest("the dog barked", window=0)])[0].attention_probs
    np.testing.assert_array_equal(probs, np.broadcast_to(np.eye(5, dtype=np.float32), (2, 3, 5, 5)))


def test_a_hidden_token_still_sees_itself_and_a_cut_pair_is_one_way(loaded):
    hidden, cut = run_batch(loaded, [TraceRequest("the dog barked", hidden=(2,)),
                                     TraceRequest("the dog barked", cut=((1, 3),))])
    seen = hidden.attention_probs[..., 2] > 0
    assert seen.reshape(-1, 5).tolist() == [[False, False, True, False, False]] * 6
    assert (cut.attention_probs[:, :, 1, 3] == 0).all()
    assert (cut.attention_probs[:, :, 3, 1] > 0).all()


def test_an_empty_list_of_segments_or_parts_is_not_none(loaded):
    with pytest.raises(ValueError, match="segments has 0 entries"):
        prepare(loaded, TraceRequest("the dog", segments=()))
    bare = run_batch(loaded, [TraceRequest("the dog", parts=())])[0]
    assert set(bare.arrays) == {"tokens", "input_ids", "token_type_ids", "attention_mask"}


def test_a_head_is_off_in_its_own_row_only(loaded):
    off, on = run_batch(loaded, [TraceRequest("the dog barked", heads_off=((0, 1),)), TraceRequest("the cat")])
    alone = run_batch(loaded, [TraceRequest("the cat")])[0]
    assert (off.context[0].reshape(5, 3, 5)[:, 1] == 0).all()  # (T, H, Dh)
    assert (off.context[0].reshape(5, 3, 5)[:, [0, 2]] != 0).all()
    np.testing.assert_allclose(on.hidden_states, alone.hidden_states, rtol=0, atol=1e-5)


def test_the_contract_lists_the_fields_in_their_order():
    text = (Path(__file__).resolve().parents[2] / "ARCHITECTURE.md").read_text(encoding="utf-8")
    about = text[text.index("**TraceRequest**"):text.index("**Trace**:")]
    listed = [re.match(r"\w+", word).group() for word in re.findall(r"^\| `(\w+: [^`]*)`", about, flags=re.MULTILINE)]
    first = re.findall(r"`(\w+)(?:=None)?`", about.split("and what one does")[0])
    assert [*first, *listed] == [field.name for field in fields(TraceRequest)]
