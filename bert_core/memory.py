"""Memory for the wide parts of a Trace: touched once, then used again.

A full Trace of a base-size model at 512 tokens is about 550 MB that is written
once. Fresh memory is what costs then: the kernel clears every page at its first
touch, at a tenth of the speed at which the page is written later. So blocks are
asked for in huge pages of 2 MB, and a block whose arrays are gone waits for the
next Trace.
"""

from __future__ import annotations

import ctypes
import errno
import math
import mmap
import threading
import time
import weakref
from collections import deque

import numpy as np
import torch
from torch import Tensor

#: Smaller arrays are left to torch, whose allocator reuses its memory.
_LEAST_BYTES = 2**20
#: Most bytes that wait for the next Trace: one of a base-size model at 512 tokens.
_MOST_IDLE_BYTES = 640 * 2**20
#: How long they wait where `let_go_unused` is called: somebody who types a long text takes them again sooner.
_MOST_IDLE_SECONDS = 10.0
_ADVICE = getattr(mmap, "MADV_HUGEPAGE", None)
_NUMPY = {torch.float32: np.float32, torch.float64: np.float64}


class Blocks:
    """Anonymous memory that is handed out again when nothing looks at it any more.

    Safe to use from several threads. What is handed out holds whatever was
    written last, so the taker writes all of it before anybody reads.

    Args:
        most_idle: bytes that may wait; blocks beyond, the oldest first, go back to the kernel.
    """

    def __init__(self, most_idle: int = _MOST_IDLE_BYTES) -> None:
        self.most_idle = most_idle
        self._idle: list[tuple[mmap.mmap, float]] = []  # and since when; the one that came back last at the end
        self._returned: deque[mmap.mmap] = deque()  # not sorted in yet
        self._lock = threading.Lock()

    @property
    def idle_bytes(self) -> int:
        """Bytes that wait for a taker."""
        return sum(len(pages) for pages, _ in self._idle) + sum(map(len, self._returned))

    def let_go(self, seconds: float) -> None:
        """Give back to the kernel what nobody took for so long."""
        with self._lock:
            self._sort_in()
            latest = time.monotonic() - seconds
            self._idle = [(pages, since) for pages, since in self._idle if since > latest]

    def take(self, size: int) -> ctypes.Array[ctypes.c_char]:
        """At least `size` bytes; whatever refers to the result keeps it.

        Raises:
            OSError: the kernel has none left.
        """
        wanted = rounded(size)
        with self._lock:
            self._sort_in()
            found = next((n for n in reversed(range(len(self._idle))) if len(self._idle[n][0]) == wanted), None)
            pages = None if found is None else self._idle.pop(found)[0]
        if pages is None:
            pages = mmap.mmap(-1, wanted, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            if _ADVICE is not None:
                pages.madvise(_ADVICE)
        handed_out = (ctypes.c_char * wanted).from_buffer(pages)
        weakref.finalize(handed_out, self._give_back, pages).atexit = False  # at the end nobody takes pages any more
        return handed_out

    def _give_back(self, pages: mmap.mmap) -> None:
        """Called in whatever thread let go last, perhaps in the middle of `take`: so it never waits."""
        self._returned.append(pages)
        if self._lock.acquire(blocking=False):
            try:
                self._sort_in()
            finally:
                self._lock.release()

    def _sort_in(self) -> None:
        while self._returned:
            self._idle.append((self._returned.popleft(), time.monotonic()))
        while sum(len(pages) for pages, _ in self._idle) > self.most_idle:
            self._idle.pop(0)


def rounded(size: int) -> int:
    """The block size for `size` bytes: one of four to each power of two, so that blocks fit again."""
    step = max(mmap.PAGESIZE, 2 ** max(0, size.bit_length() - 3))
    return -(-size // step) * step


_BLOCKS = Blocks()


def empty(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """An uninitialised tensor; on the CPU a wide one comes from blocks that are used again."""
    size = math.prod(shape) * dtype.itemsize
    if size < _LEAST_BYTES or device.type != "cpu" or dtype not in _NUMPY:
        return torch.empty(shape, dtype=dtype, device=device)
    try:
        block = _BLOCKS.take(size)
    except (OSError, AttributeError):  # no room, no huge pages, or a system without private mappings
        return torch.empty(shape, dtype=dtype, device=device)
    return torch.from_numpy(np.frombuffer(block, dtype=_NUMPY[dtype], count=math.prod(shape)).reshape(shape))


def ran_out(error: BaseException) -> bool:
    """Whether memory was all that was missing; NumPy, mmap, torch and its GPU say so in ways of their own."""
    named = isinstance(error, MemoryError | torch.OutOfMemoryError) or getattr(error, "errno", None) == errno.ENOMEM
    return named or (isinstance(error, RuntimeError) and "allocate memory" in str(error))


def let_go_unused() -> None:
    """Give waiting blocks back that no Trace took for a while; a server calls it every second or so."""
    _BLOCKS.let_go(_MOST_IDLE_SECONDS)


def return_freed() -> bool:
    """Hand memory that was freed back to the system; glibc keeps what lies between things in use. Takes milliseconds.

    Returns:
        Whether that can be asked for here.
    """
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):
        return False
    trim(0)
    return True
