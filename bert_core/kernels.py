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
from collections.abc import Callable, Iterable, Iterator, Mapping
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
#: Most rows of a product that is always packed.
_ANY_ROWS = 2**31
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
        most = rows if rows < _TESTED_ROWS[-1] else _ANY_ROWS
    return most


@dataclass(frozen=True)
class Guarded:
    """The packed product up to so many rows, the plain one beyond."""

    fast: PackedLinear
    plain: Linear
    most_rows: int

    @property
    def blocked(self) -> Tensor:
        return self.fast.blocked

    def __call__(self, x: Tensor, activation: str | None) -> Tensor:
        return (self.fast if x.numel() // x.shape[-1] <= self.most_rows else self.plain)(x, activation)


class Unpacked(Mapping[str, Tensor]):
    """Weights of which some are read back from oneDNN's layout, bit for bit, whenever one is asked for.

    Training, export and the views of single numbers want plain matrices, but
    seldom; kept beside the packed ones they would double a model's memory.

    Args:
        plain: name -> tensor of the others.
        packed: name -> (weights in oneDNN's layout, the rows of them that are this tensor).
    """

    def __init__(self, plain: Mapping[str, Tensor], packed: Mapping[str, tuple[Tensor, slice]]):
        self._plain = {name: plain[name] for name in plain if name not in packed}
        self._packed, self._names = dict(packed), tuple(plain)

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._packed:
            return self._plain[name]
        blocked, rows = self._packed[name]
        whole = blocked.to_dense()
        return whole if rows == slice(None) else whole[rows].clone()

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@torch.no_grad()
def packed(model: Model) -> Model:
    """The same model with its linears packed, or the model itself where that doesn't help.

    Where the packed product serves any number of rows, the plain matrices are
    let go (`Unpacked`); else both stand side by side.
    """
    if model.device.type != "cpu" or model.fast_linear or not usable(model.dtype):
        return model
    config = model.config
    most = rows_worth_it(model.dtype, config.intermediate_size, config.hidden_size)
    fast: dict[str, PackedLinear | Guarded] = {}
    back: dict[str, tuple[Tensor, slice]] = {}
    if most:
        fast = {name: _packed_one(model, name, most) for name in linear_names(model)}
        back = {f"{name}.weight": (one.blocked, slice(None)) for name, one in fast.items()}
        for index in range(config.num_hidden_layers):
            joined = fast[joined_name(model, index)] = _joined(model, index, most)
            back |= _thirds(model, index, joined.blocked)
    weights = Unpacked(model.weights, back) if most == _ANY_ROWS else model.weights
    if model.heads & {"mlm", "lm"}:
        decoder = decoder_weight(model)
        most = rows_worth_it(model.dtype, *decoder.shape)
        if most:
            fast[model.names.word] = _packed_decoder(model, most)
    _keep_in_huge_pages(fast.values())
    return replace(model, weights=weights, fast_linear=fast) if fast else model


def _keep_in_huge_pages(linears: Iterable[PackedLinear | Guarded]) -> None:
    """A large model's packed weights come from memory at every pass: in few pages they come sooner."""
    spans = [huge_pages.span_of(one.blocked) for one in linears]
    found = [span for span in spans if span is not None]
    if sum(size for _, size in found) >= _WORTH_MOVING:
        huge_pages.gather(found)


def _guarded(fast: PackedLinear, plain: Linear, most_rows: int) -> PackedLinear | Guarded:
    return fast if most_rows == _ANY_ROWS else Guarded(fast, plain, most_rows)


def _packed_one(model: Model, name: str, most_rows: int) -> PackedLinear | Guarded:
    """The linear called `name`; the plain one looks its weights up when it is called, so that nobody keeps them."""
    fast = pack_linear(model.weights[f"{name}.weight"], model.weights.get(f"{name}.bias"))
    return _guarded(fast, lambda x, activation: linear(model, x, name, activation), most_rows)


def _packed_decoder(model: Model, most_rows: int) -> PackedLinear | Guarded:
    """The projection to the vocabulary; its table stays plain as well, for looking words up."""
    weight, bias = decoder_weight(model), model.weights[model.names.mlm_bias]
    return _guarded(pack_linear(weight, bias), lambda x, _activation: F.linear(x, weight, bias), most_rows)


def _joined(model: Model, index: int, most_rows: int) -> PackedLinear | Guarded:
    """Query, key and value of a layer side by side as one packed product, (..., D) -> (..., 3 D)."""
    names = [model.names.of_layer(index, role) for role in PROJECTIONS]
    biases = [model.weights.get(f"{name}.bias") for name in names]
    fast = pack_linear(torch.cat([model.weights[f"{name}.weight"] for name in names]),
                       None if biases[0] is None else torch.cat(biases))

    def one_by_one(x: Tensor, activation: str | None) -> Tensor:
        return torch.cat([linear(model, x, name, activation) for name in names], dim=-1)

    return _guarded(fast, one_by_one, most_rows)


def _thirds(model: Model, index: int, blocked: Tensor) -> dict[str, tuple[Tensor, slice]]:
    """Where query, key and value weights of a layer stand in their joined product."""
    third = blocked.shape[0] // len(PROJECTIONS)
    return {f"{model.names.of_layer(index, role)}.weight": (blocked, slice(third * i, third * (i + 1)))
            for i, role in enumerate(PROJECTIONS)}
