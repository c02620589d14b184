"""When a packed product is chosen: what is timed, what is refused, and what stays plain."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from bert_core import huge_pages, kernels, precision
from bert_core.load import load_model

needs_onednn = pytest.mark.xfail(not torch.backends.mkldnn.is_available(), reason="no oneDNN here", strict=True)


class Clock:
    """A clock that only calls of `takes` move on."""

    def __init__(self):
        self.now = 0.0

    def takes(self, *seconds):
        """A call that takes the next of these, and its last one from then on."""
        left = list(seconds)

        def call():
            self.now += left.pop(0) if len(left) > 1 else left[0]

        return call


def test_the_best_times_are_compared_and_the_warm_up_is_not_among_them(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(kernels.time, "perf_counter", lambda: clock.now)
    ours, peer = clock.takes(0.25, 9.0, 2.0, 7.0, 8.0), clock.takes(0.25, 4.0, 9.0, 6.0, 5.0)
    assert kernels.ratio_of_best(ours, peer) == 0.5  # 2 of 4 seconds: the quarter was the warm-up


def test_every_round_has_both_in_turn():
    called = []
    kernels.ratio_of_best(lambda: called.append("ours"), lambda: called.append("peer"), rounds=2)
    assert called == ["ours", "peer"] * 3


@needs_onednn
def test_the_self_test_is_of_the_first_outputs_in_the_models_arithmetic(monkeypatch):
    packed = []
    monkeypatch.setattr(kernels, "pack_linear", lambda w, b: packed.append((tuple(w.shape), w.dtype, b.dtype)))
    monkeypatch.setattr(kernels, "ratio_of_best", lambda *_: 2.0)
    assert kernels.rows_worth_it.__wrapped__(torch.bfloat16, 5000, 15) == 0
    assert set(packed) == {((4096, 15), torch.bfloat16, torch.bfloat16)}
    assert len(packed) == kernels._MOST_COPIES


@needs_onednn
def test_large_weights_are_copied_as_often_as_the_cache_asks(monkeypatch):
    packed = []
    monkeypatch.setattr(kernels, "pack_linear", lambda w, b: packed.append(w.data_ptr()))
    monkeypatch.setattr(kernels, "ratio_of_best", lambda *_: 2.0)
    kernels.rows_worth_it.__wrapped__(torch.float32, 2048, 2560)  # 20 MiB
    assert len(set(packed)) == 3


def test_operators_that_are_not_there_are_not_used(monkeypatch):
    def gone(*_):
        raise AttributeError("no such operator")

    monkeypatch.setattr(kernels, "pack_linear", gone)
    assert not kernels.usable(torch.float32)


@pytest.mark.parametrize("wrong", [None, "gelu"])
def test_one_wrong_product_is_enough_to_refuse_them(monkeypatch, wrong):
    def pack(weight, bias):
        def run(x, activation):
            out = F.linear(x, weight, bias)
            out = F.gelu(out) if activation == "gelu" else out
            return out + 0.01 * (activation == wrong)
        return run

    monkeypatch.setattr(kernels, "pack_linear", pack)
    assert not kernels.usable(torch.float32)


@needs_onednn
def test_a_packed_model_is_not_packed_again(tiny_bert, monkeypatch):
    monkeypatch.setattr(kernels, "rows_worth_it", lambda *size: 2**31)
    fast = kernels.packed(load_model(tiny_bert).model)
    assert fast.fast_linear
    assert kernels.packed(fast) is fast


@needs_onednn
def test_a_matrix_that_is_read_back_keeps_no_other_in_memory(tiny_bert, monkeypatch):
    monkeypatch.setattr(kernels, "rows_worth_it", lambda *size: 2**31)
    key = kernels.packed(load_model(tiny_bert).model).weights["bert.encoder.layer.0.attention.self.key.weight"]
    assert key.untyped_storage().nbytes() == 15 * 15 * 4  # not that of query, key and value


@needs_onednn
def test_rows_are_counted_over_the_whole_batch():
    plain, packed = [], []
    guarded = kernels.Guarded(lambda x, _: packed.append(x.shape), lambda x, _: plain.append(x.shape), 6)
    for shape in ((2, 3, 5), (7, 5), (2, 4, 5), (6, 5)):
        guarded(torch.ones(shape), None)
    assert (packed, plain) == ([(2, 3, 5), (6, 5)], [(7, 5), (2, 4, 5)])


@needs_onednn
@pytest.mark.parametrize(("linears", "decoder"), [(16, 0), (0, 16), (2, 2**31)])
def test_encoder_and_decoder_are_chosen_apart_and_give_the_same_numbers(tiny_gpt, monkeypatch, linears, decoder):
    """Short and long inputs: packed up to so many rows, plain beyond, activation and bias included."""
    model = load_model(tiny_gpt).model
    monkeypatch.setattr(kernels, "rows_worth_it", lambda dtype, out, width: decoder if out == 117 else linears)
    fast = kernels.packed(model)
    assert (model.names.word in fast.fast_linear) is bool(decoder)
    assert ("bert.encoder.layer.1.intermediate.dense" in fast.fast_linear) is bool(linears)
    for rows in (2, 19):
        for name, product in fast.fast_linear.items():
            weights = {n: model.weights[f"{n}.weight"] for n in kernels.product_parts(model).get(name, (name,))}
            x = torch.randn(rows, next(iter(weights.values())).shape[1])
            bias = {n: model.weights[model.names.mlm_bias if n == model.names.word else f"{n}.bias"] for n in weights}
            want = torch.cat([F.linear(x, w, bias[n]) for n, w in weights.items()], dim=-1)
            torch.testing.assert_close(product(x, None), want, atol=1e-5, rtol=1e-5)
            if name.endswith("intermediate.dense"):
                torch.testing.assert_close(product(x, "gelu"), F.gelu(want), atol=1e-5, rtol=1e-5)


@needs_onednn
@pytest.mark.parametrize(("worth", "moved"), [(1, True), (2**40, False)])
def test_only_large_models_are_put_into_huge_pages(tiny_bert, monkeypatch, worth, moved):
    gathered = []
    monkeypatch.setattr(kernels, "rows_worth_it", lambda *size: 2**31)
    monkeypatch.setattr(kernels, "_WORTH_MOVING", worth)
    monkeypatch.setattr(huge_pages, "gather", gathered.extend)
    fast = kernels.packed(load_model(tiny_bert).model)
    assert sorted(gathered) == (sorted(linear.span() for linear in fast.fast_linear.values()) if moved else [])


def test_a_model_elsewhere_than_on_the_cpu_is_left_alone(tiny_bert, monkeypatch):
    model = load_model(tiny_bert).model
    there = replace(model, weights={n: t.to("meta") for n, t in model.weights.items()})
    monkeypatch.setattr(kernels, "rows_worth_it", lambda *size: 2**31)
    assert kernels.packed(there) is there


@pytest.mark.parametrize(("avx512", "amx", "has"), [(True, False, True), (False, True, True), (False, False, False)])
def test_either_kind_of_instructions_is_bf16_arithmetic(monkeypatch, avx512, amx, has):
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: avx512)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)
    assert precision.has_bf16("cpu") is has


@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
@pytest.mark.parametrize("has", [True, False])
def test_a_gpu_is_asked_itself(monkeypatch, device, has):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: has)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: not has)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: not has)
    assert precision.has_bf16(device) is has
