"""Each head off alone: the numbers of the single change, of transformers, and what is said of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from bert_core.config import BertConfig
from bert_core.figures.head_effects import effects_payload, in_words, together_in_words
from bert_core.load import load_model
from bert_core.measures import head_effects as measure
from bert_core.measures.ablation import ANSWERS, answer_moves, class_moves, masked_moves
from bert_core.measures.cost import forward_work
from bert_core.measures.head_effects import HeadEffects, each_head_off, longest
from bert_core.tasks.support import softmax
from bert_core.trace import TraceRequest, prepare, run_batch
from tests.attention.test_ablation import without_heads
from tests.stepping import finish

HEADS = tuple((layer, head) for layer in range(3) for head in range(5))
MADE = HeadEffects("book", 0.62, np.array([[0.004, 0.25, 0.03], [0.4, 0.009, 0.0]]),
                   np.array([[0.6, 0.4, 0.55], [0.31, 0.61, 0.62]]), ("book", "door", "book", "book", "book", "book"))


def sweep(loaded, request, kind):
    return finish(each_head_off(loaded, replace(request, parts=ANSWERS[kind]), kind))[0]


def test_every_head_is_the_single_change(small, pair_request, monkeypatch):
    monkeypatch.setattr(measure, "ROWS", 4)  # 15 heads in batches of 4, 4, 4 and 3
    found, steps = finish(each_head_off(small, replace(pair_request, parts=ANSWERS["gap"]), "gap"))
    assert steps == 4
    whole = run_batch(small, [pair_request])[0]
    assert found.divergence.shape == found.after.shape == (3, 5)
    assert len({round(value, 9) for value in found.divergence.ravel()}) == 15  # swapped, they would be others
    for number, (layer, head) in enumerate(HEADS):
        moved = masked_moves(whole, run_batch(small, [replace(pair_request, heads_off=((layer, head),))])[0],
                             small.tokenizer)[0]
        assert found.divergence[layer, head] == pytest.approx(moved.divergence, rel=1e-9)
        assert (found.answer, found.before) == (moved.names[0], pytest.approx(moved.before[0]))
        assert found.after[layer, head] == pytest.approx(moved.after[0], rel=1e-9)
        assert found.first[number] == moved.names[int(np.argmax(moved.after))]


def test_a_heads_effect_is_that_of_a_zeroed_slice_in_transformers(small, small_folder, pair_request):
    from transformers import BertForPreTraining

    reference = BertForPreTraining.from_pretrained(small_folder, attn_implementation="eager").double().eval()
    encoding = prepare(small, pair_request).encoding
    inputs = {name: torch.tensor([getattr(encoding, name)]) for name in ("input_ids", "token_type_ids")}
    found = sweep(small, pair_request, "gap")
    place, = encoding.mask_positions
    for layer, head in ((0, 3), (2, 1)):
        old, new = (softmax(without_heads(reference, inputs, off)[0][place]) for off in ((), ((layer, head),)))
        assert found.divergence[layer, head] == pytest.approx(float(np.sum(old * np.log(old / new))), rel=1e-8)


def test_what_the_request_switches_off_is_off_in_every_run(small, pair_request):
    found = sweep(small, replace(pair_request, heads_off=((1, 2),)), "gap")
    one, both = run_batch(small, [replace(pair_request, heads_off=off) for off in (((1, 2),), ((1, 2), (2, 4)))])
    assert found.divergence[1, 2] == pytest.approx(0.0, abs=1e-12)
    assert found.divergence[2, 4] == pytest.approx(masked_moves(one, both, small.tokenizer)[0].divergence)


def test_of_several_gaps_the_first_is_read(small):
    request = TraceRequest("The [MASK] barkeds all [MASK].")
    found = sweep(small, request, "gap")
    whole, off = run_batch(small, [request, replace(request, heads_off=((1, 4),))])
    moved = masked_moves(whole, off, small.tokenizer)
    assert found.divergence[1, 4] == pytest.approx(moved[0].divergence)
    assert moved[1].divergence != pytest.approx(moved[0].divergence)
    assert masked_moves(whole, off, small.tokenizer, gaps=1) == moved[:1]


def test_a_classifier_s_heads_move_its_classes(small_classifier):
    request = TraceRequest("The dog barked.")
    found = sweep(small_classifier, request, "class")
    whole, off = run_batch(small_classifier, [request, replace(request, heads_off=((0, 2),))])
    moved = class_moves(whole.logits, off.logits, ("a", "b", "c"), "Class")
    top = int(np.argmax(moved.before))
    assert found.divergence[0, 2] == pytest.approx(moved.divergence)
    assert (found.before, found.after[0, 2]) == (pytest.approx(moved.before[top]), pytest.approx(moved.after[top]))


def test_classes_of_one_name_are_not_taken_for_each_other(checkpoint):
    loaded = load_model(checkpoint("BertForSequenceClassification", id2label={0: "same", 1: "same"}))
    request = TraceRequest("the dog barked", parts=ANSWERS["class"])
    whole = softmax(run_batch(loaded, [request])[0].logits)
    off = softmax(run_batch(loaded, [replace(request, heads_off=((0, 0),))])[0].logits)
    found = sweep(loaded, request, "class")
    assert found.before == pytest.approx(whole.max())
    assert found.after[0, 0] == pytest.approx(off[whole.argmax()], rel=1e-5)


def test_the_next_word_and_the_next_sentence_move_too(small, pair_request, checkpoint):
    whole, off = run_batch(small, [pair_request, replace(pair_request, heads_off=((2, 0),))])
    follows, = answer_moves(small, "follows", whole, off)
    assert follows.names == ("next", "not next")
    assert sweep(small, pair_request, "follows").divergence[2, 0] == pytest.approx(follows.divergence)
    causal = load_model(checkpoint("BertLMHeadModel", is_decoder=True))
    request = TraceRequest("the dog barked .", lm_at=(4,))
    whole, off = run_batch(causal, [request, replace(request, heads_off=((1, 0),))])
    moved, = answer_moves(causal, "next", whole, off)
    assert moved.title == "Next after “.”"
    assert sweep(causal, request, "next").divergence[1, 0] == pytest.approx(moved.divergence, rel=1e-4)


@pytest.mark.parametrize("sizes", [(6, 12, 384, 1536), (12, 12, 768, 3072), (24, 16, 1024, 4096)])
def test_the_longest_text_is_the_last_within_the_bound(sizes):
    layers, heads, hidden, inner = sizes
    config = BertConfig(num_hidden_layers=layers, num_attention_heads=heads, hidden_size=hidden,
                        intermediate_size=inner, max_position_embeddings=512)
    most = longest(config)
    work = [layers * heads * forward_work(config, n).total for n in (most, most + 1)]
    assert work[0] <= measure.LARGEST < work[1]
    assert 0 < most < 512


def test_the_strongest_heads_are_named_from_one():
    said = in_words(MADE)
    assert said.startswith("Without head 1 of layer 2 the answer moves most: 0.40 nats (KL), “book” goes from 62 % "
                           "to 31 %. Next: head 2 of layer 1 (0.25) and head 3 of layer 1 (0.03).")
    assert said.endswith("Less than 0.01 nats: 3 of the 6 heads.")
    turned = MADE._replace(divergence=MADE.divergence[::-1], after=MADE.after[::-1],
                           first=(*MADE.first[3:], *MADE.first[:3]))
    assert "head 1 of layer 1 the answer moves most" in in_words(turned)
    other = MADE._replace(first=("book", "book", "book", "door", "book", "book"))
    assert "to 31 %, and “door” comes first. Next" in in_words(other)


def test_a_model_that_hardly_moves_is_not_said_to_move():
    still = MADE._replace(divergence=MADE.divergence / 1000)
    assert in_words(still) == "No head alone moves the answer by as much as 0.001 nats (KL)."
    assert effects_payload(still, "", ())[0]["end"] == 0.1  # little is pale


def test_several_heads_stand_beside_the_sum_of_theirs_alone():
    assert together_in_words(MADE, ((0, 1), (1, 0)), 0.9) == (
        "The 2 heads that are off move the answer by 0.90 nats together; what each does alone adds up to 0.65.")


def test_the_payload_has_the_numbers_and_what_is_off():
    header, arrays = effects_payload(MADE, "The gap at position 6", ((1, 2), (0, 1)))
    assert (header["layers"], header["heads"], header["off"], header["end"]) == (2, 3, [1, 5], 0.4)
    assert (header["answer"], header["title"]) == ("book", "The gap at position 6")
    for name in ("divergence", "after"):
        assert np.array_equal(arrays[name], getattr(MADE, name).astype(np.float32))
