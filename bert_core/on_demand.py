"""Weights that are made when they are read, and kept by nobody."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

#: How to make a tensor, each time anew.
Make = Callable[[], Tensor]


class Halved:
    """A float32 table whose numbers are all float16's too, in half the memory; `halved` makes it.

    Called it gives the whole table, anew each time.
    """

    def __init__(self, half: Tensor):
        self._half = half

    def __call__(self) -> Tensor:
        return self._half.float()

    def rows(self, ids: Tensor) -> Tensor:
        """(...) row numbers -> (..., width), without the rest of the table."""
        return F.embedding(ids, self._half).float()

    def holds(self, half: Tensor) -> bool:
        """Whether it is this table."""
        return torch.equal(self._half, half)


_HALVED: weakref.WeakSet[Halved] = weakref.WeakSet()
_one_at_a_time = threading.Lock()


def halved(table: Tensor) -> Halved | None:
    """The same table in half the memory, None if it would lose a bit; equal tables (a task's, its base's) are one."""
    half = table.half()
    if table.dtype != torch.float32 or not torch.equal(half.float(), table):
        return None
    with _one_at_a_time:  # two models may be loaded at once
        found = next((known for known in _HALVED if known.holds(half)), None)
        if found is None:
            _HALVED.add(found := Halved(half))
    return found


class _Whole(dict[str, Tensor]):
    """Plain weights that a weak reference may point to."""


def plain(weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Weights to be read many times over: each made at most once, and shared (see `OnDemand.whole`)."""
    return weights.whole() if isinstance(weights, OnDemand) else weights


class OnDemand(Mapping[str, Tensor]):
    """A model's weights, some of them held as the way to make them.

    The encoder runs on packed matrices; training, export and the
    views of single numbers want plain ones, but seldom. Kept beside the packed
    they would double a model's memory.

    Args:
        entries: name -> its tensor, or what makes it whenever it is asked for.
    """

    def __init__(self, entries: Mapping[str, Tensor | Make]):
        self._entries = dict(entries)
        self._whole: Callable[[], _Whole | None] = lambda: None

    def __getitem__(self, name: str) -> Tensor:
        found = self._entries[name]
        return found if isinstance(found, Tensor) else found()

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def whole(self) -> Mapping[str, Tensor]:
        """Every tensor made, once for all who have them at the same time; gone with the last of those."""
        with _one_at_a_time:
            found = self._whole()
            if found is None:
                found = _Whole(self)
                self._whole = weakref.ref(found)
        return found

    def rows(self, name: str, ids: Tensor) -> Tensor:
        """(...) row numbers -> (..., width) of the table `name`."""
        found = self._entries[name]
        return found.rows(ids) if isinstance(found, Halved) else F.embedding(ids, self[name])
