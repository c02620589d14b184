"""Memory that is read all the time, moved into pages of 2 MB.

A base-size model's packed weights are 340 MB. In pages of 4 KB the processor
looks up 83,000 addresses to read them once, and for a short sentence, whose
time is the way of the weights from memory, that is a tenth of a Trace.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Iterable

PAGE = 2**21
#: Spans less far apart than this are moved together, with what lies between.
_MOST_BETWEEN = PAGE
#: Linux: use huge pages here from now on, and (since 6.1) move what is there into them at once.
_MADV_HUGEPAGE, _MADV_COLLAPSE = 14, 25


@functools.cache
def _madvise() -> Callable[[int, int, int], int] | None:
    """The C library's madvise; None where there is none, or where the numbers above mean something else."""
    if sys.platform != "linux":
        return None
    try:
        call = ctypes.CDLL(None).madvise
    except (OSError, AttributeError, TypeError):
        return None
    call.argtypes, call.restype = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int), ctypes.c_int
    return call


def joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """(start, end) of the whole huge pages within the spans, neighbours taken together.

    Args:
        spans: (first address, bytes).
    """
    runs: list[list[int]] = []
    for start, size in sorted(spans):
        if runs and start - runs[-1][1] < _MOST_BETWEEN:
            runs[-1][1] = max(runs[-1][1], start + size)
        else:
            runs.append([start, start + size])
    whole = ((-(-start // PAGE) * PAGE, end // PAGE * PAGE) for start, end in runs)
    return [(start, end) for start, end in whole if end > start]


def gather(spans: Iterable[tuple[int, int]]) -> int:
    """Move these stretches of memory into huge pages, where the system can; what they hold stays.

    Costs about 3 ms for each MB moved, once.

    Returns:
        Bytes now in huge pages; 0 where there are none to be had.
    """
    advise = _madvise()
    if advise is None:
        return 0
    moved = 0
    for start, end in joined(spans):
        if advise(start, end - start, _MADV_HUGEPAGE) == 0 and advise(start, end - start, _MADV_COLLAPSE) == 0:
            moved += end - start
    return moved
