"""Models that stand on another shipped model: shared tables and low-rank updates.

A shipped folder's config.json may say

    "shared_from": "twin-bert", "shared_tensors": ["bert."], "low_rank_scale": 2.0

Then tensors of twin-bert whose names begin so belong to this model too, unless
its own file has them; and where its file has NAME.low_rank_in (r, in) and
NAME.low_rank_out (out, r), its NAME is the shared one plus
scale x out @ in (Hu et al. 2021, LoRA, arXiv 2106.09685).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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
    tensors, factors = read_tensors(stored, names), read_factors(stored, names)
    whole = {name: tensor.float() if name in factors else tensor for name, tensor in tensors.items()}
    return dict(OnDemand(whole, factors, scale))


class OnDemand(Mapping[str, Tensor]):
    """Weights of which some are a base's matrix plus a low-rank update, added whenever one is asked for.

    A task keeps its factors only; the matrices, 43 MB of the shipped base, are
    the base's own, and the packed copies that the engine runs on are made once.

    Args:
        whole: name -> tensor, for an updated one the base's.
        factors: updated name -> (out (out, r), in (r, in)), float32.
        scale: factor on the updates.
    """

    def __init__(self, whole: Mapping[str, Tensor], factors: Mapping[str, tuple[Tensor, Tensor]], scale: float):
        self._whole, self._factors, self._scale = whole, factors, scale

    def __getitem__(self, name: str) -> Tensor:
        found = self._whole[name]
        if name not in self._factors:
            return found
        out, into = self._factors[name]
        return (found.float() + self._scale * torch.matmul(out, into)).to(found.dtype)

    def __iter__(self) -> Iterator[str]:
        return iter(self._whole)

    def __len__(self) -> int:
        return len(self._whole)


def read_factors(stored: Mapping[str, Stored], names: list[str]) -> dict[str, tuple[Tensor, Tensor]]:
    """The low-rank factors of those `names` that have some, as `OnDemand` takes them."""
    updated = [name for name in names if name + LOW_RANK_IN in stored]
    read = read_tensors(stored, [name + end for name in updated for end in (LOW_RANK_IN, LOW_RANK_OUT)])
    return {name: (read[name + LOW_RANK_OUT].float(), read[name + LOW_RANK_IN].float()) for name in updated}
