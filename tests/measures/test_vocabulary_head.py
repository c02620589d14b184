"""The masked-LM head laid open: transformers' own numbers at every step, and the run's own answer at the end."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bert_core import TraceRequest, load_engine
from bert_core.load import load_model
from bert_core.measures.predictions import gap_distribution
from bert_core.measures.vocabulary_head import head_steps
from bert_core.trace import run_batch
from tests.adapters.families import FAMILIES
from tests.core.reference import open_reference

REQUEST = TraceRequest("the dog [MASK] all night", "it was [MASK]", masked=(2,))


@pytest.mark.parametrize("position", [2, 3])
def test_every_step_is_transformers_own(tiny_bert, position):
    loaded, theirs = load_model(tiny_bert, torch.float64), open_reference(tiny_bert)
    trace = run_batch(loaded, [REQUEST])[0]
    steps = head_steps(loaded, trace, position, (7, 3, 11))
    head = theirs.cls.predictions
    with torch.no_grad():
        dense = head.transform.dense(torch.tensor(trace.hidden_states[-1, position]))
        activated = head.transform.transform_act_fn(dense)
        transformed = head.transform.LayerNorm(activated)
        logits = head.decoder(transformed)
    for ours, expected in ((steps.dense, dense), (steps.activated, activated), (steps.transformed, transformed),
                           (steps.logits, logits[[7, 3, 11]]), (steps.traced, logits[[7, 3, 11]]),
                           (steps.vectors, head.decoder.weight[[7, 3, 11]].detach()),
                           (steps.softmax.probabilities, logits.softmax(-1)[[7, 3, 11]])):
        assert np.allclose(ours, expected.numpy(), atol=1e-12)
    assert np.allclose(steps.products.sum(axis=-1) + steps.biases, steps.logits, atol=1e-12)
    assert np.allclose(steps.products, steps.vectors * steps.transformed, atol=1e-15)


MASKED = [one.name for one in FAMILIES if one.ours and one.architecture.endswith("ForMaskedLM")]


@pytest.mark.parametrize("name", MASKED)
def test_another_family_s_head_gives_the_run_s_logits(family, name):
    loaded = load_model(family(name))
    trace = run_batch(loaded, [TraceRequest("the dog [MASK]")])[0]
    steps = head_steps(loaded, trace, int(trace.mlm_positions[0]), (1, 4))
    assert np.allclose(steps.logits, trace.mlm_logits[0, [1, 4]], atol=1e-5)


def test_the_shipped_model_s_probabilities_are_the_gap_s():
    engine = load_engine("twin-bert")
    trace = engine.run(TraceRequest("She poured the [MASK] into her cup."))
    ids = [engine.loaded().tokenizer.id_of(word) for word in ("tea", "milk", "stone")]
    steps = head_steps(engine.loaded(), trace, 4, ids)
    assert np.allclose(steps.logits, trace.mlm_logits[0, ids], atol=2e-5)
    assert np.allclose(steps.softmax.probabilities, gap_distribution(trace, 4)[ids], rtol=1e-12)
    assert steps.softmax.powers.max() <= 1


def test_a_place_that_was_not_masked_says_so(tiny_bert):
    loaded = load_model(tiny_bert)
    with pytest.raises(ValueError, match="position 1 was not masked"):
        head_steps(loaded, run_batch(loaded, [REQUEST])[0], 1, (0,))
