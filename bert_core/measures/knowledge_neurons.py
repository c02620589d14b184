"""Which neurons of the feed-forward parts speak for an answer (Dai et al. 2022, arXiv 2104.08696, section 3).

A neuron's share is an integrated gradient, as there: what all neurons of its
layer give for the [MASK] is turned up together from nothing, and the answer's
gradient is added up on the way. A request that changes a neuron
(`TraceRequest.neurons`) changes it for every token.

Dimensions: B batch, T tokens, L layers, I intermediate size (neurons of a layer).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bert_core import model as bert
from bert_core.load import Loaded
from bert_core.measures.target import Target, check_target, score, with_gradients
from bert_core.trace import Array, TraceRequest, prepare, reading_order, to_inputs

#: Points of the Gauss-Legendre rule on the path, one row of a batch each.
STEPS = 12
#: (layer, neuron), 0-based.
Neuron = tuple[int, int]


class NeuronShares(NamedTuple):
    """How much each neuron adds to the target.

    Attributes:
        values: (L, I) float64, in the target's unit; a layer's sum to `output` less its `without`.
        output: the target on the input itself.
        without: (L,) the target where all of a layer's neurons give nothing at the target's position.
    """

    values: Array
    output: float
    without: Array

    @property
    def gap(self) -> float:
        """How far the shares of a layer are from adding up, at most; more points on the path make it smaller."""
        return float(np.abs(self.values.sum(axis=1) - (self.output - self.without)).max())


def neuron_shares(
    loaded: Loaded, request: TraceRequest, target: Target, steps: int = STEPS
) -> Generator[None, None, NeuronShares]:
    """Every neuron's integrated gradient, a layer at a time; yields between the layers.

    Args:
        steps: points on the path, 2 to 64.

    Raises:
        ValueError: a model that is not our own encoder, a head it lacks, or a position or class that isn't there.
    """
    if not 2 <= steps <= 64:
        raise ValueError(f"steps {steps}: choose 2 to 64")
    path = _Path(loaded, request, target)
    points, weights = (torch.tensor(part, dtype=path.model.dtype, device=path.model.device)
                       for part in np.polynomial.legendre.leggauss(steps))
    values, without = [], []
    for index in range(loaded.config.num_hidden_layers):
        gradients = path.gradient(index, (points + 1) / 2)  # (B, I)
        values.append(((weights / 2)[:, None] * gradients).sum(dim=0).double().cpu().numpy())
        without.append(path.at(index, 0.0))
        yield
    return NeuronShares(np.stack(values), path.at(0, 1.0), np.array(without))


class _Path:
    """The target while all neurons of one layer are turned up together, each run from that layer on."""

    def __init__(self, loaded: Loaded, request: TraceRequest, target: Target):
        self.model = with_gradients(loaded)
        row = prepare(loaded, request)
        check_target(loaded, row, target)
        order = reading_order(loaded.config, len(row.encoding))
        self.target, self.position = target, target.position if order is None else int(order[target.position])
        self.inputs = to_inputs(loaded, [row])
        self.allowed = bert.allowed_pairs(self.inputs) if bert.needs_mask(self.inputs) else None
        self.states: list[Tensor] = []  # what each layer reads, (1, T, D)
        with torch.no_grad():
            self.states.append(bert.embed(self.model, self.inputs).output)
            for index in range(loaded.config.num_hidden_layers - 1):
                self.states.append(self._layer(index, self.states[-1], bert.gates_at(self.inputs, index)))

    def gradient(self, index: int, factors: Tensor) -> Tensor:
        """(B,) common factors of a layer's neurons -> the target's gradient by each one's factor, (B, I)."""
        with torch.enable_grad():
            given = factors[:, None].repeat(1, self.model.config.intermediate_size).requires_grad_(True)
            return torch.autograd.grad(self._run(index, given).sum(), given)[0]

    def at(self, index: int, factor: float) -> float:
        """The target with one common factor."""
        with torch.no_grad():
            given = torch.full((1, self.model.config.intermediate_size), factor, device=self.model.device)
            return float(self._run(index, given)[0])

    def _run(self, index: int, given: Tensor) -> Tensor:
        """(B, I) factors at the target's position, beside those of the request -> the target, (B,)."""
        state, gates = self.states[index].expand(len(given), -1, -1), bert.gates_at(self.inputs, index)
        factors = torch.ones(*state.shape[:2], given.shape[-1], device=given.device, dtype=given.dtype)  # (B, T, I)
        factors = factors.index_copy(1, torch.tensor([self.position], device=given.device), given[:, None])
        own = factors if gates.neuron is None else gates.neuron * factors
        hidden = self._layer(index, state, gates._replace(neuron=own))
        for above in range(index + 1, len(self.states)):
            hidden = self._layer(above, hidden, bert.gates_at(self.inputs, above))
        return score(self.model, hidden, self.position, self.target)

    def _layer(self, index: int, hidden: Tensor, gates: bert.Gates) -> Tensor:
        return bert.layer(self.model, index, hidden, self.allowed, gates).hidden


def strongest(shares: NeuronShares, count: int) -> tuple[Neuron, ...]:
    """The neurons that add most, largest first; those that add nothing are left out."""
    order = np.argsort(-shares.values, axis=None, kind="stable")[:count]
    places = (divmod(int(n), shares.values.shape[1]) for n in order)
    return tuple(place for place in places if shares.values[place] > 0)


def others_like(chosen: Sequence[Neuron], size: int, draw: int) -> tuple[Neuron, ...]:
    """As many other neurons of the same layers, for a comparison; the same draw is the same neurons.

    Args:
        chosen: neurons that are not to be drawn.
        size: I, more than are chosen of a layer.
        draw: number of the draw.
    """
    random, found = np.random.default_rng(draw), []
    for layer in sorted({layer for layer, _ in chosen}):
        own = [neuron for at, neuron in chosen if at == layer]
        free = np.setdiff1d(np.arange(size), own)
        found += [(layer, int(neuron)) for neuron in random.choice(free, len(own), replace=False)]
    return tuple(found)
