"""bf16 arithmetic: where the hardware has it, and where it is the faster one."""

from __future__ import annotations

import functools

import torch
import torch.nn.functional as F

from bert_core.kernels import ratio_of_best

#: Rows, inputs and outputs of the product that is timed: a training step's, in the shipped size.
_PRODUCT = (1024, 384, 1536)


def has_bf16(device: str) -> bool:
    """Whether the hardware has instructions for bf16; elsewhere it is emulated, several times slower than fp32.

    Args:
        device: as torch names it: 'cpu', 'cuda', 'cuda:1'.
    """
    if device.startswith("cuda"):
        return torch.cuda.is_bf16_supported()
    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()


@functools.cache
def bf16_is_faster() -> bool:
    """Whether this processor multiplies large matrices faster in bf16 than in fp32, measured once (0.1 s).

    AVX-512's bf16 instructions do twice the work of fp32's on some processors,
    and no more than fp32's on others.
    """
    rows, width, out = _PRODUCT
    pairs = [(torch.randn(rows, width).to(dtype), torch.randn(out, width).to(dtype))
             for dtype in (torch.bfloat16, torch.float32)]
    half, single = pairs
    return ratio_of_best(lambda: F.linear(*half), lambda: F.linear(*single)) < 1
