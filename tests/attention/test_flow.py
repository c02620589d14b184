"""The stream through the layers: shares add up, agree with rollout and with vectors added one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from bert_core.figures.flow import ROWS, flow_payload, in_words
from bert_core.load import load_model
from bert_core.measures.flow import Flow, by_lengths, by_weights, flow, gathered
from bert_core.measures.rollout import rollout
from bert_core.trace import TraceRequest, run_batch
from ui import chips

WAYS = ["bidirectional", "causal"]


@pytest.fixture(scope="module", params=WAYS)
def one(request, small, pair_request):
    """A Trace of the small BERT, float64, both ways or one way."""
    return run_batch(small, [replace(pair_request, attention=request.param)])[0]


@pytest.fixture(scope="module")
def mixed(one, small):
    return by_lengths(one, small)


def added(trace, model, layer: int) -> torch.Tensor:
    """What every token adds to every other, vector by vector, residual included, before LayerNorm, (Tq, Tk, D)."""
    name = model.names.of_layer(layer, "attention_dense")
    vectors = torch.zeros(len(trace), len(trace), model.config.hidden_size, dtype=torch.float64)
    size = model.config.head_size
    for head in range(model.config.num_attention_heads):
        weight = model.weights[f"{name}.weight"][:, head * size:(head + 1) * size]  # (D, Dh)
        for query in range(len(trace)):
            for key in range(len(trace)):
                share = float(trace.attention_probs[layer, head, query, key])
                vectors[query, key] += share * weight @ torch.tensor(trace.value[layer, head, key])
    for token in range(len(trace)):
        vectors[token, token] += torch.tensor(trace.hidden_states[layer, token])
    return vectors


@pytest.mark.parametrize("layer", [0, 2])
def test_lengths_are_those_of_the_vectors_that_add_up_to_the_layers_output(one, mixed, small, layer):
    model, vectors = small.model, added(one, small.model, layer)
    norm, dense = (model.names.of_layer(layer, role) for role in ("attention_norm", "attention_dense"))
    total = vectors.sum(dim=1) + model.weights[f"{dense}.bias"]
    weight, bias = model.weights[f"{norm}.weight"], model.weights[f"{norm}.bias"]
    output = F.layer_norm(total, weight.shape, weight, bias, model.config.layer_norm_eps)
    assert np.allclose(output, one.attention_output[layer], atol=1e-12)  # so these are the parts of the real thing
    parts = (vectors - vectors.mean(dim=-1, keepdim=True)) * weight
    lengths = parts.norm(dim=-1)
    assert np.allclose(mixed[layer], lengths / lengths.sum(dim=-1, keepdim=True), atol=1e-12)


def test_every_row_is_shared_out_and_nothing_comes_from_what_is_not_seen(one, mixed):
    for mixing in (mixed, by_weights(one)):
        assert np.allclose(mixing.sum(axis=-1), 1.0, atol=1e-12)
        hidden = (one.attention_probs == 0).all(axis=(0, 1))
        assert hidden.any() == (one.attention_kind == "causal")
        assert (mixing[:, hidden] == 0).all()


@pytest.mark.parametrize("position", [0, 4, 11])
def test_what_goes_in_comes_out(mixed, position):
    found = flow(mixed, position)
    assert found.shares[-1].tolist() == [float(n == position) for n in range(len(mixed[0]))]
    assert np.allclose(found.shares.sum(axis=-1), 1.0)
    assert np.allclose(found.edges.sum(axis=2), found.shares[1:])
    assert np.allclose(found.edges.sum(axis=1), found.shares[:-1])


@pytest.mark.parametrize("position", [0, 6])
def test_by_weights_it_is_rollout_kept_at_every_step(one, position):
    found = flow(by_weights(one), position)
    assert np.allclose(found.shares[0], rollout(one.attention_probs)[-1][position], atol=1e-12)


def test_a_position_that_is_not_there_says_so(mixed):
    with pytest.raises(ValueError, match="position 99"):
        flow(mixed, 99)


def test_a_model_of_transformers_has_no_lengths(family):
    loaded = load_model(family("GPT-2"))
    trace = run_batch(loaded, [TraceRequest("the dog barked")])[0]
    with pytest.raises(ValueError, match="runs through transformers"):
        by_lengths(trace, loaded)


# --- drawn -------------------------------------------------------------------


def long_flow(length: int = 90, followed: int = 77) -> Flow:
    generator = np.random.default_rng(0)
    mixed = generator.dirichlet(np.full(length, 0.05), size=(3, length))
    return flow(mixed, followed)


def test_of_many_tokens_the_largest_are_drawn_and_the_others_are_one():
    found = long_flow()
    drawn, kept = gathered(found, 12, 77)
    assert len(kept) == 11
    assert 77 in kept
    assert list(kept) == sorted(kept)
    left_out = sorted(set(range(90)) - set(kept))
    assert found.shares[:, left_out].max() <= found.shares[:, sorted(set(kept) - {77})].max(axis=0).min()
    assert np.allclose(drawn.shares[:, :11], found.shares[:, kept])
    assert np.allclose(drawn.shares[:, 11], found.shares[:, left_out].sum(axis=1))
    assert np.allclose(drawn.edges[1, 2, 11], found.edges[1, kept[2], left_out].sum())
    assert np.allclose(drawn.edges[1, 11, 2], found.edges[1, left_out, kept[2]].sum())
    assert np.allclose(drawn.edges.sum(axis=2), drawn.shares[1:])


def test_a_followed_token_that_hardly_gives_anything_is_still_there():
    shares = np.full((2, 40), 1 / 40)
    shares[:, 7] = 0.0
    _, kept = gathered(Flow(shares, np.zeros((1, 40, 40))), 5, 7)
    assert 7 in kept


def test_the_picture_has_the_numbers_of_the_flow(trace):
    pieces, found = chips.describe(trace.encoding), flow(by_weights(trace), 6)
    header, arrays = flow_payload(found, pieces, 6)
    assert [row["i"] for row in header["rows"]] == list(range(len(trace)))
    assert header["rows"][header["target"]] == {"t": "[MASK]", "k": "mask", "i": 6}
    assert header["lens"] == []
    assert np.array_equal(arrays["shares"], found.shares.astype(np.float32))
    assert np.array_equal(arrays["edges"], found.edges.astype(np.float32))


def test_the_others_are_counted():
    header, arrays = flow_payload(long_flow(), [(f"w{n}", "word") for n in range(90)], 77)
    assert len(header["rows"]) == ROWS == arrays["shares"].shape[1]
    assert header["rows"][-1] == {"t": f"{90 - ROWS + 1} others", "k": "others"}
    assert header["rows"][header["target"]]["i"] == 77


def test_words_name_itself_and_those_that_give_most():
    shares = np.array([[0.1, 0.25, 0.05, 0.6], [0, 0, 0, 1.0]])
    names = ["“a”", "“b”", "“c”", "“d”"]
    found = Flow(shares, np.zeros((1, 4, 4)))
    assert in_words(found, names, 1) == (
        "25 % of the last layer's “b” is its own input; the largest of the rest: “d” 60 %, “a” 10 %, “c” 5.0 %.")
    alone = Flow(np.array([[1.0, 0.0], [1.0, 0.0]]), np.zeros((1, 2, 2)))
    assert in_words(alone, names, 0) == "100 % of the last layer's “a” is its own input: it sees no other token."
