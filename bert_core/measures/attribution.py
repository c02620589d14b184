"""Which tokens move an output: gradients and leaving out, per token.

References:
    Sundararajan et al. 2017, Axiomatic Attribution for Deep Networks, arXiv 1703.01365 (integrated gradients).
    Shrikumar et al. 2016, Not Just a Black Box, arXiv 1605.01713 (gradient x input).

All of it differentiates our own functional encoder from the embedding sum on.
Each account is a generator that yields between its passes, so that an engine can
take turns (Engine.call); `finish` runs one at once.
Dimensions: B batch, T tokens, E width of the embedding tables, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from bert_core import model as bert
from bert_core.load import Loaded
from bert_core.measures.layers_above import layers_above
from bert_core.measures.target import (
    Target,
    check_target,
    differentiable,
    read_target,
    read_targets,
    score,
    score_place,
)
from bert_core.trace import Array, TraceRequest, prepare, reading_order, to_inputs

#: Rows of one pass: the points of the path, or the sentences with a token left out.
ROWS_A_PASS = 16
#: Largest share by which integrated gradients may miss the change that they explain.
COMPLETE = 0.01
#: Points on their path, to begin with and at most.
FIRST_STEPS, MOST_STEPS = 32, 256
#: Change of a target below which nobody can tell what share of it the values miss: rounding is as large.
LEAST_CHANGE = 1e-4
Value = TypeVar("Value")


class Attribution(NamedTuple):
    """How much each token moves the target, signed, in the target's unit.

    Attributes:
        tokens: (T,) the pieces.
        values: (T,) float64; NaN where a token can't be judged (see `leave_one_out`).
        output: the target on the input itself.
        baseline: the target on what the method compares with; None where it compares with nothing.
        gap: |sum of values - (output - baseline)| / |output - baseline|, the
            completeness that integrated gradients promise; None elsewhere, and
            where the target changes by no more than LEAST_CHANGE.
    """

    tokens: tuple[str, ...]
    values: Array
    output: float
    baseline: float | None = None
    gap: float | None = None


def finish(steps: Generator[None, None, Value]) -> Value:
    """Run a generator to its end, for its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def integrated_gradients(
    loaded: Loaded, request: TraceRequest, target: Target, steps: int = 32
) -> Generator[None, None, Attribution]:
    """Gradients along the straight path from the masked sentence to the sentence.

    The baseline has [MASK] (a zero vector where the model has none) as the token
    embedding of every content token; specials, positions and segments stay.

    Args:
        steps: points of the Gauss-Legendre rule on the path, 2 to 256.

    Raises:
        ValueError: a model that is not our own encoder, a head it lacks, or a position or class that isn't there.
    """
    if not 2 <= steps <= 256:
        raise ValueError(f"steps {steps}: choose 2 to 256")
    score = _Score(loaded, request, target)
    start, end = score.baseline, score.embeddings  # (T, E)
    points, weights = np.polynomial.legendre.leggauss(steps)
    gradient = torch.zeros_like(end)
    for first in range(0, steps, ROWS_A_PASS):
        chunk = slice(first, first + ROWS_A_PASS)
        place = torch.tensor((points[chunk] + 1) / 2, dtype=end.dtype, device=end.device)[:, None, None]
        weight = torch.tensor(weights[chunk] / 2, dtype=end.dtype, device=end.device)[:, None, None]
        gradient += (weight * score.gradient(start + place * (end - start))).sum(dim=0)  # (B, T, E) -> (T, E)
        yield
    values = ((end - start) * gradient).sum(dim=-1)
    before, after = score(torch.stack([start, end])).tolist()
    total = values.sum().item()
    change = after - before
    gap = abs(total - change) / abs(change) if abs(change) > LEAST_CHANGE else None
    return Attribution(score.tokens, score.in_reading_order(values), after, before, gap)


def gradient_x_input(
    loaded: Loaded, request: TraceRequest, target: Target
) -> Generator[None, None, Attribution]:
    """The gradient at the sentence times each token's word embedding, summed over the width."""
    score = _Score(loaded, request, target)
    gradient = score.gradient(score.embeddings[None])[0]  # (T, E)
    yield
    values = (gradient * score.word_embeddings).sum(dim=-1)
    return Attribution(score.tokens, score.in_reading_order(values), score(score.embeddings[None])[0].item())


def complete_gradients(
    loaded: Loaded, request: TraceRequest, target: Target, most_steps: int = MOST_STEPS
) -> Generator[None, None, Attribution]:
    """Integrated gradients with as many points on the path as completeness needs.

    The points are doubled until the values sum to the target's change within
    COMPLETE of it, at most to `most_steps`; `gap` says what was reached.
    """
    steps, held = FIRST_STEPS, differentiable(loaded)  # one copy of what gradients take for all of them
    result = yield from integrated_gradients(loaded, request, target, steps)
    while 2 * steps <= most_steps and result.gap is not None and result.gap > COMPLETE:
        steps *= 2
        result = yield from integrated_gradients(loaded, request, target, steps)
    del held
    return result


def gradient_accounts(
    loaded: Loaded, request: TraceRequest, target: Target, most_steps: int = MOST_STEPS
) -> Generator[None, None, tuple[Attribution, Attribution]]:
    """`gradient_x_input` and `complete_gradients`, on one copy of what gradients take."""
    held = differentiable(loaded)
    simple = yield from gradient_x_input(loaded, request, target)
    path = yield from complete_gradients(loaded, request, target, most_steps)
    del held
    return simple, path


def leave_one_out(
    loaded: Loaded, request: TraceRequest, target: Target
) -> Generator[None, None, Attribution]:
    """What the target loses when one token becomes [MASK] (is hidden, where there is no [MASK]).

    Specials and tokens that are masked already get 0: nothing is left out there.
    The token from which a causal model guesses gets NaN: its own vector carries
    it to the answer, so that hiding it from the others leaves it in.
    """
    row = prepare(loaded, request)
    taken = set(row.encoding.mask_positions)
    if target.kind == "lm":
        taken.add(target.position)
    places = [p for p in row.encoding.content if p not in taken]
    field = "hidden" if loaded.tokenizer.mask_id is None or target.kind == "lm" else "masked"
    requests = [replace(request, **{field: (*getattr(request, field), p)}) for p in places]
    whole = read_target(loaded, request, target)
    values = np.zeros(len(row.encoding))
    if target.kind == "lm":
        values[target.position] = np.nan
    for first in range(0, len(places), ROWS_A_PASS):
        chunk = slice(first, first + ROWS_A_PASS)
        values[places[chunk]] = whole - read_targets(loaded, requests[chunk], target)
        yield
    return Attribution(row.encoding.tokens, values, whole)


def rank_agreement(values: Sequence[Array]) -> list[list[float | None]]:
    """`rank_correlation` between each two of M methods over the same tokens, (T,) each."""
    return [[rank_correlation(a, b) for b in values] for a in values]


def rank_correlation(a: Array, b: Array) -> float | None:
    """Spearman's rho with average ranks for ties; None with fewer than three values, or where all are equal."""
    if len(a) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    return float(np.corrcoef(_average_ranks(a), _average_ranks(b))[0, 1])


def _average_ranks(values: Array) -> Array:
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(sizes) - (sizes - 1) / 2)[group]


# --- one differentiable run ----------------------------------------------------


class _Score:
    """The target as a function of the embedding sums, (B, T, E) -> (B,), model order inside."""

    def __init__(self, loaded: Loaded, request: TraceRequest, target: Target):
        self.model = differentiable(loaded)
        self.row = prepare(loaded, request)
        check_target(loaded, self.row, target)
        self.order = reading_order(loaded.config, len(self.row.encoding))
        self.target = target
        self.inputs = to_inputs(loaded, [self.row])
        with torch.no_grad():
            parts = bert.embed(self.model, self.inputs)
        self.embeddings, self.word_embeddings = parts.sum[0], parts.token[0]  # (T, E)
        self.baseline = self._masked_sum(loaded)

    @property
    def tokens(self) -> tuple[str, ...]:
        return self.row.encoding.tokens

    def _masked_sum(self, loaded: Loaded) -> Tensor:
        """(T, E): the sum with every content token's embedding replaced by that of [MASK]."""
        content = torch.zeros(len(self.row.encoding), dtype=torch.bool)
        content[list(self.row.encoding.content)] = True
        content = (content if self.order is None else content[self.order]).to(self.embeddings.device)
        mask = torch.zeros_like(self.word_embeddings[0])
        if loaded.tokenizer.mask_id is not None and "lm" not in self.model.heads:
            mask = bert.word_vectors(self.model, torch.tensor(loaded.tokenizer.mask_id, device=mask.device))
        if self.inputs.embedding_gate is not None:  # (1, 3): the token's first, as in EMBEDDINGS
            mask = mask * self.inputs.embedding_gate[0, 0]
        return torch.where(content[:, None], self.embeddings - self.word_embeddings + mask, self.embeddings)

    def __call__(self, sums: Tensor) -> Tensor:
        with torch.no_grad():
            return self._score(sums)

    def gradient(self, sums: Tensor) -> Tensor:
        """(B, T, E) -> the target's gradient there, (B, T, E)."""
        with torch.enable_grad():
            sums = sums.detach().requires_grad_(True)
            return torch.autograd.grad(self._score(sums).sum(), sums)[0]

    def _score(self, sums: Tensor) -> Tensor:
        position = self.target.position if self.order is None else int(self.order[self.target.position])
        hidden = last_hidden(self.model, sums, self.inputs, score_place(self.target.kind, position))  # (B, 1, D)
        return score(self.model, hidden, 0, self.target)

    def in_reading_order(self, values: Tensor) -> Array:
        array = values.double().cpu().numpy()
        return array if self.order is None else array[self.order]


def last_hidden(model: bert.Model, sums: Tensor, inputs: bert.Inputs, place: int) -> Tensor:
    """One token's last hidden state, from the embedding sum on.

    Args:
        sums: (B, T, E), B variants of the one sentence of `inputs`.
        inputs: a batch of one.
        place: of the token, in the model's order.

    Returns:
        (B, 1, D).
    """
    names = model.names
    hidden = bert.layer_norm(model, sums, names.embedding_norm)
    if names.projection is not None and f"{names.projection}.weight" in model.weights:
        hidden = bert.linear(model, hidden, names.projection)
    return layers_above(model, hidden, inputs, 0, place)
