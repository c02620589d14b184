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
from bert_core.model import Attend, Inputs, Model

#: Added to a score that may not be seen; its probability is exactly 0 in every precision.
HIDDEN_SCORE = -1e30


def encode(model: Model, inputs: Inputs) -> Tensor:
    """The last hidden states, (B, T, D). Every query must see some key."""
    attend = _attend(_bias(model, inputs))
    hidden = hidden_before(model, inputs, attend)
    return _layer(model, model.config.num_hidden_layers - 1, hidden, attend)


def hidden_at(model: Model, inputs: Inputs, positions: Tensor) -> Tensor:
    """The last hidden states at some positions only: what `encode` gives, gathered.

    In the last layer the queries and the feed-forward part are computed at
    these positions alone, which saves a tenth of a training step.

    Args:
        positions: (B, C).

    Returns:
        (B, C, D).
    """
    bias = _bias(model, inputs)
    hidden = hidden_before(model, inputs, _attend(bias))
    last = model.config.num_hidden_layers - 1
    asked = hidden.gather(1, positions[..., None].expand(-1, -1, hidden.shape[-1]))  # (B, C, D)
    if bias is not None:
        bias = bias[:, 0].gather(1, positions[..., None].expand(-1, -1, bias.shape[-1]))[:, None]
    (query,) = _projected(model, last, asked, core.PROJECTIONS[:1])
    key, value = _projected(model, last, hidden, core.PROJECTIONS[1:])
    context = core.join_heads(contexts(query, key, value, bias))
    return core.after_context(model, last, asked, context)[-1]


def hidden_before(model: Model, inputs: Inputs, attend: Attend) -> Tensor:
    """What the last layer reads, (B, T, D)."""
    hidden = core.embed(model, inputs).output
    for index in range(model.config.num_hidden_layers - 1):
        hidden = _layer(model, index, hidden, attend)
    return hidden


def last_context(model: Model, hidden: Tensor, attend: Attend) -> Tensor:
    """The last layer's heads side by side, (B, T, D), from what it reads."""
    return core.join_heads(attend(*_projected(model, model.config.num_hidden_layers - 1, hidden, core.PROJECTIONS)))


def _layer(model: Model, index: int, hidden: Tensor, attend: Attend) -> Tensor:
    """`core.layer` on (B, T, D)."""
    context = core.join_heads(attend(*_projected(model, index, hidden, core.PROJECTIONS)))
    return core.after_context(model, index, hidden, context)[-1]


def _attend(bias: Tensor | None) -> Attend:
    return lambda query, key, value: contexts(query, key, value, bias)


def _bias(model: Model, inputs: Inputs) -> Tensor | None:
    """(B, 1, Tq, Tk): 0 where a query sees a key, HIDDEN_SCORE elsewhere, in the products' precision; or None."""
    if not core.needs_mask(inputs):
        return None
    kind = model.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else model.dtype
    allowed = core.allowed_pairs(inputs)
    return torch.zeros(allowed.shape, dtype=dtype, device=model.device).masked_fill_(~allowed, HIDDEN_SCORE)


def _projected(model: Model, index: int, hidden: Tensor, roles: Sequence[str]) -> tuple[Tensor, ...]:
    """Projections of (B, T, D), one (B, H, T, Dh) for each role: by one product where nothing updates them."""
    names = [model.names.of_layer(index, role) for role in roles]
    if model.fast_linear.keys() & set(names):
        parts: Sequence[Tensor] = [core.linear(model, hidden, name) for name in names]
    else:
        weight, bias = (torch.cat([model.weights[f"{name}.{part}"] for name in names]) for part in ("weight", "bias"))
        parts = F.linear(hidden, weight, bias).chunk(len(roles), dim=-1)
    return tuple(core.split_heads(part, model.config.num_attention_heads) for part in parts)


def contexts(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> Tensor:
    """Of all heads, (..., Tq, Dh), in the precision of what is given.

    Args:
        query: (..., Tq, Dh).
        key, value: (..., Tk, Dh).
        bias: what is added to the scores (..., Tq, Tk), None adds nothing.
    """
    with torch.autocast(query.device.type, enabled=False):
        scores = (query * query.shape[-1] ** -0.5) @ key.transpose(-1, -2)  # (B, H, Tq, Tk)
        probs = (scores if bias is None else scores + bias).softmax(-1)
        return probs @ value
