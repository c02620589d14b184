"""The layers above a vector give what the whole run gives, at the one token that is read."""

from __future__ import annotations

import pytest
import torch

from bert_core import model as bert
from bert_core.load import load_model
from bert_core.measures.layers_above import layers_above
from bert_core.request import prepare, to_inputs
from bert_core.trace import TraceRequest

CHANGES = {
    "as it is": {}, "causal": {"attention": "causal"}, "window": {"window": 2},
    "parts off": {"heads_off": ((1, 0), (0, 1)), "feed_forward_off": (1,), "neurons": ((1, 3, 0.5), (0, 2, -1.0))},
}


@pytest.mark.parametrize("name", CHANGES)
def test_from_every_layer_to_every_token_it_is_the_whole_run(tiny_bert, name):
    """Two variants of a pair: what the request hides, blocks and switches off holds for both."""
    loaded = load_model(tiny_bert, torch.float64)
    inputs = to_inputs(loaded, [prepare(loaded, TraceRequest("the dog [MASK] all", "it barked", **CHANGES[name]))])
    states = []
    with torch.no_grad():
        embeddings, last = bert.encode(loaded.model, inputs, lambda _, done: states.append(done.hidden))
        for first, hidden in enumerate([embeddings.output, *states]):
            variants = torch.cat([hidden, 0.5 * hidden])
            for place in range(last.shape[1]):
                found = layers_above(loaded.model, variants, inputs, first, place)
                assert found.shape == (2, 1, last.shape[2])
                torch.testing.assert_close(found[0, 0], last[0, place], rtol=0, atol=1e-12)
                assert first == len(states) or not torch.allclose(found[1], 0.5 * found[0])
