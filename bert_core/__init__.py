"""Both Ways: BERT's encoder, its traces, training and serving, without a page.

The names below are imported when they are first used, so that `--help` and
error messages need not wait for torch.
"""

from __future__ import annotations

import importlib
from typing import Any

from bert_core.threads import wait_briefly

wait_briefly()  # before anything here imports torch

_HOMES = {
    "LoadError": "bert_core.load",
    "load_model": "bert_core.load",
    "load_engine": "bert_core.serving",
    "MissingPart": "bert_core.trace",
    "Trace": "bert_core.trace",
    "TraceRequest": "bert_core.trace",
}

__all__ = ["LoadError", "MissingPart", "Trace", "TraceRequest", "load_engine", "load_model"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bert_core' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
