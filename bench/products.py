"""The linears of a base-size model alone: what no Trace can be faster than.

Packed weights against F.linear on the same inputs, every linear of the twelve
layers and the vocabulary projection once, in the order of a forward pass.
`error` is the largest difference of a product, relative to its largest output;
`onednn_ms` is oneDNN's time, where a kernel of our own serves (kernels.py).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

import torch

from bench import _base_model as base
from bench.harness import compared, interleave
from bert_core import huge_pages, kernels, onednn
from bert_core.layout import LAYER_ROLES
from bert_core.model import PROJECTIONS, decoder_weight

LENGTHS = {16: 20, 32: 20, 128: 10, 512: 5}


def matrices() -> list[torch.Tensor]:
    """(out, in) weights in the order of a forward pass; the three projections of a layer are one."""
    model = base.ours(torch.float32).model
    names, found = model.names, []
    for layer in range(model.config.num_hidden_layers):
        one = [model.weights[f"{names.of_layer(layer, role)}.weight"] for role in LAYER_ROLES
               if not role.endswith("norm")]
        joined = torch.cat(one[:len(PROJECTIONS)])
        found += [joined, *one[len(PROJECTIONS):]]
    return [*found, decoder_weight(model)]


def check(packed: Sequence[kernels.Packed], weights: list[torch.Tensor], inputs: dict[int, torch.Tensor]) -> float:
    """Largest relative difference of a packed product; an error if it is no rounding."""
    worst = 0.0
    for fast, weight in zip(packed, weights, strict=True):
        x = inputs[weight.shape[1]]
        expected = torch.nn.functional.linear(x, weight)
        difference = ((fast(x, None) - expected).abs().max() / expected.abs().max()).item()
        if not difference <= 1e-5:
            raise RuntimeError(f"products of {tuple(weight.shape)} differ by {difference}")
        worst = max(worst, difference)
    return worst


@torch.inference_mode()
def run() -> dict[str, dict[str, float]]:
    """A case a length; `gflops` is what the packed products reach."""
    weights = matrices()
    packed = _packed(kernels.pack_linear, weights)
    others = _packed(onednn.pack, weights) if kernels.own_kernel_worth_it() else None
    results = {}
    for length, repeats in LENGTHS.items():
        inputs = {width: torch.randn(1, length, width) for width in {weight.shape[1] for weight in weights}}
        error = check(packed, weights, inputs)
        sides = {
            "ours": _through([lambda x, fast=fast: fast(x, None) for fast in packed], weights, inputs),
            "peer": _through([lambda x, w=w: torch.nn.functional.linear(x, w) for w in weights], weights, inputs),
        }
        if others is not None:
            sides["onednn"] = _through([lambda x, fast=fast: fast(x, None) for fast in others], weights, inputs)
        times = interleave(sides, repeats)
        figures = compared(times["ours"], times["peer"], error=float(f"{error:.2g}"))
        if others is not None:
            figures["onednn_ms"] = round(statistics.median(times["onednn"]), 3)
        work = 2e-6 * length * sum(weight.numel() for weight in weights)
        results[f"fp32/{length}"] = {**figures, "gflops": round(work / figures["ours_ms"], 1)}
    return results


def _packed(
    pack: Callable[[torch.Tensor, None], kernels.Packed], weights: Sequence[torch.Tensor],
) -> list[kernels.Packed]:
    """Every matrix packed, in huge pages as a model's are."""
    packed = [pack(weight, None) for weight in weights]
    huge_pages.gather(span for one in packed if (span := one.span()) is not None)
    return packed


def _through(
    linears: list[Callable[[torch.Tensor], torch.Tensor]], weights: list[torch.Tensor], inputs: dict[int, torch.Tensor],
) -> Callable[[int], None]:
    def call(_turn: int) -> None:
        for linear, weight in zip(linears, weights, strict=True):
            linear(inputs[weight.shape[1]])

    return call
