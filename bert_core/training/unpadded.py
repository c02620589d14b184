"""Sequences one after the other in a row, without padding between them: how a GPU reads fastest.

Half of a corpus's sequences are short, and a padded batch of like lengths has
another shape each time. A row has one shape for all of a run, so that its
layers are compiled once, and attention is told where each sequence ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from bert_core import model as core
from bert_core.model import Inputs, Model
from bert_core.training.block import HIDDEN_SCORE, contexts, hidden_before, last_context
from bert_core.training.objectives import Losses, Sample, Summed, exact, head_losses, moved
from bert_core.training.packing import NO_PAIR

#: A row's length is a multiple of it, which matrix products like.
_MULTIPLE = 64


class Row(NamedTuple):
    """Whole sequences in one row, with their targets.

    Attributes:
        inputs: (1, T) tensors; [PAD] fills the row up.
        ends: (N + 1,) int32, 0 and where each sequence ends; what fills the row up counts as sequences.
        longest: most pieces of a sequence.
        causal: whether a piece sees only what stands before it in its sequence.
        asked: (P,) places in the row at which a prediction is made.
        targets: (P,) true ids.
        firsts: (S,) places of the [CLS] of labelled pairs.
        labels: (S,) NSP labels.
    """

    inputs: Inputs
    ends: Tensor
    longest: int
    causal: bool
    asked: Tensor
    targets: Tensor
    firsts: Tensor
    labels: Tensor

    def to(self, device: str | torch.device) -> Row:
        """The same on a device; what a GPU reads by itself comes while it works."""
        return moved(self, device)


def room_for(least: int, longest: int) -> int:
    """Pieces of a row that takes whole sequences of at most `longest` until it has `least`."""
    return -(-(least + longest) // _MULTIPLE) * _MULTIPLE


def rows_of(samples: Sequence[Sample], least: int) -> Iterator[Sequence[Sample]]:
    """Consecutive sequences, as many for each row as make `least` pieces; the last row may have fewer."""
    start = pieces = 0
    for end, sample in enumerate(samples, 1):
        pieces += len(sample.input_ids)
        if pieces >= least:
            yield samples[start:end]
            start, pieces = end, 0
    if start < len(samples):
        yield samples[start:]


def join(samples: Sequence[Sample], room: int, longest: int, pad: int, causal: bool) -> Row:
    """Put sequences into one row.

    Args:
        room: pieces of the row, at least those of the samples.
        longest: most pieces of a sequence; the filling is cut into such lengths, too.
        pad: id that fills the row up.
    """
    lengths = [len(sample.input_ids) for sample in samples]
    left = room - sum(lengths)
    filling = [min(longest, left - at) for at in range(0, left, longest)]
    starts = np.cumsum([0, *lengths])
    ids, segments = np.full(room, pad), np.zeros(room, dtype=np.int64)
    ids[: starts[-1]] = np.concatenate([sample.input_ids for sample in samples])
    segments[: starts[-1]] = np.concatenate([sample.token_type_ids for sample in samples])
    places = np.concatenate([np.arange(length) for length in [*lengths, *filling]])
    asked = np.concatenate([sample.positions + start for sample, start in zip(samples, starts, strict=False)])
    labelled = [(start, sample.label) for sample, start in zip(samples, starts, strict=False)
                if sample.label != NO_PAIR]
    pairs = np.array(labelled, dtype=np.int64).reshape(-1, 2)
    ends = np.cumsum([0, *lengths, *filling]).astype(np.int32)
    targets = np.concatenate([sample.targets for sample in samples])
    token_ids, types, position_ids, *rest = (
        torch.from_numpy(array.astype(np.int64)) for array in (ids, segments, places, asked, targets, *pairs.T))
    inputs = Inputs(token_ids[None], types[None], torch.ones(1, room, dtype=torch.bool), torch.tensor([causal]),
                    position_ids[None])
    return Row(inputs, torch.from_numpy(ends), longest, causal, *rest)


def losses(model: Model, row: Row) -> Losses:
    """What `objectives.losses` gives for the same sequences, each attending to itself alone."""
    layers, summed = _programs(row.inputs.input_ids.device.type)
    if row.inputs.input_ids.is_cuda:
        torch._dynamo.maybe_mark_dynamic(row.ends, 0)  # another number of sequences is no other program
    hidden, context = layers(model, row.inputs, row.ends, row.longest, row.causal)
    read = torch.cat([row.firsts, row.asked])
    last = core.after_context(model, model.config.num_hidden_layers - 1, hidden.index_select(1, read),
                              context.index_select(1, read))[-1][0]  # (S + P, D)
    first, asked = last.split([len(row.firsts), len(row.asked)])
    return head_losses(model, asked, row.targets, first, row.labels, summed)


@cache
def _programs(device: str) -> tuple[Callable[..., tuple[Tensor, Tensor]], Summed | None]:
    """The layers and the tokens' loss: compiled for a GPU, on a processor as they are for padded batches."""
    if device != "cuda":
        return _before_last_context, None
    return torch.compile(_before_last_context), torch.compile(summed_loss, dynamic=True)


def summed_loss(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """What SummedLoss gives, in lines that a compiler joins into few passes over the (P, V) logits."""
    scores = exact(logits)
    return F.cross_entropy(scores, targets, reduction="sum"), scores.argmax(-1) == targets


def _before_last_context(
    model: Model, inputs: Inputs, ends: Tensor, longest: int, causal: bool
) -> tuple[Tensor, Tensor]:
    """What the last layer reads and its heads' contexts, two of (1, T, D)."""

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        parts = (part[0].transpose(0, 1).contiguous() for part in (query, key, value))  # (T, H, Dh) each
        return attended(*parts, ends, longest, causal).transpose(0, 1)[None]

    hidden = hidden_before(model, inputs, attend)
    return hidden, last_context(model, hidden, attend)


def attended(query: Tensor, key: Tensor, value: Tensor, ends: Tensor, longest: int, causal: bool) -> Tensor:
    """Contexts of all heads where each sequence attends to itself alone, three of (T, H, Dh) -> (T, H, Dh).

    A GPU has a kernel for it; elsewhere the sequences take turns.
    """
    if query.is_cuda:
        return by_kernel(query, key, value, ends, longest, causal)
    by_head = (part.transpose(0, 1).split(ends.diff().tolist(), 1) for part in (query, key, value))
    later = query.new_full((longest, longest), HIDDEN_SCORE).triu(1) if causal else None
    each = [contexts(q, k, v, None if later is None else later[: q.shape[1], : q.shape[1]])  # (H, t, Dh)
            for q, k, v in zip(*by_head, strict=True)]
    return torch.cat(each, 1).transpose(0, 1)


def by_kernel(query: Tensor, key: Tensor, value: Tensor, ends: Tensor, longest: int, causal: bool) -> Tensor:
    """The same by FlashAttention's kernel (Dao 2023, arXiv 2307.08691), in half precision."""
    from torch.nn.attention.varlen import varlen_attn

    return varlen_attn(query, key, value, ends, ends, longest, longest, window_size=(-1, 0 if causal else -1))
