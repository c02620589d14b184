"""What neurons add to an answer, against transformers' own layers and gradients."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from bert_core.load import load_model
from bert_core.measures.attribution import finish
from bert_core.measures.knowledge_neurons import neuron_shares, others_like, strongest
from bert_core.measures.target import Target
from bert_core.trace import TraceRequest, run_batch
from tests.core.reference import open_reference

REQUEST = TraceRequest("the dog [MASK] all night", "it barked")
PLACE, PIECE = 3, 11
TARGET = Target("mlm", PIECE, PLACE, "probability")


@pytest.fixture(scope="module")
def loaded(tiny_bert):
    return load_model(tiny_bert, torch.float64)


@pytest.fixture(scope="module")
def shares(loaded):
    return finish(neuron_shares(loaded, REQUEST, TARGET, steps=24))


def probability(theirs, encoding, layer: int, factors: torch.Tensor) -> torch.Tensor:
    """transformers' probability of PIECE with one layer's neurons scaled at PLACE, (I,) factors."""

    def scale(module, args, out: torch.Tensor) -> torch.Tensor:
        every = torch.ones_like(out)
        every[0, PLACE] = factors
        return out * every

    handle = theirs.bert.encoder.layer[layer].intermediate.register_forward_hook(scale)
    ids, segments = torch.tensor([encoding.input_ids]), torch.tensor([encoding.token_type_ids])
    logits = theirs(input_ids=ids, token_type_ids=segments).prediction_logits
    handle.remove()
    return logits[0, PLACE].softmax(-1)[PIECE]


def test_shares_are_the_gradients_of_transformers_along_the_path(tiny_bert, loaded, shares):
    theirs, encoding = open_reference(tiny_bert), loaded.tokenizer.encode(REQUEST.text, REQUEST.pair)
    size = loaded.config.intermediate_size
    points, weights = np.polynomial.legendre.leggauss(24)
    for layer in range(loaded.config.num_hidden_layers):
        expected = np.zeros(size)
        for point, weight in zip((points + 1) / 2, weights / 2, strict=True):
            factors = torch.full((size,), point, dtype=torch.float64, requires_grad=True)
            with torch.enable_grad():
                (gradient,) = torch.autograd.grad(probability(theirs, encoding, layer, factors), factors)
            expected += weight * gradient.numpy()
        np.testing.assert_allclose(shares.values[layer], expected, rtol=0, atol=1e-12)
        without = probability(theirs, encoding, layer, torch.zeros(size, dtype=torch.float64))
        assert shares.without[layer] == pytest.approx(without.item(), abs=1e-12)


def test_a_layers_shares_add_up_to_what_the_answer_loses_without_it(loaded, shares):
    found = finish(neuron_shares(loaded, REQUEST, TARGET, steps=64))
    assert found.values.sum(axis=1) == pytest.approx(found.output - found.without, abs=1e-5)
    assert np.ptp(found.without) > 1e-5
    assert found.gap < 1e-5 < shares.gap
    assert shares.gap == pytest.approx(np.abs(shares.values.sum(axis=1) - shares.output + shares.without).max())


def test_the_path_goes_through_the_request_as_it_stands(loaded, shares):
    off = replace(REQUEST, neurons=((1, 5, 0.0),), heads_off=((0, 1),), feed_forward_off=(0,), window=4)
    found = finish(neuron_shares(loaded, off, TARGET))
    trace = run_batch(loaded, [off])[0]
    logits = trace.mlm_logits[trace.mlm_positions.tolist().index(PLACE)]
    assert found.output == pytest.approx(float(np.exp(logits[PIECE]) / np.exp(logits).sum()), abs=1e-12)
    assert found.output != pytest.approx(shares.output, abs=1e-6)
    assert found.values[1, 5] == 0
    assert not found.values[0].any()
    assert found.values[1].any()


def test_the_strongest_come_first_and_those_against_it_never(shares):
    found = strongest(shares, shares.values.size)
    values = [shares.values[neuron] for neuron in found]
    assert values == sorted(values, reverse=True)
    assert len(found) == (shares.values > 0).sum() < shares.values.size
    assert strongest(shares, 3) == found[:3]


def test_others_are_as_many_of_the_same_layers_and_the_same_each_time():
    chosen = ((0, 3), (2, 0), (2, 7), (2, 8))
    found = others_like(chosen, 10, 1)
    assert [layer for layer, _ in found] == [0, 2, 2, 2]
    assert not set(found) & set(chosen)
    assert len(set(found)) == 4
    assert found == others_like(chosen, 10, 1) != others_like(chosen, 10, 2)


@pytest.mark.parametrize(("change", "message"), [
    ({"steps": 1}, "steps 1"), ({"steps": 65}, "steps 65"),
    ({"target": Target("mlm", 10**6, PLACE)}, "class 1000000"),
    ({"target": Target("classification", 0)}, "no classification head"),
    ({"target": Target("mlm", 1, 99)}, "position 99"),
])
def test_what_cannot_be_weighed_is_said(loaded, change, message):
    with pytest.raises(ValueError, match=message):
        finish(neuron_shares(loaded, REQUEST, change.get("target", TARGET), change.get("steps", 8)))


def test_another_family_is_refused(family):
    with pytest.raises(ValueError, match="only through this explorer's own encoder"):
        finish(neuron_shares(load_model(family("DeBERTa")), TraceRequest("the [MASK]"), Target("mlm", 1, 2)))
