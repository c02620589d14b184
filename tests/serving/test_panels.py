"""Our own kernel: F.linear's numbers for every number of rows, and oneDNN's where it can't be had."""

from __future__ import annotations

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from bert_core import kernels, panels
from bert_core.load import load_model
from bert_core.model import activate
from bert_core.trace import TraceRequest, run_batch

needs_panels = pytest.mark.xfail(not panels.available(), reason="no GCC, Linux or AVX2 here", strict=True)

ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 19, 511, 513, 1030)


@pytest.fixture
def anew():
    """What a test finds out about the kernel is forgotten after it."""
    caches = (panels._library, kernels.own_kernel_worth_it)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.fixture(params=["-march=native", "-march=haswell"])
def kernel(request, anew, monkeypatch):
    """Compiled for this processor, and for one that has AVX2 alone."""
    monkeypatch.setattr(panels, "_FLAGS", tuple(request.param if flag == "-march=native" else flag
                                                for flag in panels._FLAGS))
    assert panels.available()
    return panels


@needs_panels
@pytest.mark.parametrize(("outputs", "inputs"), [(1, 1), (47, 127), (48, 128), (49, 129), (110, 300)])
def test_a_product_is_that_of_float64_within_rounding(kernel, outputs, inputs):
    weight, bias = torch.randn(outputs, inputs), torch.randn(outputs)
    fast = kernel.pack(weight, bias)
    for rows in ROWS:
        x = torch.randn(rows, inputs)
        want = F.linear(x.double(), weight.double(), bias.double())
        torch.testing.assert_close(fast(x, None).double(), want, atol=3e-6 * inputs ** 0.5, rtol=1e-5)


@needs_panels
def test_nothing_is_written_beside_the_outputs(kernel):
    fast = kernel.pack(torch.randn(50, 20), torch.randn(50))
    room = torch.full((9, 50), 7.0)
    kernel._library().product(torch.randn(7, 20).data_ptr(), fast.panels.data_ptr(), fast.bias.data_ptr(),
                              room[1:].data_ptr(), 7, 20, 50, 2)
    assert (room[[0, 8]] == 7).all()
    assert not (room[1:8] == 7).any()


@needs_panels
@pytest.mark.parametrize("activation", [None, "gelu", "gelu_new", "relu", "tanh"])
@pytest.mark.parametrize("shape", [(0, 15), (15,), (2, 3, 15)])
def test_shapes_and_activations_are_those_of_f_linear(activation, shape):
    x, weight = torch.randn(shape), torch.randn(23, 15)
    for bias in (None, torch.randn(23)):
        want = F.linear(x, weight, bias)
        want = want if activation is None else activate(want, activation)
        torch.testing.assert_close(panels.pack(weight, bias)(x, activation), want, atol=1e-5, rtol=1e-5)


@needs_panels
def test_what_lies_apart_in_memory_is_read_where_it_lies():
    x, weight = torch.randn(15, 2, 7), torch.randn(23, 15)
    fast = panels.pack(weight, None)
    torch.testing.assert_close(fast(x.permute(1, 2, 0), None), F.linear(x.permute(1, 2, 0), weight))
    torch.testing.assert_close(fast(x.permute(2, 1, 0)[:, 0], None), F.linear(x.permute(2, 1, 0)[:, 0], weight))


@needs_panels
def test_a_row_has_the_same_bits_whatever_stands_beside_it():
    fast, x = panels.pack(torch.randn(70, 300), torch.randn(70)), torch.randn(40, 300)
    together = fast(x, "gelu")
    assert all(torch.equal(fast(x[start:start + rows], "gelu"), together[start:start + rows])
               for rows in (1, 3, 8, 11) for start in (0, 5, 29))


@needs_panels
def test_many_threads_at_once_get_each_their_own():
    fast = panels.pack(torch.randn(500, 300), torch.randn(500))
    inputs = [torch.randn(1 + i % 20, 300) for i in range(60)]
    alone = [fast(x, None) for x in inputs]
    with ThreadPoolExecutor(8) as visitors:
        together = list(visitors.map(lambda x: fast(x, None), inputs))
    assert all(map(torch.equal, together, alone))


@needs_panels
def test_the_matrix_comes_back_bit_for_bit():
    for outputs in (1, 48, 110):
        weight = torch.randn(outputs, 33)
        fast = panels.pack(weight.t().contiguous().t(), None)
        assert torch.equal(fast.matrix(), weight)
        assert fast.outputs == outputs
        start, size = fast.span()
        assert (start, size) == (fast.panels.data_ptr(), fast.panels.numel() * 4)


@needs_panels
@pytest.mark.parametrize("x", [torch.zeros(3, 14), torch.zeros(3, 15, dtype=torch.float64),
                               torch.zeros(3, 15, device="meta")])
def test_what_does_not_fit_is_refused(x):
    with pytest.raises(ValueError, match=r"must be float32 and \(\.\.\., 15\)"):
        panels.pack(torch.randn(23, 15), None)(x, None)


@needs_panels
@pytest.mark.parametrize("default", [torch.bfloat16, torch.float64])
def test_torchs_own_type_may_change_meanwhile(anew, default):
    """transformers sets it for all threads while it loads a model that is stored in another."""
    x, weight = torch.randn(9, 300), torch.randn(70, 300)
    want = F.linear(x, weight)
    torch.set_default_dtype(default)
    try:
        assert kernels.own_kernel_worth_it() in (True, False)  # and no error
        fast = panels.pack(weight, None)(x, None)
    finally:
        torch.set_default_dtype(torch.float32)
    torch.testing.assert_close(fast, want, atol=1e-4, rtol=1e-4)


@needs_panels
def test_the_start_up_test_reaches_the_second_piece_of_inputs(anew, monkeypatch, tmp_path):
    source = tmp_path / "panels.c"
    source.write_text(panels._SOURCE.read_text().replace("i ? 0 : bias", "bias"))
    monkeypatch.setattr(panels, "_SOURCE", source)
    monkeypatch.setattr(kernels, "ratio_of_best", lambda *_: 0.5)
    assert panels.available()
    assert not kernels.own_kernel_worth_it()


@needs_panels
def test_a_model_in_panels_reads_as_the_plain_one(tiny_bert, monkeypatch):
    monkeypatch.setattr(kernels, "own_kernel_worth_it", lambda: True)
    monkeypatch.setattr(kernels, "rows_worth_it", lambda *size: 2**31)
    loaded = load_model(tiny_bert)
    fast = kernels.packed(loaded.model)
    assert {type(linear) for linear in fast.fast_linear.values()} == {panels.PanelLinear}
    request = TraceRequest(text="the [MASK] barked all night", all_logits=True)
    plain, quick = run_batch(loaded, [request])[0], run_batch(replace(loaded, model=fast), [request])[0]
    for name in ("mlm_logits", "hidden_states", "attention_probs", "pooled_output", "nsp_logits"):
        np.testing.assert_allclose(quick.arrays[name], plain.arrays[name], atol=2e-5, err_msg=name)


def failing(*_args, **_kwargs):
    raise subprocess.CalledProcessError(1, "cc")


@pytest.mark.parametrize("what", ["no compiler", "it fails", "another system", "switched off", "an OpenMP of its own"])
def test_without_the_kernel_onednn_s_serves(anew, monkeypatch, what):
    {"no compiler": lambda: monkeypatch.setattr(shutil, "which", lambda _: None),
     "it fails": lambda: monkeypatch.setattr(subprocess, "run", failing),
     "another system": lambda: monkeypatch.setattr(panels.sys, "platform", "win32"),
     "switched off": lambda: monkeypatch.setenv("BOTH_WAYS_COMPILE", "OFF"),
     "an OpenMP of its own": lambda: monkeypatch.setattr(panels, "_pools", iter([{"a"}, {"a", "b"}]).__next__)}[what]()
    assert not panels.available()
    assert not kernels.own_kernel_worth_it()


@needs_panels
def test_a_compiler_that_makes_something_else_is_refused(anew, monkeypatch, tmp_path):
    source = tmp_path / "panels.c"
    source.write_text("int nothing;")
    monkeypatch.setattr(panels, "_SOURCE", source)
    assert not panels.available()


@needs_panels
def test_a_compiler_that_is_not_gcc_is_refused(anew, monkeypatch):
    monkeypatch.setattr(panels, "_FLAGS", (*panels._FLAGS, "-D__clang__"))
    assert not panels.available()


@needs_panels
def test_a_processor_without_avx2_is_refused(anew, monkeypatch):
    monkeypatch.setattr(panels, "_FLAGS", ("-O3", "-march=x86-64", "-fopenmp", "-shared", "-fPIC"))
    assert not panels.available()


@needs_panels
@pytest.mark.parametrize(("ratios", "chosen"), [([1.2, 1.01, 0.98], True), ([1.2, 1.1, 1.01], False)])
def test_the_faster_of_the_two_is_taken(anew, monkeypatch, ratios, chosen):
    monkeypatch.setattr(kernels, "ratio_of_best", lambda *_: ratios.pop(0))
    assert kernels.own_kernel_worth_it() is chosen
    assert isinstance(kernels.pack_linear(torch.randn(5, 4), None), panels.PanelLinear) is chosen
    assert not isinstance(kernels.pack_linear(torch.randn(5, 4).bfloat16(), None), panels.PanelLinear)


@needs_panels
def test_a_kernel_that_is_wrong_is_not_taken(anew, monkeypatch):
    pack = panels.pack
    monkeypatch.setattr(kernels, "ratio_of_best", lambda *_: 0.5)
    monkeypatch.setattr(panels, "pack", lambda weight, bias: pack(weight * 1.01, bias))
    assert not kernels.own_kernel_worth_it()


@needs_panels
def test_compiling_leaves_no_file(anew, monkeypatch, tmp_path):
    monkeypatch.setattr(panels.tempfile, "tempdir", str(tmp_path))
    assert panels.available()
    assert not list(tmp_path.iterdir())
