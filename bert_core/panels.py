"""Linears in float32 over weights in panels, with a kernel of our own (panels.c), compiled when it is first needed.

For a sentence the products of a base-size model take as long as its 340 MB of
weights are on their way from memory. oneDNN computes and fetches by turns; this
kernel does both at once. A row's numbers are the same whatever other rows are
computed beside it, and no length of text needs a kernel of its own. It takes
Linux, GCC and a processor with AVX2; elsewhere oneDNN serves (kernels.py, which
tests both and times them).
"""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from bert_core.model import activate

_SOURCE = Path(__file__).with_suffix(".c")
_FLAGS = ("-O3", "-march=native", "-fopenmp", "-shared", "-fPIC")
_SECONDS = 30
#: Activations that need no memory of their own.
_IN_PLACE = {"gelu": torch.ops.aten.gelu_, "relu": torch.relu_, "tanh": torch.tanh_}


def _compiled() -> ctypes.CDLL:
    """panels.c as a library of this process; its file is gone again when this returns.

    Raises:
        OSError, subprocess.SubprocessError: there is no compiler, or it can't.
    """
    compiler = shutil.which("cc")
    if sys.platform != "linux" or compiler is None:
        raise OSError("no C compiler for this system")
    with tempfile.TemporaryDirectory(prefix="both-ways-") as folder:
        library = Path(folder) / "panels.so"
        subprocess.run([compiler, *_FLAGS, "-o", library, _SOURCE], check=True, timeout=_SECONDS,
                       stdin=subprocess.DEVNULL, capture_output=True)
        return ctypes.CDLL(str(library))


def _pools() -> set[str]:
    """The libraries of OpenMP that this process has, each with threads of its own."""
    return {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libgomp" in line}


@functools.cache
def _library() -> ctypes.CDLL | None:
    """The kernel; None where BOTH_WAYS_COMPILE is 'off' or it can't be had."""
    if os.environ.get("BOTH_WAYS_COMPILE", "on").lower() == "off":
        return None
    try:
        before, library = _pools(), _compiled()
        if _pools() - before:  # it runs on other threads than torch's, which would wait for work on the same cores
            return None
        library.product.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_long] * 3 + [ctypes.c_int]
        library.product.restype = None
    except (OSError, subprocess.SubprocessError, AttributeError):  # no compiler, or one that makes something else
        return None
    return library


def available() -> bool:
    """Whether this machine can compile and load the kernel; the first call tries, for a quarter of a second."""
    return _library() is not None


@dataclass(frozen=True)
class PanelLinear:
    """One linear over weights in panels; it has no gradient of its own (gradients.py).

    Attributes:
        panels: (panels, in, width of a panel): so many outputs side by side, the last panel filled up with 0.
        bias: (panels * width,), likewise.
        outputs: how many outputs there are.
    """

    panels: Tensor
    bias: Tensor
    outputs: int

    def __call__(self, x: Tensor, activation: str | None) -> Tensor:
        """(..., in) -> (..., out), float32 on the CPU.

        Raises:
            ValueError: x has another width or type.
        """
        inputs = self.panels.shape[1]
        if (x.device.type, x.dtype, x.shape[-1]) != ("cpu", torch.float32, inputs):
            raise ValueError(f"x is {x.dtype} and {tuple(x.shape)}, on {x.device}; "
                             f"it must be float32 and (..., {inputs}), on the CPU")
        library = _library()
        assert library is not None  # or there were no panels
        x = x.contiguous()
        out = x.new_empty((*x.shape[:-1], self.outputs))  # of x's type: transformers changes torch's while it loads
        library.product(x.data_ptr(), self.panels.data_ptr(), self.bias.data_ptr(), out.data_ptr(),
                        x.numel() // inputs, inputs, self.outputs, torch.get_num_threads())
        if activation is None:
            return out
        in_place = _IN_PLACE.get(activation)
        return in_place(out) if in_place is not None else activate(out, activation)

    def matrix(self) -> Tensor:
        """(out, in) weights as they were, made anew each time."""
        return self.panels.transpose(1, 2).reshape(-1, self.panels.shape[1])[:self.outputs].contiguous()

    def span(self) -> tuple[int, int]:
        """First address and bytes of the weights."""
        return self.panels.data_ptr(), self.panels.numel() * self.panels.element_size()


def pack(weight: Tensor, bias: Tensor | None) -> PanelLinear:
    """A linear packed in panels, where they are available.

    Args:
        weight: (out, in), float32, on the CPU.
        bias: (out,) or None.
    """
    library = _library()
    assert library is not None
    width, (outputs, inputs) = library.panel_width(), weight.shape
    missing = -outputs % width
    rows = F.pad(weight.detach(), (0, 0, 0, missing)) if missing else weight.detach()
    bias = weight.new_zeros(outputs) if bias is None else bias.detach()
    return PanelLinear(rows.reshape(-1, width, inputs).transpose(1, 2).contiguous(), F.pad(bias, (0, missing)), outputs)
