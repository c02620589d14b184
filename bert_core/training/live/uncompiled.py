"""Optimisers without the compiler that they tell to leave them alone."""

from __future__ import annotations

import sys
from types import ModuleType

import torch

_COMPILER = "torch._dynamo"


def spare_the_compiler() -> None:
    """Let torch's optimisers do without `torch._dynamo` in a process that compiles nothing; `torch.compile` fails then.

    They import it, some 800 modules (sympy among them) in two seconds, only to
    tell it at each step that it must not trace them. A stand-in hears that.
    """
    if _COMPILER in sys.modules:
        return
    stand_in = ModuleType(_COMPILER)
    stand_in.disable = lambda function, *_, **__: function  # type: ignore[attr-defined]
    stand_in.graph_break = lambda *_, **__: None  # type: ignore[attr-defined]
    sys.modules[_COMPILER] = torch._dynamo = stand_in
