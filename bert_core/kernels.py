"""Linear layers with weights packed once for oneDNN: the same numbers, sooner.

F.linear lets MKL choose a generic path on some processors; oneDNN with packed
weights does the same float32 product up to three times as fast. The operators
are private to torch, so everything about them stays behind `packed`, which
checks at start-up that they exist, agree with F.linear, and are not slower;
where they fail any of it, F.linear stays.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from bert_core.layout import LAYER_ROLES
from bert_core.model import Model, activate

Linear = Callable[[Tensor, str | None], Tensor]

#: Rows for which the packed layout is chosen; others work, less well.
_ROWS_HINT = 32
#: Largest difference from F.linear, relative to the largest output, that is rounding in float32.
_TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 2e-2}


def linear_names(model: Model) -> list[str]:
    """Every linear that a forward pass uses, heads included."""
    names = model.names
    found = [names.of_layer(i, role) for i in range(model.config.num_hidden_layers)
             for role in LAYER_ROLES if not role.endswith("norm")]
    heads = [names.pooler, names.mlm_dense, names.projection]
    found += [name for name in heads if name is not None and f"{name}.weight" in model.weights]
    return list(dict.fromkeys(found))


def pack_linear(weight: Tensor, bias: Tensor | None) -> Linear:
    """One linear as a callable(x, activation) over weights in oneDNN's own layout.

    Args:
        weight: (out, in), float32 or bfloat16, on the CPU.
        bias: (out,) or None.
    """
    blocked = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), _ROWS_HINT)
    run = torch.ops.mkldnn._linear_pointwise

    def packed_linear(x: Tensor, activation: str | None) -> Tensor:
        fused = activation in ("gelu", "relu", "tanh")
        algorithm = "none" if activation == "gelu" else ""
        out = run(x, blocked, bias, activation if fused else "none", [], algorithm)
        return out if fused or activation is None else activate(out, activation)

    return packed_linear


def usable(dtype: torch.dtype) -> bool:
    """Whether the packed operators exist here and agree with F.linear.

    Equality is tested on a (5, 96) x (96, 64) product with and without GELU.
    """
    if dtype not in _TOLERANCE or not torch.backends.mkldnn.is_available():
        return False
    generator = torch.Generator().manual_seed(0)
    x, weight, bias = (torch.randn(*shape, generator=generator).to(dtype) for shape in ((5, 96), (64, 96), (64,)))
    try:
        fast = pack_linear(weight, bias)
        pairs = [(fast(x, name), F.linear(x, weight, bias)) for name in (None, "gelu")]
    except (RuntimeError, AttributeError, TypeError):
        return False
    expected = (pairs[0][1], F.gelu(pairs[1][1]))
    return all((got - want).abs().max() <= _TOLERANCE[dtype] * want.abs().max()
               for (got, _), want in zip(pairs, expected, strict=True))


def faster(weight: Tensor, bias: Tensor | None, rows: int = 16) -> bool:
    """Whether the packed product beats F.linear here, best of five after a warm-up."""
    x = torch.randn(rows, weight.shape[1], dtype=weight.dtype)
    fast = pack_linear(weight, bias)

    def best(run: Callable[[], Tensor]) -> float:
        run()
        times = []
        for _ in range(5):
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
        return min(times)

    return best(lambda: fast(x, None)) <= best(lambda: F.linear(x, weight, bias))


@torch.no_grad()
def packed(model: Model) -> Model:
    """The same model with its linears packed, or the model itself where that doesn't help.

    Packed copies stand beside the plain weights (which training, export and the
    views of single numbers read), so memory for them doubles.
    """
    if model.device.type != "cpu" or model.fast_linear or not usable(model.dtype):
        return model
    fast: dict[str, Linear] = {}
    for name in linear_names(model):
        fast[name] = pack_linear(model.weights[f"{name}.weight"], model.weights.get(f"{name}.bias"))
    language = model.heads & {"mlm", "lm"}
    if language:
        from bert_core.model import decoder_weight

        fast[model.names.word] = pack_linear(decoder_weight(model), model.weights[model.names.mlm_bias])
    return replace(model, fast_linear=fast)
