"""Packed linears: the same numbers as F.linear, and a way back where they can't be had."""

import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from bert_core import kernels, on_demand
from bert_core.load import load_model
from bert_core.model import projections
from bert_core.on_demand import Halved, halved
from bert_core.trace import TraceRequest, run_batch

needs_onednn = pytest.mark.xfail(not torch.backends.mkldnn.is_available(), reason="no oneDNN here", strict=True)


@needs_onednn
@pytest.mark.parametrize("activation", [None, "gelu", "gelu_new", "relu", "tanh"])
@pytest.mark.parametrize("shape", [(7, 15), (2, 5, 15)])
def test_a_packed_linear_equals_f_linear(activation, shape):
    from bert_core.model import activate

    torch.manual_seed(1)
    x, weight, bias = torch.randn(shape), torch.randn(23, 15), torch.randn(23)
    want = F.linear(x, weight, bias)
    want = want if activation is None else activate(want, activation)
    torch.testing.assert_close(kernels.pack_linear(weight, bias)(x, activation), want, atol=1e-5, rtol=1e-5)


@needs_onednn
def test_every_linear_of_a_forward_is_packed(tiny_bert, monkeypatch):
    monkeypatch.setattr(kernels, "rows_worth_it", lambda *size: 2**31)
    loaded = load_model(tiny_bert)
    fast = kernels.packed(loaded.model)
    linears = {n.removesuffix(".weight") for n, t in fast.weights.items()
               if n.endswith(".weight") and t.ndim == 2 and "embeddings" not in n and "seq_relationship" not in n}
    packed = {name for key in fast.fast_linear for name in key.split("+")}
    assert linears == packed - {fast.names.word}
    request = TraceRequest(text="the [MASK] barked all night", all_logits=True)
    plain, quick = run_batch(loaded, [request])[0], run_batch(replace(loaded, model=fast), [request])[0]
    for name in ("mlm_logits", "hidden_states", "attention_probs", "pooled_output"):
        np.testing.assert_allclose(quick.arrays[name], plain.arrays[name], atol=2e-5, err_msg=name)


@needs_onednn
@pytest.mark.parametrize("most", [2, 2**31])
def test_the_three_projections_as_one_product_are_the_three(tiny_bert, monkeypatch, most):
    monkeypatch.setattr(kernels, "rows_worth_it", lambda *size: most)
    model = load_model(tiny_bert).model
    hidden = torch.randn(2, 3, model.config.hidden_size)
    for got, want in zip(projections(kernels.packed(model), hidden, 1), projections(model, hidden, 1), strict=True):
        torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)


@needs_onednn
def test_packed_matrices_are_let_go_and_read_back_bit_for_bit(tiny_bert, monkeypatch):
    monkeypatch.setattr(kernels, "rows_worth_it", lambda *size: 2**31)
    model = load_model(tiny_bert).model
    before = {name: tensor.clone() for name, tensor in model.weights.items()}
    matrices = [weakref.ref(model.weights[f"{name}.weight"])
                for names in kernels.product_parts(model).values() for name in names]
    fast = kernels.packed(model)
    del model
    assert list(fast.weights) == list(before)
    assert all(torch.equal(fast.weights[name], tensor) for name, tensor in before.items())
    assert [ref() for ref in matrices] == [None] * len(matrices)


def in_float16(model):
    """The model with a word table as the shipped files hold it."""
    name = f"{model.names.word}.weight"
    return replace(model, weights={**model.weights, name: model.weights[name].half().float()})


@needs_onednn
def test_a_word_table_of_float16_numbers_takes_half_the_memory_and_is_the_same(tiny_bert, monkeypatch):
    monkeypatch.setattr(kernels, "rows_worth_it", lambda *size: 2**31)
    loaded = load_model(tiny_bert)
    model = in_float16(loaded.model)
    name = f"{model.names.word}.weight"
    before, plain = model.weights[name].clone(), weakref.ref(model.weights[name])
    request = TraceRequest(text="the [MASK] barked all night", all_logits=True)
    slow = run_batch(replace(loaded, model=model), [request])[0]
    fast = kernels.packed(model)
    del model
    assert plain() is None
    assert torch.equal(fast.weights[name], before)
    quick = run_batch(replace(loaded, model=fast), [request])[0]
    np.testing.assert_array_equal(quick.arrays["token_embeddings"], slow.arrays["token_embeddings"])
    np.testing.assert_allclose(quick.mlm_logits, slow.mlm_logits, atol=2e-5)


def test_whoever_wants_plain_weights_at_the_same_time_has_the_same_and_then_they_go():
    made = []

    def make():
        made.append(1)
        time.sleep(0.02)  # so that all of them ask before the first is done
        return torch.ones(2, 2)

    weights = on_demand.OnDemand({"made": make, "plain": torch.zeros(3)})
    with ThreadPoolExecutor(8) as visitors:
        found = list(visitors.map(lambda _: weights.whole(), range(8)))
    assert len(made) == 1
    assert all(one is found[0] for one in found)
    assert list(found[0]) == ["made", "plain"]
    tensor = weakref.ref(found[0]["made"])
    del found
    assert tensor() is None
    assert torch.equal(weights.whole()["made"], torch.ones(2, 2))
    assert len(made) == 2


def test_equal_tables_are_one():
    """Those of a task and its base, which are read one after the other."""
    table = torch.randn(7, 3).half().float()
    first, second, other = halved(table), halved(table.clone()), halved(table + 1)
    assert first is second is not other
    assert halved(table.double()) is None
    assert halved(table.bfloat16()) is None


def test_equal_tables_that_are_read_at_the_same_moment_are_one(monkeypatch):
    class Slow(Halved):
        def __init__(self, half):
            time.sleep(0.02)  # so that all of them are looked for before the first is kept
            super().__init__(half)

    monkeypatch.setattr(on_demand, "Halved", Slow)
    table = torch.randn(5, 3).half().float()
    with ThreadPoolExecutor(8) as readers:
        found = list(readers.map(lambda _: halved(table.clone()), range(8)))
    assert len(set(found)) == 1


@needs_onednn
@pytest.mark.parametrize(("decoder", "stays"), [(0, True), (16, True), (2**31, False)])
def test_a_table_that_is_multiplied_by_stays_as_it_is(tiny_bert, monkeypatch, decoder, stays):
    monkeypatch.setattr(kernels, "rows_worth_it", lambda dtype, out, width: decoder if out == 117 else 2**31)
    model = in_float16(load_model(tiny_bert).model)
    name = f"{model.names.word}.weight"
    assert (kernels.packed(model).weights[name] is model.weights[name]) is stays


@needs_onednn
def test_a_table_that_float16_does_not_hold_stays_as_it_is(tiny_bert, monkeypatch):
    monkeypatch.setattr(kernels, "rows_worth_it", lambda *size: 2**31)
    model = load_model(tiny_bert).model
    name = f"{model.names.word}.weight"
    assert kernels.packed(model).weights[name] is model.weights[name]


@needs_onednn
def test_a_layer_that_all_share_is_packed_once_and_gives_the_same_numbers(family, monkeypatch):
    loaded = load_model(family("ALBERT"))
    shapes, pack = [], kernels.pack_linear
    monkeypatch.setattr(kernels, "rows_worth_it", lambda *size: 2**31)
    monkeypatch.setattr(kernels, "usable", lambda dtype: True)
    monkeypatch.setattr(kernels, "pack_linear", lambda w, bias: shapes.append(tuple(w.shape)) or pack(w, bias))
    fast = kernels.packed(loaded.model)
    vocabulary = loaded.config.vocab_size
    assert sorted(shapes) == sorted([(45, 15), (15, 15), (23, 15), (15, 23), (7, 15), (15, 7), (vocabulary, 7)])
    request = TraceRequest(text="the dog", all_logits=True)
    plain, quick = run_batch(loaded, [request])[0], run_batch(replace(loaded, model=fast), [request])[0]
    for name in ("mlm_logits", "hidden_states", "attention_probs"):
        np.testing.assert_allclose(quick.arrays[name], plain.arrays[name], atol=2e-5, err_msg=name)


@needs_onednn
def test_where_long_inputs_take_the_plain_way_its_matrices_stay(tiny_bert, monkeypatch):
    monkeypatch.setattr(kernels, "rows_worth_it", lambda *size: 16)
    model = load_model(tiny_bert).model
    assert kernels.packed(model).weights is model.weights


def test_beyond_the_rows_where_it_pays_f_linear_stays():
    calls = []
    fast = kernels.Guarded(lambda x, a: calls.append(len(x)) or x, lambda x, a: torch.relu(x), 4)
    assert torch.equal(fast(torch.ones(5, 3), "relu"), torch.ones(5, 3))
    fast(torch.ones(4, 3), None)
    assert calls == [4]


@needs_onednn
def test_where_packing_never_pays_the_model_stays_as_it_is(tiny_bert, monkeypatch):
    monkeypatch.setattr(kernels, "rows_worth_it", lambda *size: 0)
    model = load_model(tiny_bert).model
    assert kernels.packed(model) is model


@needs_onednn
def test_the_self_test_gives_a_number_of_rows():
    assert kernels.rows_worth_it(torch.float32, 23, 15) in (0, 16, 64, 2**31)


def test_a_wrong_kernel_is_not_used(tiny_bert, monkeypatch):
    monkeypatch.setattr(kernels, "pack_linear", lambda w, b: lambda x, a: F.linear(x, w, b) * 1.01)
    model = load_model(tiny_bert).model
    assert kernels.packed(model) is model


def test_float64_is_left_alone(tiny_bert):
    model = load_model(tiny_bert, torch.float64).model
    assert kernels.packed(model) is model


@pytest.mark.parametrize(("ratios", "most"), [
    ([1.5, 0.5, 0.5, 1.2, 1.2, 0.9], 2**31),  # a burst of another process, twice
    ([0.5, 1.5, 1.4, 1.3], 16),
    ([0.97, 0.96, 1.0], 0),
])
def test_a_size_is_given_up_after_three_tries_only(monkeypatch, ratios, most):
    left = iter(ratios)
    monkeypatch.setattr(kernels, "ratio_of_best", lambda *_: next(left))
    assert kernels.rows_worth_it.__wrapped__(torch.float32, 29, 15) == most
    assert next(left, None) is None
