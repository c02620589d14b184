"""Models that stand on another shipped model: shared tables and low-rank updates.

A shipped folder's config.json may say

    "shared_from": "twin-bert", "shared_tensors": ["bert."], "low_rank_scale": 2.0

Then tensors of twin-bert whose names begin so belong to this model too, unless
its own file has them; and where its file has NAME.low_rank_in (r, in) and
NAME.low_rank_out (out, r), its NAME is the shared one plus
scale x out @ in (Hu et al. 2021, LoRA, arXiv 2106.09685).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import torch
from torch import Tensor

from bert_core.config import BertConfig
from bert_core.loading.errors import LoadError
from bert_core.loading.files import Stored, read_tensors
from bert_core.on_demand import Make, OnDemand

LOW_RANK_IN, LOW_RANK_OUT = ".low_rank_in", ".low_rank_out"


def prefixes(config: BertConfig) -> list[str]:
    """How the names of the shared tensors begin.

    Raises:
        LoadError: config.json gives something else than words.
    """
    names = config.extra.get("shared_tensors", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise LoadError(f"config: shared_tensors is {names!r}; it must be a list of words")
    return names


def low_rank_scale(config: BertConfig) -> float:
    """The factor on the low-rank updates.

    Raises:
        LoadError: config.json gives no number.
    """
    scale = config.extra.get("low_rank_scale", 1.0)
    if not isinstance(scale, int | float) or not abs(scale) < 1e6:  # not for NaN either
        raise LoadError(f"config: low_rank_scale is {scale!r}; it must be a number")
    return float(scale)


def combine(base: Mapping[str, Stored], own: Mapping[str, Stored], prefixes: list[str]) -> dict[str, Stored]:
    """Every tensor that the model has or builds on, its own before the shared.

    Low-rank factors keep their names; `visible` leaves them out.
    """
    taken = {name: place for name, place in base.items() if name.startswith(tuple(prefixes))}
    check_factors({**taken, **own})
    return {**taken, **own}


def check_factors(stored: Mapping[str, Stored]) -> None:
    """LoadError unless every low-rank factor has its partner and a matrix that their product fits."""
    for name in stored:
        if not name.endswith((LOW_RANK_IN, LOW_RANK_OUT)):
            continue
        updated = name.removesuffix(LOW_RANK_IN).removesuffix(LOW_RANK_OUT)
        for needed in (updated + LOW_RANK_IN, updated + LOW_RANK_OUT):
            if needed not in stored:
                raise LoadError(f"{needed} is missing: a low-rank update has two factors")
        if updated not in stored:
            raise LoadError(f"{name} updates a tensor that neither its own file nor a base model gives")
        into, out = stored[updated + LOW_RANK_IN].shape, stored[updated + LOW_RANK_OUT].shape
        if len(into) != 2 or out[1:] != into[:1] or stored[updated].shape != (*out[:1], *into[1:]):
            raise LoadError(f"the low-rank factors of {updated} have shapes {out} and {into}; "
                            f"it has {stored[updated].shape}")


def visible(stored: Mapping[str, Stored]) -> dict[str, Stored]:
    """The tensors that the model itself has."""
    return {name: place for name, place in stored.items() if not name.endswith((LOW_RANK_IN, LOW_RANK_OUT))}


def read_merged(stored: Mapping[str, Stored], names: list[str], scale: float) -> dict[str, Tensor]:
    """The tensors `names`, low-rank updates added in float32."""
    tensors, factors = read_tensors(stored, names), read_factors(stored, names)
    whole = {name: tensor.float() if name in factors else tensor for name, tensor in tensors.items()}
    return dict(OnDemand({**whole, **updated(whole, factors, scale)}))


def updated(whole: Mapping[str, Tensor], factors: Mapping[str, tuple[Tensor, Tensor]], scale: float) -> dict[str, Make]:
    """How to make each matrix that a low-rank update changes.

    A task keeps its factors only; the matrices, 43 MB of the shipped base, are
    the base's own, and the packed copies that the engine runs on are made once.

    Args:
        whole: name -> tensor, for an updated one the base's.
        factors: updated name -> (out (out, r), in (r, in)), float32.
        scale: factor on the updates.
    """
    return {name: functools.partial(_sum, whole[name], *pair, scale) for name, pair in factors.items()}


def _sum(base: Tensor, out: Tensor, into: Tensor, scale: float) -> Tensor:
    return (base.float() + scale * torch.matmul(out, into)).to(base.dtype)


def read_factors(stored: Mapping[str, Stored], names: list[str]) -> dict[str, tuple[Tensor, Tensor]]:
    """The low-rank factors of those `names` that have some, as `updated` takes them."""
    changed = [name for name in names if name + LOW_RANK_IN in stored]
    read = read_tensors(stored, [name + end for name in changed for end in (LOW_RANK_IN, LOW_RANK_OUT)])
    return {name: (read[name + LOW_RANK_OUT].float(), read[name + LOW_RANK_IN].float()) for name in changed}
