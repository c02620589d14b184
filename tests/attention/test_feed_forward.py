"""The neurons' numbers are the Trace's own and follow from each other, for each model that has our own layers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bert_core import model as bert
from bert_core.load import load_model
from bert_core.measures.feed_forward import feed_forward
from bert_core.trace import MissingPart, TraceRequest, run_batch
from tests.adapters.families import FAMILIES


@pytest.mark.parametrize(("layer", "token"), [(0, 0), (1, 6), (2, 11)])
def test_each_number_follows_from_the_one_before(small, pair_request, layer, token):
    steps = feed_forward(run_batch(small, [pair_request])[0], small, layer, token)
    assert np.allclose(steps.sums, steps.weights_in @ steps.attended + steps.biases, atol=1e-12)
    bent = bert.activate(torch.from_numpy(steps.sums), small.config.hidden_act).numpy()
    assert np.allclose(bent, steps.activations[:, token], atol=1e-12)
    addends = steps.activations[:, token, None] * steps.weights_out  # (N, D)
    assert np.allclose(steps.lengths, np.linalg.norm(addends, axis=-1), atol=1e-12)
    total = steps.projected + steps.attended
    name = small.model.names.of_layer(layer, "output_norm")
    weight, bias = (small.model.weights[f"{name}.{part}"].numpy() for part in ("weight", "bias"))
    normed = (total - total.mean()) / np.sqrt(total.var() + small.config.layer_norm_eps) * weight + bias
    assert np.allclose(steps.output, normed, atol=1e-12)


def test_what_the_trace_has_is_taken_from_it(small, pair_request):
    trace = run_batch(small, [pair_request])[0]
    steps = feed_forward(trace, small, 1, 5, count=3)
    assert np.array_equal(steps.attended, trace.attention_output[1, 5])
    assert np.array_equal(steps.intermediate, trace.intermediate[1, 5])
    assert np.array_equal(steps.activations, trace.intermediate[1][:, steps.neurons].T)
    assert np.array_equal(steps.output, trace.hidden_states[2, 5])


def test_the_neurons_that_add_most_come_first(small, pair_request):
    width = small.config.intermediate_size
    every = feed_forward(run_batch(small, [pair_request])[0], small, 2, 4, count=width + 5)
    assert sorted(every.neurons) == list(range(width))
    assert (np.diff(every.lengths) <= 0).all()
    addends = every.activations[:, 4, None] * every.weights_out
    bias = small.model.weights[f"{small.model.names.of_layer(2, 'output_dense')}.bias"].numpy()
    assert np.allclose(addends.sum(axis=0) + bias, every.projected, atol=1e-12)
    few = feed_forward(run_batch(small, [pair_request])[0], small, 2, 4, count=3)
    assert np.array_equal(few.neurons, every.neurons[:3])


@pytest.mark.parametrize("name", [one.name for one in FAMILIES if one.ours])
def test_another_family_s_layer_is_followed_too(family, name):
    loaded = load_model(family(name))
    trace = run_batch(loaded, [TraceRequest("The dog barked.")])[0]
    layer = trace.config.num_hidden_layers - 1
    steps = feed_forward(trace, loaded, layer, 2)
    bent = bert.activate(torch.from_numpy(steps.sums), loaded.config.hidden_act).numpy()
    assert np.allclose(bent, trace.intermediate[layer, 2, steps.neurons], atol=1e-5)


@pytest.mark.parametrize(("place", "message"), [((3, 0), "layer 3"), ((0, 99), "position 99")])
def test_a_place_that_is_not_there_says_so(small, pair_request, place, message):
    trace = run_batch(small, [pair_request])[0]
    with pytest.raises(ValueError, match=message):
        feed_forward(trace, small, *place)


def test_an_array_that_was_not_asked_for_says_so(small, pair_request):
    trace = run_batch(small, [TraceRequest(pair_request.text, parts=("attention_output", "hidden_states"))])[0]
    with pytest.raises(MissingPart, match="intermediate"):
        feed_forward(trace, small, 0, 0)
