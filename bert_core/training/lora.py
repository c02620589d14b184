"""Low-rank updates: fine-tuned models stored as a small difference to their base.

Hu et al. 2021, LoRA (arXiv 2106.09685): a matrix W of the base becomes
W + scale x out @ in with `out` (out, r) and `in` (r, in). Stored under
`NAME.low_rank_out` and `NAME.low_rank_in`, NAME being the matrix it updates.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from bert_core.loading.shared import LOW_RANK_IN, LOW_RANK_OUT


def factors(weights: Mapping[str, Tensor], rank: int, seed: int) -> dict[str, Tensor]:
    """Fresh factors for every matrix of the encoder's layers and the pooler: `in` random, `out` zero."""
    generator = torch.Generator().manual_seed(seed)
    fresh = {}
    for name, weight in sorted(weights.items()):
        if weight.dim() == 2 and name.startswith(("bert.encoder.", "bert.pooler.")):
            out, width = weight.shape
            fresh[name + LOW_RANK_IN] = torch.randn(rank, width, generator=generator) * width**-0.5
            fresh[name + LOW_RANK_OUT] = torch.zeros(out, rank)
    return fresh


def apply(base: Mapping[str, Tensor], low_rank: Mapping[str, Tensor], scale: float) -> dict[str, Tensor]:
    """The base's weights with every update added; gradients flow into the factors."""
    weights = dict(base)
    for name, into in low_rank.items():
        if name.endswith(LOW_RANK_IN):
            target = name.removesuffix(LOW_RANK_IN)
            weights[target] = base[target] + scale * (low_rank[target + LOW_RANK_OUT] @ into)
    return weights


def is_factor(name: str) -> bool:
    """Whether a stored tensor is half of a low-rank update."""
    return name.endswith((LOW_RANK_IN, LOW_RANK_OUT))
