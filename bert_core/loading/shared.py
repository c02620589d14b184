"""Models that stand on another shipped model: shared tables and low-rank updates.

A shipped folder's config.json may say

    "shared_from": "twin-bert", "shared_tensors": ["bert."], "low_rank_scale": 2.0

Then tensors of twin-bert whose names begin so belong to this model too, unless
its own file has them; and where its file has NAME.low_rank_in (r, in) and
NAME.low_rank_out (out, r), its NAME is the shared one plus
scale x out @ in (Hu et al. 2021, LoRA, arXiv 2106.09685).
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from bert_core.loading.errors import LoadError
from bert_core.loading.files import Stored, read_tensors

LOW_RANK_IN, LOW_RANK_OUT = ".low_rank_in", ".low_rank_out"


def combine(base: Mapping[str, Stored], own: Mapping[str, Stored], prefixes: list[str]) -> dict[str, Stored]:
    """Every tensor that the model has or builds on, its own before the shared.

    Low-rank factors keep their names; `visible` leaves them out.
    """
    taken = {name: place for name, place in base.items() if name.startswith(tuple(prefixes))}
    for name in own:
        if name.endswith(LOW_RANK_IN) and name.removesuffix(LOW_RANK_IN) not in taken:
            raise LoadError(f"{name} updates a tensor that its base model does not share")
    return {**taken, **own}


def visible(stored: Mapping[str, Stored]) -> dict[str, Stored]:
    """The tensors that the model itself has."""
    return {name: place for name, place in stored.items() if not name.endswith((LOW_RANK_IN, LOW_RANK_OUT))}


def read_merged(stored: Mapping[str, Stored], names: list[str], scale: float) -> dict[str, Tensor]:
    """The tensors `names`, low-rank updates added in float32."""
    tensors = read_tensors(stored, names)
    updated = [name for name in names if name + LOW_RANK_IN in stored]
    factors = read_tensors(stored, [name + end for name in updated for end in (LOW_RANK_IN, LOW_RANK_OUT)])
    for name in updated:
        change = torch.matmul(factors[name + LOW_RANK_OUT].float(), factors[name + LOW_RANK_IN].float())
        tensors[name] = tensors[name].float() + scale * change
    return tensors
