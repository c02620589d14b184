"""The three objectives that differ between the twins, on the same packed sequences.

mlm: BERT's, masked pieces plus next-sentence prediction, both-way attention.
clm: next piece, causal attention. rtl: clm on reversed sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from bert_core import model as core
from bert_core.model import Inputs, Model
from bert_core.training.block import hidden_at
from bert_core.training.corruption import corrupt, next_token_positions, reverse_order
from bert_core.training.packing import NO_PAIR, Example, Special

OBJECTIVES = ("mlm", "clm", "rtl")
IGNORED = -100

#: (P, V) logits and (P,) targets -> summed nats, and which rows have the target on top, (P,) bool.
Summed = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]

#: Rows of the vocabulary's softmax at a time: 16 x 30,522 float32 are 2 MB.
LOSS_ROWS = 16


class Sample(NamedTuple):
    """One sequence as its objective sees it; all are (T,) or (P,) arrays.

    Attributes:
        input_ids, token_type_ids: (T,) in reading order of the model.
        positions: (P,) rows of the hidden states that make a prediction.
        targets: (P,) the ids to predict there.
        label: IS_NEXT, NOT_NEXT or NO_PAIR.
    """

    input_ids: np.ndarray
    token_type_ids: np.ndarray
    positions: np.ndarray
    targets: np.ndarray
    label: int


def moved(part: Any, device: str | torch.device) -> Any:
    """A tensor, or a NamedTuple of such parts, on a device; everything else as it is."""
    if isinstance(part, Tensor):
        return part.to(device, non_blocking=True)
    return type(part)(*(moved(one, device) for one in part)) if isinstance(part, tuple) else part


class Batch(NamedTuple):
    """A padded batch with its targets.

    Attributes:
        inputs: (B, T) tensors.
        positions: (B, 1 + C) positions whose last hidden state is read: [CLS],
            then the chosen ones, filled up with 0.
        chosen: (B, 1 + C) bool, True where a prediction is made; P in all.
        targets: (P,) true ids.
        labels: (B,) NSP labels, IGNORED where there is no pair.
    """

    inputs: Inputs
    positions: Tensor
    chosen: Tensor
    targets: Tensor
    labels: Tensor

    def to(self, device: str | torch.device) -> Batch:
        """The same on a device; what a GPU reads by itself comes while it works."""
        return moved(self, device)


class Losses(NamedTuple):
    """Sums over a batch, so that batches and processes can be added up; tensors are (), and nobody waited for them."""

    token: Tensor  # nats
    tokens: int  # predictions made
    token_hits: Tensor
    nsp: Tensor  # nats
    pairs: int
    pair_hits: Tensor


@dataclass(frozen=True)
class Objective:
    """What one of the twins is trained to do.

    Attributes:
        kind: one of OBJECTIVES.
        special: ids of the special tokens.
        random_ids: ids that a random replacement is drawn from.
        mask_rate: share of the pieces in the masked-LM loss.
        loss_fraction: share of the positions in the causal loss, drawn anew
            for each sequence; an unbiased estimate of the whole.
        nsp: whether next-sentence prediction is part of mlm.
        seed: of corruption.
    """

    kind: str
    special: Special
    random_ids: np.ndarray
    mask_rate: float = 0.15
    loss_fraction: float = 1.0
    nsp: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind not in OBJECTIVES:
            raise ValueError(f"objective {self.kind!r} is unknown; choose one of {', '.join(OBJECTIVES)}")
        for name in ("mask_rate", "loss_fraction"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be above 0 and at most 1")

    def sample(self, example: Example) -> Sample:
        """Corrupt one sequence; depends on the seed and the sequence's number only."""
        rng = np.random.default_rng((self.seed, example.index))
        segments = (np.arange(len(example.ids)) >= example.first).astype(np.int64)
        if self.kind == "mlm":
            fixed = np.isin(example.ids, (self.special.cls, self.special.sep, self.special.unk))
            seen = corrupt(example.ids, fixed, self.special.mask, self.random_ids, rng, self.mask_rate)
            label = example.label if self.nsp else NO_PAIR
            return Sample(seen.input_ids, segments, seen.positions, seen.labels, label)
        ids = example.ids
        if self.kind == "rtl":
            order = reverse_order(len(ids))
            ids, segments = ids[order], segments[order]
        rows = next_token_positions(len(ids), self.loss_fraction, rng)
        return Sample(ids, segments, rows, ids[rows + 1], NO_PAIR)

    def collate(self, samples: Sequence[Sample], device: str | torch.device = "cpu") -> Batch:
        """Pad to the longest sequence of the batch."""
        count, longest = len(samples), max(len(s.input_ids) for s in samples)
        ids = np.full((count, longest), self.special.pad)
        segments, mask = np.zeros((count, longest), dtype=np.int64), np.zeros((count, longest), dtype=bool)
        for row, sample in enumerate(samples):
            size = len(sample.input_ids)
            ids[row, :size], segments[row, :size], mask[row, :size] = sample.input_ids, sample.token_type_ids, True
        widest = max(len(s.positions) for s in samples)
        positions, chosen = np.zeros((count, 1 + widest), dtype=np.int64), np.zeros((count, 1 + widest), dtype=bool)
        for row, sample in enumerate(samples):
            made = slice(1, 1 + len(sample.positions))
            positions[row, made], chosen[row, made] = sample.positions, True
        targets = np.concatenate([s.targets for s in samples])
        labels = np.array([IGNORED if s.label == NO_PAIR else s.label for s in samples])
        causal = torch.full((count,), self.kind != "mlm", device=device)
        inputs = Inputs(*(torch.from_numpy(array).to(device) for array in (ids, segments, mask)), causal)
        rest = (positions, chosen, targets.astype(np.int64), labels.astype(np.int64))
        return Batch(inputs, *(torch.from_numpy(array).to(device) for array in rest))


def losses(model: Model, batch: Batch) -> Losses:
    """Forward pass and summed losses; only the chosen positions meet the vocabulary projection."""
    read = hidden_at(model, batch.inputs, batch.positions)  # (B, 1 + C, D)
    labelled = batch.labels != IGNORED
    return head_losses(model, read[batch.chosen], batch.targets, read[labelled, 0], batch.labels[labelled])


def head_losses(
    model: Model, asked: Tensor, targets: Tensor, first: Tensor, labels: Tensor, summed: Summed | None = None
) -> Losses:
    """Summed losses from the last hidden states.

    Args:
        asked: (P, D), where a prediction is made.
        targets: (P,) true ids.
        first: (S, D), of the [CLS] of labelled pairs.
        labels: (S,) NSP labels.
        summed: gives what SummedLoss does, instead of it.
    """
    token, right = (summed or SummedLoss.apply)(core.mlm_logits(model, asked), targets)
    hits, pairs = right.sum(), len(labels)
    if not pairs:
        return Losses(token, len(targets), hits, token.new_zeros(()), 0, hits.new_zeros(()))
    scores = exact(core.nsp_logits(model, core.pooled_output(model, first[:, None])))  # (S, 2)
    nsp = F.cross_entropy(scores, labels, reduction="sum")
    return Losses(token, len(targets), hits, nsp, pairs, (scores.argmax(-1) == labels).sum())


def exact(logits: Tensor) -> Tensor:
    """Half precision as float32 for the loss; float32 and float64 as they are."""
    return logits.float() if logits.dtype in (torch.bfloat16, torch.float16) else logits


class SummedLoss(torch.autograd.Function):
    """Cross-entropy summed over rows, on the CPU a few at a time, so that they stay in its cache.

    The gradient is softmax - one-hot; it is made with the loss and kept in the
    logits' own precision.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Nats over (P, V) logits and (P,) targets, and which rows have the target on top, (P,) bool."""
        gradient = torch.empty_like(logits)
        total = exact(logits.new_zeros(()))
        right = torch.empty(len(targets), dtype=torch.bool, device=targets.device)
        step = LOSS_ROWS if logits.device.type == "cpu" else max(1, len(targets))
        for start in range(0, len(targets), step):
            part = slice(start, start + step)
            scores, own = exact(logits[part]), targets[part, None]  # (R, V), (R, 1)
            top, best = scores.max(-1, keepdim=True)
            probs = scores.softmax(-1)
            # log of the sum, from the likeliest entry: its probability is at least 1/V
            total += (top - probs.gather(1, best).log() - scores.gather(1, own)).sum()
            right[part] = (best == own)[:, 0]
            probs.scatter_add_(1, own, probs.new_full(own.shape, -1.0))
            gradient[part] = probs
        ctx.save_for_backward(gradient)
        ctx.mark_non_differentiable(right)
        return total, right

    @staticmethod
    def backward(ctx: Any, loss: Tensor, _right: Tensor) -> tuple[Tensor, None]:
        (gradient,) = ctx.saved_tensors
        return gradient * loss.to(gradient.dtype), None
