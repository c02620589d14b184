"""A packed model's gradients: those of the plain one, made of what is shared while anybody has it."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
import torch

from bert_core import gradients, kernels, onednn, panels
from bert_core import model as bert
from bert_core.load import load_model
from bert_core.measures.attribution import finish, gradient_accounts, gradient_x_input, integrated_gradients
from bert_core.measures.knowledge_neurons import neuron_shares
from bert_core.measures.target import Target
from bert_core.trace import TraceRequest
from tests.serving.test_kernels import needs_onednn
from tests.serving.test_panels import needs_panels

REQUEST = TraceRequest("the dog [MASK] all night", "it barked")
PLACE, PIECE = 3, 11


@pytest.fixture
def pair(tiny_bert, monkeypatch):
    """The model as it is loaded, and packed."""
    monkeypatch.setattr(kernels, "rows_worth_it", lambda *size: 2**31)
    plain = load_model(tiny_bert)
    return plain, replace(plain, model=kernels.packed(load_model(tiny_bert).model))


@needs_onednn
@pytest.mark.parametrize("kernel", [onednn, pytest.param(panels, marks=needs_panels)])
@pytest.mark.parametrize("activation", [None, "gelu", "gelu_new", "tanh"])
def test_a_product_there_and_back_is_the_plain_one(activation, kernel, monkeypatch):
    monkeypatch.setattr(gradients, "pack_linear", kernel.pack)
    torch.manual_seed(2)
    x, weight, bias = torch.randn(2, 5, 15), torch.randn(23, 15), torch.randn(23)
    for matrix in (None, lambda: weight):
        fast = gradients.Differentiable(kernel.pack(weight, bias), matrix)
        found, wanted = (one.clone().requires_grad_() for one in (x, x))
        out, want = fast(found, activation), torch.nn.functional.linear(wanted, weight, bias)
        want = want if activation is None else bert.activate(want, activation)
        for given, one in ((out, found), (want, wanted)):
            (given.cos().transpose(0, 1) * torch.arange(23.0)).sum().backward()
            assert one.grad.abs().max() > 1
        torch.testing.assert_close(out, want, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(found.grad, wanted.grad, atol=2e-4, rtol=1e-4)
        with torch.no_grad():
            torch.testing.assert_close(fast(found, activation), want, atol=1e-5, rtol=1e-5)


@needs_onednn
@pytest.mark.parametrize("target", [Target("mlm", PIECE, PLACE), Target("mlm", PIECE, PLACE, "probability"),
                                    Target("nsp", 0), Target("nsp", 1, scale="log_probability")])
def test_a_packed_model_is_explained_as_the_plain_one(pair, target):
    plain, packed = (finish(gradient_accounts(loaded, REQUEST, target)) for loaded in pair)
    for found, want in zip(packed, plain, strict=True):
        largest = np.abs(want.values).max()
        np.testing.assert_allclose(found.values, want.values, rtol=0, atol=2e-4 * largest)
        assert found.output == pytest.approx(want.output, abs=1e-4)
    assert packed[1].gap == pytest.approx(plain[1].gap, abs=1e-3)


@needs_onednn
def test_a_packed_model_s_neurons_are_those_of_the_plain_one(pair):
    plain, packed = (finish(neuron_shares(loaded, REQUEST, Target("mlm", PIECE, PLACE, "probability")))
                     for loaded in pair)
    np.testing.assert_allclose(packed.values, plain.values, rtol=0, atol=2e-4 * np.abs(plain.values).max())
    np.testing.assert_allclose(packed.without, plain.without, rtol=1e-4)


@needs_onednn
def test_what_gradients_take_is_made_once_for_all_at_the_same_time_and_gone_with_the_last(pair, monkeypatch):
    """A whole class explains at once; a second copy of the matrices for each would fill the memory."""
    _, packed = pair
    made: list[tuple[int, ...]] = []
    pack = gradients.pack_linear
    monkeypatch.setattr(gradients, "pack_linear", lambda weight, bias: made.append(weight.shape) or pack(weight, bias))
    runs = [integrated_gradients(packed, REQUEST, Target("mlm", PIECE, PLACE)) for _ in range(3)]
    for run in runs:
        next(run)
    each = len(packed.model.fast_linear) - 2  # all but the pooler and the vocabulary, which this target doesn't take
    assert len(made) == each
    for run in runs:
        finish(run)
    kept = weakref.ref(gradients.with_gradients(packed.model).fast_linear)
    del run, runs
    gc.collect()
    assert kept() is None
    finish(gradient_x_input(packed, REQUEST, Target("mlm", PIECE, PLACE)))
    assert len(made) == 2 * each
    made.clear()
    finish(gradient_accounts(packed, REQUEST, Target("mlm", PIECE, PLACE)))
    assert len(made) == each


@needs_onednn
@pytest.mark.parametrize("most", [0, 2])
def test_a_model_that_is_not_packed_for_any_number_of_rows_is_differentiated_as_it_is(tiny_bert, monkeypatch, most):
    monkeypatch.setattr(kernels, "rows_worth_it", lambda *size: most)
    model = kernels.packed(load_model(tiny_bert).model)
    found = gradients.with_gradients(model)
    assert not found.fast_linear
    assert all(isinstance(weight, torch.Tensor) for weight in dict(found.weights).values())

