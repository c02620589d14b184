"""Linear layers with weights packed once for oneDNN: the same numbers, sooner.

On processors with AVX-512, F.linear lets MKL take a generic path, and oneDNN
with packed weights does the same float32 product up to three times as fast; on
AVX2 it is up to twice as fast for a sentence and even for a page. The operators
are private to torch, so everything about them stays behind `packed`, which
checks at start-up that they exist, agree with F.linear, and up to how many rows
they are faster; beyond, F.linear stays.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from bert_core import huge_pages
from bert_core.layout import LAYER_ROLES
from bert_core.model import PROJECTIONS, Model, activate, decoder_weight, joined_name, linear

Linear = Callable[[Tensor, str | None], Tensor]

#: Rows for which the packed layout is chosen; others work, less well.
_ROWS_HINT = 128
#: Numbers of rows (tokens in a batch) at which the self-test compares the two.
_TESTED_ROWS = (16, 64, 256)
_TESTED_OUTPUTS = 4096
_TRIES = 3
#: Share of F.linear's time that the packed product must stay under to be chosen.
_WORTH_IT = 0.95
#: Bytes of weights that the self-test goes round, more than a processor keeps in its cache.
_CACHE_BYTES = 40 * 2**20
_MOST_COPIES = 16
#: Packed weights of fewer bytes than this stay in small pages: a processor's cache holds much of them.
_WORTH_MOVING = 64 * 2**20
#: Largest difference from F.linear, relative to the largest output, that is rounding in float32.
_TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 2e-2}


def linear_names(model: Model) -> list[str]:
    """Every linear that a forward pass uses one by one, heads included."""
    names = model.names
    found = [names.of_layer(i, role) for i in range(model.config.num_hidden_layers)
             for role in LAYER_ROLES if not role.endswith("norm") and role not in PROJECTIONS]
    heads = [names.pooler, names.mlm_dense, names.projection]
    found += [name for name in heads if name is not None and f"{name}.weight" in model.weights]
    return list(dict.fromkeys(found))


@dataclass(frozen=True)
class PackedLinear:
    """One linear over weights in oneDNN's own layout.

    Attributes:
        blocked: (out, in) weights; only oneDNN's operators can read them.
        bias: (out,) or None.
    """

    blocked: Tensor
    bias: Tensor | None

    def __call__(self, x: Tensor, activation: str | None) -> Tensor:
        """(..., in) -> (..., out)."""
        fused = activation in ("gelu", "relu", "tanh")
        algorithm = "none" if activation == "gelu" else ""
        run = torch.ops.mkldnn._linear_pointwise
        out = run(x, self.blocked, self.bias, activation if fused else "none", [], algorithm)
        return out if fused or activation is None else activate(out, activation)


def pack_linear(weight: Tensor, bias: Tensor | None) -> PackedLinear:
    """A linear packed for oneDNN.

    Args:
        weight: (out, in), float32 or bfloat16, on the CPU.
        bias: (out,) or None.
    """
    return PackedLinear(torch.ops.mkldnn._reorder_linear_weight(weight.detach(), _ROWS_HINT), bias)


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


def ratio_of_best(run: Callable[[], object], peer: Callable[[], object], rounds: int = 4) -> float:
    """Shortest time of one over the shortest of the other, taken in turns after a warm-up.

    In turns, because another process's burst then falls on both.
    """
    seconds = []
    for turn in range(-1, rounds):
        pair = []
        for call in (run, peer):
            start = time.perf_counter()
            call()
            pair.append(time.perf_counter() - start)
        if turn >= 0:
            seconds.append(pair)
    ours, theirs = (min(column) for column in zip(*seconds, strict=True))
    return ours / theirs


@functools.cache
def rows_worth_it(dtype: torch.dtype, out: int, width: int) -> int:
    """Most rows at which the packed product is clearly faster here; 0 is never.

    Measured once a process for this size (two tenths of a second), on the first
    outputs where there are very many. A size that seems not worth it is tried
    again: a busy machine must not decide for the rest of the process. In a
    model every weight comes from memory, as other layers have pushed it out of
    the cache since its last use: so the test goes round several copies, fewer
    of them where the arithmetic outweighs the way to memory.
    """
    out = min(out, _TESTED_OUTPUTS)
    weight, bias = torch.randn(out, width).to(dtype), torch.randn(out).to(dtype)
    copies = 1 + _CACHE_BYTES // (weight.numel() * weight.element_size())
    weights = [weight.clone() for _ in range(min(copies, _MOST_COPIES))]
    fast = [pack_linear(w, bias) for w in weights]
    most = 0
    for rows in _TESTED_ROWS:
        x = torch.randn(rows, width).to(dtype)
        used = range(max(1, len(weights) * _TESTED_ROWS[0] // rows))
        tries = (ratio_of_best(lambda: [fast[i](x, None) for i in used],  # noqa: B023
                               lambda: [F.linear(x, weights[i], bias) for i in used])  # noqa: B023
                 for _ in range(_TRIES))
        if not any(ratio <= _WORTH_IT for ratio in tries):
            break
        most = rows if rows < _TESTED_ROWS[-1] else 2**31
    return most


@dataclass(frozen=True)
class Guarded:
    """The packed product up to so many rows, the plain one beyond."""

    fast: PackedLinear
    plain: Linear
    most_rows: int

    def __call__(self, x: Tensor, activation: str | None) -> Tensor:
        return (self.fast if x.numel() // x.shape[-1] <= self.most_rows else self.plain)(x, activation)


@torch.no_grad()
def packed(model: Model) -> Model:
    """The same model with its linears packed, or the model itself where that doesn't help.

    Packed copies stand beside the plain weights (which training, export and the
    views of single numbers read), so memory for them doubles, but for the
    matrices of a task, which are made from its base's when somebody reads them.
    """
    if model.device.type != "cpu" or model.fast_linear or not usable(model.dtype):
        return model
    config = model.config
    most = rows_worth_it(model.dtype, config.intermediate_size, config.hidden_size)
    fast: dict[str, Guarded] = {}
    if most:
        fast = {name: _packed_one(model, name, most) for name in linear_names(model)}
        fast |= {joined_name(model, i): _joined(model, i, most) for i in range(config.num_hidden_layers)}
    if model.heads & {"mlm", "lm"}:
        decoder = decoder_weight(model)
        most = rows_worth_it(model.dtype, *decoder.shape)
        if most:
            fast[model.names.word] = _packed_decoder(model, most)
    _keep_in_huge_pages(fast.values())
    return replace(model, fast_linear=fast) if fast else model


def _keep_in_huge_pages(linears: Iterable[Guarded]) -> None:
    """A large model's packed weights come from memory at every pass: in few pages they come sooner."""
    spans = [huge_pages.span_of(one.fast.blocked) for one in linears]
    found = [span for span in spans if span is not None]
    if sum(size for _, size in found) >= _WORTH_MOVING:
        huge_pages.gather(found)


def _packed_one(model: Model, name: str, most_rows: int) -> Guarded:
    """The linear called `name`; the plain one looks its weights up when it is called, so that nobody keeps them."""
    packed_one = pack_linear(model.weights[f"{name}.weight"], model.weights.get(f"{name}.bias"))
    return Guarded(packed_one, lambda x, activation: linear(model, x, name, activation), most_rows)


def _packed_decoder(model: Model, most_rows: int) -> Guarded:
    """The projection to the vocabulary."""
    bias = model.weights[model.names.mlm_bias]
    packed_one = pack_linear(decoder_weight(model), bias)
    return Guarded(packed_one, lambda x, _activation: F.linear(x, decoder_weight(model), bias), most_rows)


def _joined(model: Model, index: int, most_rows: int) -> Guarded:
    """Query, key and value of a layer side by side as one packed product, (..., D) -> (..., 3 D)."""
    names = [model.names.of_layer(index, role) for role in PROJECTIONS]
    biases = [model.weights.get(f"{name}.bias") for name in names]
    fast = pack_linear(torch.cat([model.weights[f"{name}.weight"] for name in names]),
                       None if biases[0] is None else torch.cat(biases))

    def one_by_one(x: Tensor, activation: str | None) -> Tensor:
        return torch.cat([linear(model, x, name, activation) for name in names], dim=-1)

    return Guarded(fast, one_by_one, most_rows)
