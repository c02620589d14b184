"""Acting on heads is exact: the same as zeroing the head's slice in transformers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from bert_core.load import load_model
from bert_core.measures.ablation import _vocabulary_moves, class_moves, masked_moves, next_moves
from bert_core.tasks.vocabulary import last_read
from bert_core.trace import TraceRequest, prepare, run_batch

OFF = ((0, 1), (0, 4), (2, 3))


@pytest.fixture(scope="module")
def reference(small_folder):
    from transformers import BertForPreTraining

    return BertForPreTraining.from_pretrained(small_folder, attn_implementation="eager").double().eval()


def without_heads(reference, inputs, off):
    """transformers' logits with the slices of these heads zeroed before the output projection."""
    handles = []
    for layer, block in enumerate(reference.bert.encoder.layer):
        gone = [head for at, head in off if at == layer]

        def zero(module, args, gone=gone):
            context = args[0].clone()
            for head in gone:
                context[..., 7 * head:7 * (head + 1)] = 0
            return (context, *args[1:])

        handles.append(block.attention.output.register_forward_pre_hook(zero))
    with torch.no_grad():
        out = reference(**inputs)
    for handle in handles:
        handle.remove()
    return out.prediction_logits[0].numpy(), out.seq_relationship_logits[0].numpy()


@pytest.mark.parametrize("off", [((1, 2),), OFF, tuple((1, h) for h in range(5)),
                                 tuple((a, b) for a in range(3) for b in range(5))])
def test_heads_off_equal_zeroed_slices_in_transformers(small, reference, pair_request, off):
    encoding = prepare(small, pair_request).encoding
    inputs = {name: torch.tensor([getattr(encoding, name)]) for name in ("input_ids", "token_type_ids")}
    logits, nsp = without_heads(reference, inputs, off)
    trace = run_batch(small, [replace(pair_request, heads_off=off, all_logits=True)])[0]
    assert np.abs(trace.mlm_logits - logits).max() < 1e-10
    assert np.abs(trace.nsp_logits - nsp).max() < 1e-10


def test_heads_of_one_visitor_do_not_touch_another_in_the_same_batch(small, pair_request):
    alone = run_batch(small, [pair_request])[0]
    other = replace(pair_request, heads_off=OFF, feed_forward_off=(1,), neurons=((0, 7, 0.0), (2, 30, 2.0)))
    together = run_batch(small, [other, pair_request])[1]
    assert np.abs(alone.mlm_logits - together.mlm_logits).max() < 1e-12


@pytest.mark.parametrize("off", [(1,), (0, 2), (0, 1, 2)])
def test_feed_forward_off_equals_a_zeroed_output_in_transformers(small, reference, pair_request, off):
    encoding = prepare(small, pair_request).encoding
    inputs = {name: torch.tensor([getattr(encoding, name)]) for name in ("input_ids", "token_type_ids")}
    handles = [reference.bert.encoder.layer[layer].output.dense.register_forward_hook(
        lambda module, args, out: torch.zeros_like(out)) for layer in off]
    with torch.no_grad():
        out = reference(**inputs)
    for handle in handles:
        handle.remove()
    trace = run_batch(small, [replace(pair_request, feed_forward_off=off, all_logits=True)])[0]
    assert np.abs(trace.mlm_logits - out.prediction_logits[0].numpy()).max() < 1e-10
    assert np.abs(trace.nsp_logits - out.seq_relationship_logits[0].numpy()).max() < 1e-10


def test_a_neurons_factor_equals_a_scaled_column_in_transformers(small, reference, pair_request):
    encoding = prepare(small, pair_request).encoding
    inputs = {name: torch.tensor([getattr(encoding, name)]) for name in ("input_ids", "token_type_ids")}
    changes = ((0, 7, 0.0), (0, 30, 2.0), (2, 7, -1.5))
    handles = []
    for layer in {layer for layer, *_ in changes}:
        factors = torch.ones(44, dtype=torch.float64)
        for _, neuron, factor in (one for one in changes if one[0] == layer):
            factors[neuron] = factor
        handles.append(reference.bert.encoder.layer[layer].intermediate.register_forward_hook(
            lambda module, args, out, factors=factors: out * factors))
    with torch.no_grad():
        out = reference(**inputs)
    for handle in handles:
        handle.remove()
    trace = run_batch(small, [replace(pair_request, neurons=changes, all_logits=True)])[0]
    plain = run_batch(small, [replace(pair_request, all_logits=True)])[0]
    assert np.abs(trace.mlm_logits - out.prediction_logits[0].numpy()).max() < 1e-10
    assert np.abs(trace.nsp_logits - out.seq_relationship_logits[0].numpy()).max() < 1e-10
    assert np.abs(trace.mlm_logits - plain.mlm_logits).max() > 1e-3


def test_cut_pairs_and_windows_renormalise_what_is_left(small, pair_request):
    whole = run_batch(small, [pair_request])[0]
    cut = run_batch(small, [replace(pair_request, cut=((6, 1), (6, 2)))])[0]
    kept = [k for k in range(len(whole)) if k not in (1, 2)]
    left = np.exp(whole.attention_scores[0, :, 6][:, kept])
    assert np.allclose(cut.attention_probs[0, :, 6][:, kept], left / left.sum(axis=-1, keepdims=True), atol=1e-12)
    assert not cut.attention_probs[:, :, 6, [1, 2]].any()
    near = run_batch(small, [replace(pair_request, window=2)])[0]
    place = np.arange(len(whole))
    far = np.abs(place[:, None] - place[None, :]) > 2
    assert not near.attention_probs[:, :, far].any()
    assert np.allclose(near.attention_probs.sum(axis=-1), 1)


def test_moves_are_the_softmax_of_both_runs(small, pair_request):
    before, after = run_batch(small, [pair_request, replace(pair_request, heads_off=OFF)])
    moved = masked_moves(before, after, small.tokenizer, top=4)[0]
    old, new = (np.exp(t.mlm_logits[0]) / np.exp(t.mlm_logits[0]).sum() for t in (before, after))
    assert moved.title == "[MASK] at position 6"
    assert 4 <= len(moved.names) <= 8
    assert list(moved.before) == sorted(moved.before, reverse=True)
    wanted = {int(i) for run in (old, new) for i in np.argsort(-run)[:4]}
    assert {small.tokenizer.id_of(name) for name in moved.names} == wanted
    for name, p, q in zip(moved.names, moved.before, moved.after, strict=True):
        index = small.tokenizer.id_of(name)
        assert (p, q) == (pytest.approx(old[index]), pytest.approx(new[index]))
    assert moved.divergence == pytest.approx(float(np.sum(old * np.log(old / new))))


def test_the_tops_of_both_runs_stand_in_the_order_of_the_first(small):
    before, after = np.log([[0.4, 0.3, 0.02, 0.08, 0.15, 0.05], [0.1, 0.1, 0.4, 0.1, 0.1, 0.2]])
    moved = _vocabulary_moves(before, after, small.tokenizer, 2, "title")
    assert moved.names == tuple(map(small.tokenizer.token_of, (0, 1, 5, 2)))  # 2 before 5 by the second run
    assert moved.before == pytest.approx((0.4, 0.3, 0.05, 0.02))
    assert moved.after == pytest.approx((0.1, 0.1, 0.2, 0.4))


def test_a_classifier_that_does_not_move_has_no_divergence():
    logits = np.array([0.3, -1.2, 2.0])
    moved = class_moves(logits, logits + 5.0, ("a", "b", "c"), "Class")
    assert moved.before == pytest.approx(moved.after)
    assert moved.divergence == pytest.approx(0.0, abs=1e-12)


def test_a_classifier_that_moves_has_both_runs_probabilities_and_their_divergence():
    moved = class_moves(np.log([0.2, 0.3, 0.5]), np.log([0.6, 0.3, 0.1]) + 4.0, ("a", "b", "c"), "Class")
    assert (moved.title, moved.names) == ("Class", ("a", "b", "c"))
    assert moved.before == pytest.approx((0.2, 0.3, 0.5))
    assert moved.after == pytest.approx((0.6, 0.3, 0.1))
    assert moved.divergence == pytest.approx(0.2 * np.log(0.2 / 0.6) + 0.5 * np.log(0.5 / 0.1))


def test_classes_that_each_hold_by_themselves_move_by_themselves():
    moved = class_moves(np.array([2.0, -1.0]), np.array([0.0, -1.0]), ("a", "b"), "Class", several=True)
    p = 1 / (1 + np.exp(-2.0))
    assert moved.before == pytest.approx((p, 1 / (1 + np.e)))
    assert moved.after == pytest.approx((0.5, 1 / (1 + np.e)))
    assert moved.divergence == pytest.approx(p * np.log(p / 0.5) + (1 - p) * np.log((1 - p) / 0.5))


@pytest.mark.parametrize("order", ["left-to-right", "right-to-left"])
def test_a_causal_model_is_asked_where_its_reading_ends(checkpoint, order):
    causal = load_model(checkpoint("BertLMHeadModel", is_decoder=True))
    before, after = run_batch(causal, [TraceRequest("the dog barked ."), TraceRequest("the dog barked .", window=1)])
    before = replace(before, config=replace(before.config, reading_order=order))
    position = {"left-to-right": 4, "right-to-left": 1}[order]
    assert last_read(before) == position
    moved = next_moves(before, after, causal.tokenizer, top=3)
    chances = np.exp(before.lm_logits[position].astype(np.float64))
    assert moved.title == {"left-to-right": "Next after “.”", "right-to-left": "Before “the”"}[order]
    assert moved.names[0] == causal.tokenizer.token_of(int(chances.argmax()))
    assert moved.before[0] == pytest.approx(chances.max() / chances.sum(), rel=1e-5)
