"""Every named intermediate equals transformers' at float64 to 1e-10, and a swapped axis would not."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bert_core import model as bert
from bert_core.load import load_model
from bert_core.trace import TraceRequest, prepare, run_batch, to_inputs
from tests.core.reference import open_reference, padded, reference_arrays

#: Sentence, pair: T is 7, 13, 11, 3 and 37 (cut) with specials.
INPUTS = [
    ("the dog barked all night", None),
    ("a cat slept in the garden .", "we walked home"),
    ("[MASK] dog [MASK] all [MASK] ! she [MASK] it", None),
    ("<", None),
    ("the dog barked all night . " * 9, None),
]
ATOL = 1e-10


@pytest.fixture(scope="module", params=["BertForPreTraining", "BertLMHeadModel"])
def both(request, checkpoint):
    """Our model and transformers', the same folder, float64."""
    folder = checkpoint(request.param, is_decoder=request.param == "BertLMHeadModel")
    return load_model(folder, torch.float64), open_reference(folder)


@pytest.mark.parametrize(("text", "pair"), INPUTS)
def test_every_intermediate_equals_the_reference(both, text, pair):
    ours, theirs = both
    trace = run_batch(ours, [TraceRequest(text, pair)])[0]
    expected = reference_arrays(theirs, ours.config, trace.encoding)
    expected.pop("output")
    assert set(expected) | {"embedding_output"} >= {name for name in trace.arrays if trace.arrays[name].ndim > 1
                                                    and not name.endswith("logits")}
    for name, array in expected.items():
        assert trace.arrays[name].dtype == np.float64
        np.testing.assert_allclose(trace.arrays[name], array, rtol=0, atol=ATOL, err_msg=name)
    np.testing.assert_array_equal(trace.embedding_output, trace.hidden_states[0])


@pytest.mark.parametrize(("text", "pair"), INPUTS)
def test_every_head_equals_the_reference(both, text, pair):
    ours, theirs = both
    trace = run_batch(ours, [TraceRequest(text, pair, all_logits=True)])[0]
    out = reference_arrays(theirs, ours.config, trace.encoding)["output"]
    if ours.config.is_decoder:
        np.testing.assert_allclose(trace.lm_logits, out.logits[0].numpy(), rtol=0, atol=ATOL)
        return
    np.testing.assert_array_equal(trace.mlm_positions, np.arange(len(trace)))
    np.testing.assert_allclose(trace.mlm_logits, out.prediction_logits[0].numpy(), rtol=0, atol=ATOL)
    np.testing.assert_allclose(trace.nsp_logits, out.seq_relationship_logits[0].numpy(), rtol=0, atol=ATOL)
    pooled = theirs.bert.pooler(out.hidden_states[-1])[0]
    np.testing.assert_allclose(trace.pooled_output, pooled.detach().numpy(), rtol=0, atol=ATOL)


def test_masked_positions_get_the_rows_of_their_own(both):
    ours, theirs = both
    if ours.config.is_decoder:
        return
    trace = run_batch(ours, [TraceRequest("[MASK] dog [MASK] all night", masked=(4,))])[0]
    logits = theirs(**padded(trace.encoding, 0, 0)).prediction_logits[0].detach().numpy()
    assert trace.mlm_positions.tolist() == [1, 3, 4]
    np.testing.assert_allclose(trace.mlm_logits, logits[[1, 3, 4]], rtol=0, atol=ATOL)


def test_padding_changes_nothing_that_is_not_padding(both):
    """Requests of every length in one batch: each row equals its own run, ours and theirs."""
    ours, theirs = both
    requests = [TraceRequest(text, pair) for text, pair in INPUTS]
    for request, trace in zip(requests, run_batch(ours, requests), strict=True):
        alone = run_batch(ours, [request])[0]
        assert trace.arrays.keys() == alone.arrays.keys()
        expected = reference_arrays(theirs, ours.config, trace.encoding, extra=37 - len(trace))
        for name in set(expected) & set(trace.arrays):
            np.testing.assert_allclose(trace.arrays[name], expected[name], rtol=0, atol=ATOL, err_msg=name)
            np.testing.assert_allclose(trace.arrays[name], alone.arrays[name], rtol=0, atol=ATOL, err_msg=name)


def whole_memory(array: np.ndarray) -> int:
    """Bytes that stay in memory as long as the array does."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array.nbytes if array.base is None else array.base.untyped_storage().nbytes()


def test_rows_of_a_batch_get_what_each_asked_for(tiny_bert):
    """Few places, many, none and other parts side by side: each row is its own run, in memory of its own."""
    ours = load_model(tiny_bert, torch.float64)
    requests = [
        TraceRequest("the dog [MASK] all night"), TraceRequest("a cat slept", all_logits=True), TraceRequest("<"),
        TraceRequest("the dog barked all night . " * 9, all_logits=True),
        TraceRequest("we [MASK] home", parts=("attention_probs", "embedding_sum")),
        TraceRequest("[MASK]", parts=("mlm_logits",)),
    ]
    traces = run_batch(ours, requests)
    for request, trace in zip(requests, traces, strict=True):
        alone = run_batch(ours, [request])[0]
        assert trace.arrays.keys() == alone.arrays.keys()
        for name, array in trace.arrays.items():
            assert array.shape == alone.arrays[name].shape, name
            if array.dtype.kind == "f":
                np.testing.assert_allclose(array, alone.arrays[name], rtol=0, atol=ATOL, err_msg=name)
    assert len(traces[3].mlm_logits) > 32 > len(traces[1].mlm_logits)
    assert traces[2].mlm_logits.shape[0] == 0
    for name in ("attention_probs", "hidden_states", "embedding_sum", "mlm_logits"):
        rows = [trace.arrays[name] for trace in traces if trace.has(name)]
        assert all(whole_memory(array) == array.nbytes for array in rows), name


def test_causal_rows_are_exactly_zero_to_the_right(tiny_bert):
    ours = load_model(tiny_bert, torch.float64)
    free, causal = run_batch(ours, [TraceRequest("the dog barked all night", attention=kind)
                                    for kind in ("bidirectional", "causal")])
    right = np.triu(np.ones((len(free), len(free)), dtype=bool), 1)
    assert (causal.attention_probs[:, :, right] == 0.0).all()
    assert (free.attention_probs[:, :, right] > 0.0).all()
    np.testing.assert_allclose(causal.attention_probs.sum(-1), 1.0, atol=ATOL)


def test_the_causal_pattern_on_bidirectional_weights_is_transformers_decoder(tiny_bert):
    """'BERT, right side hidden' equals the same weights loaded as a decoder."""
    from transformers import BertConfig, BertModel

    ours = load_model(tiny_bert, torch.float64)
    trace = run_batch(ours, [TraceRequest("the dog barked", "all night", attention="causal")])[0]
    config = BertConfig.from_pretrained(tiny_bert, is_decoder=True)
    theirs = BertModel.from_pretrained(tiny_bert, config=config, attn_implementation="eager", dtype=torch.float64)
    out = theirs.eval()(**padded(trace.encoding, 0, 0), output_hidden_states=True, output_attentions=True)
    np.testing.assert_allclose(trace.hidden_states, torch.stack(out.hidden_states)[:, 0].detach(), rtol=0, atol=ATOL)
    np.testing.assert_allclose(trace.attention_probs, torch.stack(out.attentions)[:, 0].detach(), rtol=0, atol=ATOL)


@pytest.mark.parametrize("mutation", ["swap query and key", "transpose probabilities", "mix heads and tokens",
                                      "scale by hidden size", "skip the mask"])
def test_a_wrong_axis_would_be_seen(mutation, tiny_bert, monkeypatch):
    """The comparison above is worth something: each of these mistakes changes hidden states far beyond 1e-10."""
    ours = load_model(tiny_bert, torch.float64)
    inputs = to_inputs(ours, [prepare(ours, TraceRequest("the dog barked all night", attention="causal"))])
    right = bert.encode(ours.model, inputs)[1]
    plain_linear, plain_weights, plain_join = bert.linear, bert.attention_weights, bert.join_heads
    swap = {"query": "key", "key": "query"}
    patches = {
        "swap query and key": ("linear", lambda model, x, name, activation=None: plain_linear(
            model, x, ".".join([*name.split(".")[:-1], swap.get(name.split(".")[-1], name.split(".")[-1])]),
            activation)),
        "transpose probabilities": ("attention_weights", lambda q, k, a: tuple(
            x.transpose(-1, -2) for x in plain_weights(q, k, a))),
        "mix heads and tokens": ("join_heads", lambda x: plain_join(x.transpose(1, 2).reshape(x.shape))),
        "scale by hidden size": ("attention_weights", lambda q, k, a: plain_weights(q * 3**-0.5, k, a)),
        "skip the mask": ("attention_weights", lambda q, k, a: plain_weights(q, k, None)),
    }
    name, wrong = patches[mutation]
    monkeypatch.setattr(bert, name, wrong)
    assert (bert.encode(ours.model, inputs)[1] - right).abs().max() > 1e-6


def test_one_training_step_has_the_references_gradients(checkpoint):
    """Loss of masked LM and next sentence on a padded pair batch: the gradient of every parameter agrees."""
    folder = checkpoint("BertForPreTraining")
    ours, theirs = load_model(folder, torch.float64), open_reference(folder)
    rows = [prepare(ours, TraceRequest("the [MASK] barked all night", "we walked home", masked=(9,))),
            prepare(ours, TraceRequest("a cat [MASK]", "she slept"))]
    inputs = to_inputs(ours, rows)
    labels = torch.where(inputs.input_ids == ours.tokenizer.mask_id, 83, -100)
    out = theirs(input_ids=inputs.input_ids, attention_mask=inputs.attention_mask.long(),
                 token_type_ids=inputs.token_type_ids, labels=labels, next_sentence_label=torch.tensor([0, 1]))
    out.loss.backward()
    weights = {n: w.clone().requires_grad_() for n, w in ours.model.weights.items()}
    model = bert.Model(ours.config, weights, ours.model.heads)
    _, hidden = bert.encode(model, inputs)
    chosen = labels != -100
    masked = torch.nn.functional.cross_entropy(bert.mlm_logits(model, hidden[chosen]), labels[chosen])
    nsp = bert.nsp_logits(model, bert.pooled_output(model, hidden))
    (masked + torch.nn.functional.cross_entropy(nsp, torch.tensor([0, 1]))).backward()
    expected = {name: p.grad for name, p in theirs.named_parameters()}
    assert set(expected) == set(weights)
    for name, weight in weights.items():
        torch.testing.assert_close(weight.grad, expected[name], rtol=0, atol=ATOL, msg=name)


def test_a_switched_off_head_equals_zeroing_its_slice_in_the_reference(tiny_bert):
    ours, theirs = load_model(tiny_bert, torch.float64), open_reference(tiny_bert)
    trace = run_batch(ours, [TraceRequest("the dog barked all night", heads_off=((1, 2), (0, 0)))])[0]
    for layer, head in ((1, 2), (0, 0)):
        dense = theirs.bert.encoder.layer[layer].attention.output.dense

        def zero(_, args, head=head):
            context = args[0].clone()
            context[..., head * 5:head * 5 + 5] = 0
            return (context,)

        dense.register_forward_pre_hook(zero)
    expected = reference_arrays(theirs, ours.config, trace.encoding)
    np.testing.assert_allclose(trace.hidden_states, expected["hidden_states"], rtol=0, atol=ATOL)


def test_blocked_pairs_renormalise_the_rest(tiny_bert):
    ours = load_model(tiny_bert, torch.float64)
    plain, cut, hidden, near = run_batch(ours, [
        TraceRequest("the dog barked all night"), TraceRequest("the dog barked all night", cut=((2, 5),)),
        TraceRequest("the dog barked all night", hidden=(3,)), TraceRequest("the dog barked all night", window=1)])
    first = plain.attention_probs[0, :, 2].copy()  # (H, Tk) of the first layer, whose input is the same
    first[:, 5] = 0
    np.testing.assert_allclose(cut.attention_probs[0, :, 2], first / first.sum(-1, keepdims=True), atol=ATOL)
    assert (hidden.attention_probs[:, :, [0, 1, 2, 4, 5, 6], 3] == 0).all()
    assert (hidden.attention_probs[:, :, 3, 3] > 0).all()
    place = np.arange(len(near))
    far = np.abs(place[:, None] - place[None, :]) > 1
    assert (near.attention_probs[:, :, far] == 0).all()
