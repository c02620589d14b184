"""Weights that are made when they are read, and kept by nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from torch import Tensor

#: How to make a tensor, each time anew.
Make = Callable[[], Tensor]


class OnDemand(Mapping[str, Tensor]):
    """A model's weights, some of them held as the way to make them.

    The encoder runs on matrices in oneDNN's layout; training, export and the
    views of single numbers want plain ones, but seldom. Kept beside the packed
    they would double a model's memory.

    Args:
        entries: name -> its tensor, or what makes it whenever it is asked for.
    """

    def __init__(self, entries: Mapping[str, Tensor | Make]):
        self._entries = dict(entries)

    def __getitem__(self, name: str) -> Tensor:
        found = self._entries[name]
        return found if isinstance(found, Tensor) else found()

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
