"""The encoder as training computes it: the numbers of `core.encode` in fewer passes over memory.

Nothing is kept for a Trace, so the three projections are one product, the mask
is added rather than filled in, and the last layer works at the asked positions
only.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from bert_core import model as core
from bert_core.model import Inputs, Model

#: Added to a score that may not be seen; its probability is exactly 0 in every precision.
HIDDEN_SCORE = -1e30


def encode(model: Model, inputs: Inputs) -> Tensor:
    """The last hidden states, (B, T, D). Every query must see some key."""
    hidden, bias = _before_last(model, inputs)
    return _layer(model, model.config.num_hidden_layers - 1, hidden, hidden, bias)


def hidden_at(model: Model, inputs: Inputs, positions: Tensor) -> Tensor:
    """The last hidden states at some positions only: what `encode` gives, gathered.

    In the last layer the queries and the feed-forward part are computed at
    these positions alone, which saves a tenth of a training step.

    Args:
        positions: (B, C).

    Returns:
        (B, C, D).
    """
    hidden, bias = _before_last(model, inputs)
    asked = hidden.gather(1, positions[..., None].expand(-1, -1, hidden.shape[-1]))  # (B, C, D)
    if bias is not None:
        bias = bias[:, 0].gather(1, positions[..., None].expand(-1, -1, bias.shape[-1]))[:, None]
    return _layer(model, model.config.num_hidden_layers - 1, asked, hidden, bias)


def _before_last(model: Model, inputs: Inputs) -> tuple[Tensor, Tensor | None]:
    """What the last layer reads, (B, T, D), and the mask to add, (B, 1, T, T) or None."""
    hidden = core.embed(model, inputs).output
    bias = _bias(inputs, hidden) if core.needs_mask(inputs) else None
    for index in range(model.config.num_hidden_layers - 1):
        hidden = _layer(model, index, hidden, hidden, bias)
    return hidden, bias


def _layer(model: Model, index: int, asked: Tensor, hidden: Tensor, bias: Tensor | None) -> Tensor:
    """`core.layer` with the queries of `asked` (B, C, D) over the keys of `hidden` (B, T, D)."""
    if asked is hidden:
        query, key, value = _projected(model, index, hidden, core.PROJECTIONS)
    else:
        (query,) = _projected(model, index, asked, core.PROJECTIONS[:1])
        key, value = _projected(model, index, hidden, core.PROJECTIONS[1:])
    return core.after_context(model, index, asked, _attended(query, key, value, bias))[-1]


def _bias(inputs: Inputs, hidden: Tensor) -> Tensor:
    """(B, 1, Tq, Tk): 0 where a query sees a key, HIDDEN_SCORE elsewhere, in the products' precision."""
    kind = hidden.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else hidden.dtype
    allowed = core.allowed_pairs(inputs)
    return torch.zeros(allowed.shape, dtype=dtype, device=hidden.device).masked_fill_(~allowed, HIDDEN_SCORE)


def _projected(model: Model, index: int, hidden: Tensor, roles: Sequence[str]) -> tuple[Tensor, ...]:
    """Projections of (B, T, D), one (B, H, T, Dh) for each role: by one product where nothing updates them."""
    names = [model.names.of_layer(index, role) for role in roles]
    if model.fast_linear.keys() & set(names):
        parts: Sequence[Tensor] = [core.linear(model, hidden, name) for name in names]
    else:
        weight, bias = (torch.cat([model.weights[f"{name}.{part}"] for name in names]) for part in ("weight", "bias"))
        parts = F.linear(hidden, weight, bias).chunk(len(roles), dim=-1)
    return tuple(core.split_heads(part, model.config.num_attention_heads) for part in parts)


def _attended(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> Tensor:
    """Context of all heads, (B, Tq, D), in the precision of its arguments."""
    with torch.autocast(query.device.type, enabled=False):
        scores = (query * query.shape[-1] ** -0.5) @ key.transpose(-1, -2)  # (B, H, Tq, Tk)
        probs = (scores if bias is None else scores + bias).softmax(-1)
        return core.join_heads(probs @ value)
