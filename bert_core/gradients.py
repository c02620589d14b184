"""A packed model that can be differentiated: its products run as fast there and back as where they are only read.

Packed products have no gradient of their own. That of x W^T by x is a
product too, with W, so a second pack of each matrix, transposed, gives it. The
weights themselves get no gradient: what is asked is how an answer moves with its
input, or with what a part of the model gives.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from bert_core.kernels import Guarded, Linear, Packed, pack_linear
from bert_core.model import Model, activate, decoder_weight
from bert_core.on_demand import plain


class _Product(torch.autograd.Function):
    """x -> x W^T + b, with its gradient by x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, product: Differentiable) -> Tensor:
        ctx.product = product
        return product.fast(x, None)

    @staticmethod
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor, None]:
        return ctx.product.back(given.contiguous()), None


class Differentiable:
    """A packed linear with a gradient by its input.

    Args:
        fast: the packed linear.
        plain: its matrix (out, in), if the gradient is rather made with that, else None: packing a vocabulary's table
            costs more than a few products with it.
    """

    def __init__(self, fast: Packed, plain: Callable[[], Tensor] | None):
        self.fast, self._plain = fast, plain

    @functools.cached_property
    def back(self) -> Callable[[Tensor], Tensor]:
        """(..., out) -> (..., in), the gradient by the output times the matrix; made when it is first asked for."""
        if self._plain is not None:
            matrix = self._plain()
            return lambda given: given @ matrix
        transposed = pack_linear(self.fast.matrix().t(), None)
        return lambda given: transposed(given, None)

    def __call__(self, x: Tensor, activation: str | None) -> Tensor:
        """(..., in) -> (..., out)."""
        if not (torch.is_grad_enabled() and x.requires_grad):
            return self.fast(x, activation)
        out = _Product.apply(x, self)
        return out if activation is None else activate(out, activation)


class _All(dict[str, Linear]):
    """Every linear of a model, and the packed ones that they were made of."""

    def __init__(self, model: Model):
        table = functools.partial(decoder_weight, model)
        super().__init__({name: Differentiable(fast, table if name == model.names.word else None)
                          for name, fast in model.fast_linear.items()})
        self.of = model.fast_linear


_MADE: weakref.WeakValueDictionary[int, _All] = weakref.WeakValueDictionary()
_one_at_a_time = threading.Lock()


def with_gradients(model: Model) -> Model:
    """The same model, to be differentiated by whatever goes into its linears.

    What that takes is made once for all who have it at the same time, and is gone with the last of them.
    """
    packed = model.fast_linear
    if not packed or any(isinstance(linear, Guarded) for linear in packed.values()):
        return replace(model, weights=plain(model.weights), fast_linear={})
    with _one_at_a_time:
        made = _MADE.get(id(packed))
        if made is None or made.of is not packed:
            made = _MADE[id(packed)] = _All(model)
    return replace(model, fast_linear=made)
