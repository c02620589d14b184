"""Attribution: completeness, direct recomputation, and what user errors say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from bert_core import model as bert
from bert_core.measures.attribution import finish, gradient_x_input, integrated_gradients, last_hidden, leave_one_out
from bert_core.measures.target import Target, read_target
from bert_core.on_demand import OnDemand
from bert_core.trace import TraceRequest, prepare, run_batch, to_inputs

REQUEST = TraceRequest("The dog barkeds all [MASK].", "We walked home.")
MASK = 6  # [CLS] the dog barked ##s all [MASK] . [SEP]


@pytest.mark.parametrize("scale", ["logit", "probability", "log_probability"])
def test_integrated_gradients_are_complete_for_a_masked_word(small, scale):
    found = finish(integrated_gradients(small, REQUEST, Target("mlm", 11, MASK, scale), steps=128))
    assert found.gap < 0.01
    assert found.values.sum() == pytest.approx(found.output - found.baseline, rel=0.01)
    assert found.output == pytest.approx(read_target(small, REQUEST, Target("mlm", 11, MASK, scale)), abs=1e-9)


def test_integrated_gradients_are_complete_for_a_classifier_and_nsp(small, small_classifier):
    assert finish(integrated_gradients(small_classifier, REQUEST, Target("classification", 2), steps=128)).gap < 0.01
    assert finish(integrated_gradients(small, REQUEST, Target("nsp", 0), steps=256)).gap < 0.01


def test_specials_and_masks_get_nothing_from_the_path(small):
    found = finish(integrated_gradients(small, REQUEST, Target("mlm", 11, MASK), steps=8))
    encoding = prepare(small, REQUEST).encoding
    still = [p for p in range(len(encoding)) if encoding.special[p] or p == MASK]
    assert np.all(found.values[still] == 0.0)
    assert np.all(found.values[[p for p in encoding.content if p != MASK]] != 0.0)


def test_a_token_embedding_that_is_off_has_no_path(small):
    """Nor has the [MASK] that it would have come from."""
    off = replace(REQUEST, embeddings_off=("token",))
    assert np.all(finish(integrated_gradients(small, off, Target("mlm", 11, MASK), steps=8)).values == 0.0)


def test_where_nothing_changes_on_the_path_no_share_of_it_is_missed(small, small_classifier):
    """One word that is hidden: the path begins where it ends, and rounding is no hundred percent."""
    word = replace(REQUEST, text="dog", pair=None, masked=(1,))
    for loaded, request, target in ((small, word, Target("mlm", 11, 1)),
                                    (small_classifier, TraceRequest(""), Target("classification", 0))):
        found = finish(integrated_gradients(loaded, request, target))
        assert found.gap is None
        assert found.output == pytest.approx(found.baseline, abs=1e-6)
        assert not found.values.any()


def test_accounts_that_take_turns_share_the_plain_matrices(small):
    """A whole class explains at the same time; a copy of the weights for each would fill the memory."""
    made: list[str] = []
    entries = {name: lambda n=name, t=tensor: made.append(n) or t for name, tensor in small.model.weights.items()}
    loaded = replace(small, model=replace(small.model, weights=OnDemand(entries)))
    runs = [integrated_gradients(loaded, REQUEST, Target("mlm", 11, MASK), steps=32) for _ in range(3)]
    for run in runs:
        next(run)
    layers = [name for name in small.model.weights if ".layer." in name]
    assert sorted(name for name in made if ".layer." in name) == sorted(layers)
    alone = finish(integrated_gradients(small, REQUEST, Target("mlm", 11, MASK), steps=32))
    for run in runs:
        np.testing.assert_array_equal(finish(run).values, alone.values)


def test_the_gradient_is_that_of_finite_differences(small):
    target = Target("mlm", 11, MASK)
    row = prepare(small, REQUEST)
    inputs = to_inputs(small, [row])
    parts = bert.embed(small.model, inputs)

    def score(factor: float, token: int) -> float:
        sums = parts.sum.clone()
        sums[0, token] += (factor - 1) * parts.token[0, token]
        return bert.mlm_logits(small.model, last_hidden(small.model, sums, inputs, MASK))[0, 0, target.index].item()

    found = finish(gradient_x_input(small, REQUEST, target))
    for token in (0, 3, MASK, len(row.encoding) - 1):
        assert found.values[token] == pytest.approx((score(1 + 1e-5, token) - score(1 - 1e-5, token)) / 2e-5, rel=1e-4)


def test_the_path_from_the_embedding_sum_ends_where_the_run_does(small):
    request = replace(REQUEST, window=4, heads_off=((1, 2),), attention="causal", feed_forward_off=(0,))
    inputs = to_inputs(small, [prepare(small, request)])
    run = run_batch(small, [request])[0]
    with torch.no_grad():
        sums = bert.embed(small.model, inputs).sum
        hidden = torch.cat([last_hidden(small.model, sums, inputs, place) for place in range(len(run))], dim=1)[0]
    assert np.abs(hidden.numpy() - run.hidden_states[-1]).max() < 1e-12


def test_leave_one_out_is_a_direct_recomputation(small_classifier):
    target = Target("classification", 1, scale="probability")
    found = finish(leave_one_out(small_classifier, REQUEST, target))
    encoding = prepare(small_classifier, REQUEST).encoding
    for place in range(len(encoding)):
        if encoding.special[place] or place == MASK:
            assert found.values[place] == 0.0
            continue
        logits = run_batch(small_classifier, [replace(REQUEST, masked=(place,))])[0].logits
        without = float(np.exp(logits[1]) / np.exp(logits).sum())
        assert found.values[place] == pytest.approx(found.output - without, abs=1e-12)


@pytest.mark.parametrize(("target", "message"), [
    (lambda: Target("smell", 0), "target kind 'smell'"),
    (lambda: Target("mlm", 0, 0, "odds"), "target scale 'odds'"),
])
def test_a_wrong_target_says_so(target, message):
    with pytest.raises(ValueError, match=message):
        target()


@pytest.mark.parametrize(("target", "message"), [
    (Target("classification", 0), "has no classification head"),
    (Target("mlm", 10**6, MASK), "class 1000000 is outside"),
    (Target("mlm", 0, 99), "position 99 is outside"),
])
def test_a_target_that_the_model_lacks_says_so(small, target, message):
    for method in (integrated_gradients, gradient_x_input, leave_one_out):
        with pytest.raises(ValueError, match=message):
            finish(method(small, REQUEST, target))


def test_steps_are_bounded(small):
    with pytest.raises(ValueError, match="steps 1000"):
        finish(integrated_gradients(small, REQUEST, Target("nsp", 0), steps=1000))
