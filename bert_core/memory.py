"""Memory for the wide parts of a Trace, without a page fault every four kilobytes.

A full Trace of a base-size model at 512 tokens is about 550 MB that is written
once. In pages of 4 KB the kernel is entered 140,000 times for it; in huge pages
of 2 MB, where the kernel gives them on request, 275 times.
"""

from __future__ import annotations

import math
import mmap

import numpy as np
import torch
from torch import Tensor

#: Smaller arrays are left to torch, whose allocator reuses its memory.
_LEAST_BYTES = 4 * 2**20
_ADVICE = getattr(mmap, "MADV_HUGEPAGE", None)
_NUMPY = {torch.float32: np.float32, torch.float64: np.float64}


def empty(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """An uninitialised tensor with the dtype and device of `like`.

    Args:
        shape: of the result.
        like: decides dtype and device; huge pages are asked for on the CPU only.
    """
    size = math.prod(shape) * like.element_size()
    if size < _LEAST_BYTES or like.device.type != "cpu" or like.dtype not in _NUMPY or _ADVICE is None:
        return like.new_empty(shape)
    pages = mmap.mmap(-1, size)
    try:
        pages.madvise(_ADVICE)
    except OSError:  # a kernel without huge pages serves small ones
        return like.new_empty(shape)
    return torch.from_numpy(np.frombuffer(pages, dtype=_NUMPY[like.dtype], count=math.prod(shape)).reshape(shape))
