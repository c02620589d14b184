"""Linears over weights in oneDNN's own layout; the operators are private to torch (see kernels.py)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from bert_core.model import activate

#: Rows for which the layout is chosen; others work, less well.
_ROWS_HINT = 128


@dataclass(frozen=True)
class BlockedLinear:
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

    @property
    def outputs(self) -> int:
        return self.blocked.shape[0]

    def matrix(self) -> Tensor:
        """(out, in) weights as they were, made anew each time."""
        return self.blocked.to_dense()

    def span(self) -> tuple[int, int] | None:
        """First address and bytes of the weights; None where torch doesn't tell."""
        try:
            return torch.ops.mkldnn.data_ptr(self.blocked), torch.ops.mkldnn._nbytes(self.blocked)
        except (AttributeError, RuntimeError):
            return None


def pack(weight: Tensor, bias: Tensor | None) -> BlockedLinear:
    """A linear packed for oneDNN.

    Args:
        weight: (out, in), float32 or bfloat16, on the CPU.
        bias: (out,) or None.
    """
    return BlockedLinear(torch.ops.mkldnn._reorder_linear_weight(weight.detach(), _ROWS_HINT), bias)
