"""The step view's numbers are the Trace's own and follow from each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bert_core.measures.head_steps import head_steps
from bert_core.trace import run_batch


@pytest.mark.parametrize("attention", ["bidirectional", "causal"])
@pytest.mark.parametrize(("layer", "head", "query"), [(0, 0, 0), (1, 4, 6), (2, 3, 11)])
def test_each_step_follows_from_the_one_before(small, pair_request, attention, layer, head, query):
    trace = run_batch(small, [replace(pair_request, attention=attention)])[0]
    steps = head_steps(trace, small, layer, head, query)
    assert np.allclose(steps.scores, steps.dots / np.sqrt(7), atol=1e-12)
    assert steps.blocked.tolist() == [attention == "causal" and k > query for k in range(len(trace))]
    exps = np.where(steps.blocked, 0, np.exp(steps.scores))
    assert np.allclose(steps.weights, exps / exps.sum(), atol=1e-12)
    assert np.allclose(steps.context, steps.weights @ steps.values, atol=1e-12)
    total = steps.projected + steps.residual
    name = small.model.names.of_layer(layer, "attention_norm")
    weight, bias = (small.model.weights[f"{name}.{part}"].numpy() for part in ("weight", "bias"))
    normed = (total - total.mean()) / np.sqrt(total.var() + small.config.layer_norm_eps) * weight + bias
    assert np.allclose(steps.output, normed, atol=1e-5)  # the projection is recomputed in float32


def test_what_the_trace_has_is_taken_from_it(small, pair_request):
    trace = run_batch(small, [pair_request])[0]
    steps = head_steps(trace, small, 1, 2, 5)
    assert np.array_equal(steps.scores, trace.attention_scores[1, 2, 5])
    assert np.array_equal(steps.weights, trace.attention_probs[1, 2, 5])
    assert np.array_equal(steps.keys, trace.key[1, 2])
    assert np.array_equal(steps.context, trace.context[1, 5, 14:21])
    assert np.array_equal(steps.output, trace.attention_output[1, 5])
    assert steps.contribution_norms[2] == pytest.approx(np.linalg.norm(steps.contribution))


@pytest.mark.parametrize(("place", "message"), [
    ((3, 0, 0), "layer 3"), ((0, 5, 0), "head 5"), ((0, 0, 99), "position 99"),
])
def test_a_place_that_is_not_there_says_so(small, pair_request, place, message):
    trace = run_batch(small, [pair_request])[0]
    with pytest.raises(ValueError, match=message):
        head_steps(trace, small, *place)
