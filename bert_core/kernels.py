"""Linear layers with weights packed once: the same numbers, sooner.

On processors with AVX-512, F.linear lets MKL take a generic path, and oneDNN
with packed weights (onednn.py) does the same float32 product up to three times
as fast; on AVX2 it is up to twice as fast for a sentence and even for a page.
Where our own kernel can be compiled (panels.py), it does a sentence in four
fifths of oneDNN's time. Everything about either stays behind `packed`, which
checks at start-up that they exist, agree with F.linear, and up to how many rows
they are faster; beyond, F.linear stays.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from bert_core import huge_pages, onednn, panels
from bert_core.layout import LAYER_ROLES
from bert_core.model import PROJECTIONS, Model, decoder_weight, joined_name, linear
from bert_core.on_demand import Make, OnDemand, halved

Linear = Callable[[Tensor, str | None], Tensor]

#: Numbers of rows (tokens in a batch) at which the self-test compares the two.
_TESTED_ROWS = (16, 64, 256)
_TESTED_OUTPUTS = 4096
#: (out, in) of the product at which the two kernels are compared: a base model's feed-forward layer.
_TESTED_SIZE = (3072, 768)
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


def product_parts(model: Model) -> dict[str, tuple[str, ...]]:
    """Key in `fast_linear` of every product of a forward pass -> the linears it does side by side, heads included."""
    names, layers = model.names, range(model.config.num_hidden_layers)
    alone = [names.of_layer(i, role) for i in layers
             for role in LAYER_ROLES if not role.endswith("norm") and role not in PROJECTIONS]
    heads = [names.pooler, names.mlm_dense, names.projection]
    alone += [name for name in heads if name is not None and f"{name}.weight" in model.weights]
    joined = {joined_name(model, i): tuple(names.of_layer(i, role) for role in PROJECTIONS) for i in layers}
    return {name: (name,) for name in alone} | joined


class Packed(Protocol):
    """One linear over packed weights, (..., in) -> (..., out)."""

    @property
    def outputs(self) -> int:
        """How many outputs there are."""

    def __call__(self, x: Tensor, activation: str | None) -> Tensor: ...

    def matrix(self) -> Tensor:
        """(out, in) weights as they were, made anew each time."""

    def span(self) -> tuple[int, int] | None:
        """First address and bytes of the packed weights, where that is known."""


def pack_linear(weight: Tensor, bias: Tensor | None) -> Packed:
    """A linear packed in the layout that is faster here.

    Args:
        weight: (out, in), float32 or bfloat16, on the CPU.
        bias: (out,) or None.
    """
    own = weight.dtype == torch.float32 and own_kernel_worth_it()
    return (panels if own else onednn).pack(weight, bias)


@functools.cache
def own_kernel_worth_it() -> bool:
    """Whether our own float32 kernel is to be had here, is right, and is faster than oneDNN's for a short text."""
    if not panels.available() or not _agrees(panels.pack, torch.float32):
        return False
    if not _agrees(onednn.pack, torch.float32):
        return True
    rows, (out, width) = _TESTED_ROWS[0], _TESTED_SIZE
    weights = [torch.randn(out, width, dtype=torch.float32) for _ in range(1 + _CACHE_BYTES // (4 * out * width))]
    x = torch.randn(rows, width, dtype=torch.float32)
    ours, theirs = ([pack(weight, None) for weight in weights] for pack in (panels.pack, onednn.pack))
    tries = (ratio_of_best(lambda: [fast(x, "gelu") for fast in ours], lambda: [fast(x, "gelu") for fast in theirs])
             for _ in range(_TRIES))
    return any(ratio <= 1 for ratio in tries)


def usable(dtype: torch.dtype) -> bool:
    """Whether packed products exist here and agree with F.linear."""
    return dtype in _TOLERANCE and _agrees(pack_linear, dtype)


def _agrees(pack: Callable[[Tensor, Tensor | None], Packed], dtype: torch.dtype) -> bool:
    """Whether (19, 300) x (300, 110), more inputs than our kernel takes at a time, is F.linear's; with GELU too."""
    generator = torch.Generator().manual_seed(0)
    x, weight, bias = (torch.randn(*shape, generator=generator).to(dtype) for shape in ((19, 300), (110, 300), (110,)))
    try:
        fast = pack(weight, bias)
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

    fast: Packed
    plain: Linear
    most_rows: int

    @property
    def outputs(self) -> int:
        return self.fast.outputs

    def matrix(self) -> Tensor:
        return self.fast.matrix()

    def span(self) -> tuple[int, int] | None:
        return self.fast.span()

    def __call__(self, x: Tensor, activation: str | None) -> Tensor:
        return (self.fast if x.numel() // x.shape[-1] <= self.most_rows else self.plain)(x, activation)


@torch.no_grad()
def packed(model: Model) -> Model:
    """The same model with its linears packed, or the model itself where that doesn't help.

    Where the packed product serves any number of rows, the plain matrices are
    let go and read back from the packed ones, bit for bit, by whoever asks for
    one; else both stand side by side. A word table that is left for looking
    words up is kept in float16 where that says the same.
    """
    if model.device.type != "cpu" or model.fast_linear or not usable(model.dtype):
        return model
    config, weights = model.config, model.weights
    most = rows_worth_it(model.dtype, config.intermediate_size, config.hidden_size)
    fast: dict[str, Packed] = {}
    made: dict[str, Make] = {}
    if most:
        parts = product_parts(model)
        fast = {product: _packed_of(model, names, most) for product, names in parts.items()}
        if most == _ANY_ROWS:
            made = _read_back(fast, parts)
    if model.heads & {"mlm", "lm"}:
        most = rows_worth_it(model.dtype, *decoder_weight(model).shape)
        if most:
            fast[model.names.word] = _packed_decoder(model, most)
    if most == _ANY_ROWS:  # of the decoder where there is one: nobody multiplies by the plain table
        made |= _in_half(model)
    _keep_in_huge_pages(fast.values())
    if made:
        weights = OnDemand({name: made[name] if name in made else weights[name] for name in weights})
    return replace(model, weights=weights, fast_linear=fast) if fast else model


def _in_half(model: Model) -> dict[str, Make]:
    """The word table in half its memory; nothing where that would lose a bit of it."""
    name = f"{model.names.word}.weight"
    table = halved(model.weights[name])
    return {} if table is None else {name: table}


def _keep_in_huge_pages(linears: Iterable[Packed]) -> None:
    """A large model's packed weights come from memory at every pass: in few pages they come sooner."""
    spans = [one.span() for one in linears]
    found = [span for span in spans if span is not None]
    if sum(size for _, size in found) >= _WORTH_MOVING:
        huge_pages.gather(found)


def _guarded(fast: Packed, plain: Linear, most_rows: int) -> Packed:
    return fast if most_rows == _ANY_ROWS else Guarded(fast, plain, most_rows)


def _packed_of(model: Model, names: tuple[str, ...], most_rows: int) -> Packed:
    """Linears side by side as one packed product, (..., in) -> (..., sum of out).

    The plain product looks its weights up when it is called, so that nobody keeps them.
    """
    weights, biases = ([model.weights[f"{name}.{kind}"] for name in names] for kind in ("weight", "bias"))
    fast = pack_linear(_beside(weights), _beside(biases))
    return _guarded(fast, lambda x, activation: _beside([linear(model, x, name, activation) for name in names], -1),
                    most_rows)


def _beside(tensors: list[Tensor], dim: int = 0) -> Tensor:
    return tensors[0] if len(tensors) == 1 else torch.cat(tensors, dim)


def _packed_decoder(model: Model, most_rows: int) -> Packed:
    """The projection to the vocabulary; its table stays as well, for looking words up."""
    weight, bias = decoder_weight(model), model.weights[model.names.mlm_bias]
    return _guarded(pack_linear(weight, bias), lambda x, _activation: F.linear(x, weight, bias), most_rows)


def _read_back(fast: Mapping[str, Packed], parts: Mapping[str, tuple[str, ...]]) -> dict[str, Make]:
    """How to make each plain matrix from the packed product that holds it."""
    found: dict[str, Make] = {}
    for product, names in parts.items():
        rows = fast[product].outputs // len(names)
        found |= {f"{name}.weight": functools.partial(_rows, fast[product], rows * i, rows)
                  for i, name in enumerate(names)}
    return found


def _rows(packed: Packed, start: int, rows: int) -> Tensor:
    """Some rows of packed weights, (rows, in), without the memory of the others."""
    whole = packed.matrix()
    return whole if rows == len(whole) else whole[start:start + rows].clone()
