"""What training reads, made ahead of time by other processes.

A processor takes 0.1 ms to corrupt a sequence, and a GPU less than that to learn
from it. torch's DataLoader does the rest: processes, order, and their end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

from torch.utils.data import DataLoader

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")

#: Items that each process has ready.
_READY = 4


class Numbered(Protocol[T_co]):
    """What can be asked for by its number, and gives the same in any process."""

    def __getitem__(self, index: int, /) -> T_co: ...

    def __len__(self) -> int: ...


def ahead(items: Numbered[T], numbers: Sequence[int], workers: int, pin: bool = False) -> Iterator[T]:
    """`items[n]` for every n, in order, made by so many other processes; by this one where they are 0.

    Args:
        pin: whether tensors come in memory that a GPU reads by itself.
    """
    if not workers:
        return (items[n] for n in numbers)
    loader: Iterable[T] = DataLoader(
        items, batch_size=None, sampler=numbers, num_workers=workers, collate_fn=_as_it_is, pin_memory=pin,
        prefetch_factor=_READY,
    )
    return iter(loader)


def _as_it_is(item: T) -> T:
    return item
