"""From somewhere inside the encoder up to one token's last hidden state, for many variants of one sentence at once."""

from __future__ import annotations

import torch
from torch import Tensor

from bert_core import model as bert


def layers_above(model: bert.Model, hidden: Tensor, inputs: bert.Inputs, first: int, place: int) -> Tensor:
    """The last hidden state of one token, which is all that the last layer computes behind its attention.

    Args:
        hidden: (B, T, D), what layer `first` reads, of B variants of the one sentence of `inputs`.
        inputs: a batch of one: its masks and gates hold for every variant.
        first: 0-based; the number of layers where `hidden` is the last one's output.
        place: of the token, in the model's order.

    Returns:
        (B, 1, D).
    """
    rows, last = len(hidden), model.config.num_hidden_layers - 1
    allowed = bert.allowed_pairs(inputs) if bert.needs_mask(inputs) else None  # (1, 1, Tq, Tk)
    for index in range(first, last):
        hidden = bert.layer(model, index, hidden, allowed, bert.gates_at(inputs, index)).hidden
    if first > last:
        return hidden[:, place:place + 1]
    gates = bert.Gates(*(None if gate is None else gate.expand(rows, *gate.shape[1:])
                         for gate in bert.gates_at(inputs, last)))
    read = torch.arange(rows, device=hidden.device), torch.full((rows,), place, device=hidden.device)
    return bert.layer(model, last, hidden, allowed, gates, read=read).hidden
