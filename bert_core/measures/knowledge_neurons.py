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
from bert_core.measures.layers_above import layers_above
from bert_core.measures.target import Target, check_target, differentiable, score, score_place
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
    factors = torch.cat([(points + 1) / 2, torch.zeros_like(points[:1])])  # the last row: without the neurons
    values, without = [], []
    for index in range(loaded.config.num_hidden_layers):
        gradients, scores = path.gradients(index, factors)
        values.append(((weights / 2)[:, None] * gradients[:-1]).sum(dim=0).double().cpu().numpy())
        without.append(float(scores[-1]))
        yield
    return NeuronShares(np.stack(values), path.output, np.array(without))


class _Path:
    """The target while all neurons of one layer are turned up together at one token, run from there on."""

    def __init__(self, loaded: Loaded, request: TraceRequest, target: Target):
        self.model = differentiable(loaded)
        row = prepare(loaded, request)
        check_target(loaded, row, target)
        order = reading_order(loaded.config, len(row.encoding))
        self.target, self.position = target, target.position if order is None else int(order[target.position])
        self.scored = score_place(target.kind, self.position)
        self.inputs = to_inputs(loaded, [row])
        self.done: list[bert.LayerOutput] = []
        with torch.no_grad():
            embeddings, hidden = bert.encode(self.model, self.inputs, lambda _, done: self.done.append(done))
            # what each layer reads, (1, T, D)
            self.read = [embeddings.output, *(done.hidden for done in self.done[:-1])]
            self.output = float(score(self.model, hidden, self.scored, target)[0])

    def gradients(self, index: int, factors: Tensor) -> tuple[Tensor, Tensor]:
        """(B,) common factors of a layer's neurons -> the target's gradient by each one's, (B, I), and itself, (B,)."""
        with torch.enable_grad():
            given = factors[:, None].repeat(1, self.model.config.intermediate_size).requires_grad_(True)
            scores = self._run(index, given)
            return torch.autograd.grad(scores.sum(), given)[0], scores.detach()

    def _run(self, index: int, given: Tensor) -> Tensor:
        """(B, I) factors at the target's position, beside those of the request -> the target, (B,).

        Up to there all variants are one; in this layer they differ at that position alone.
        """
        rows, here = len(given), slice(self.position, self.position + 1)
        gates = bert.gates_at(self.inputs, index)
        own = given[:, None] if gates.neuron is None else gates.neuron * given[:, None]  # (B, 1, I)
        before, context = (one[:, here].repeat(rows, 1, 1) for one in (self.read[index], self.done[index].context))
        changed = bert.after_context(self.model, index, before, context, gates._replace(neuron=own))[-1]  # (B, 1, D)
        out = self.done[index].hidden.expand(rows, -1, -1)
        hidden = torch.cat([out[:, :self.position], changed, out[:, self.position + 1:]], dim=1)  # (B, T, D)
        return score(self.model, layers_above(self.model, hidden, self.inputs, index + 1, self.scored), 0, self.target)


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
