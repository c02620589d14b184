"""What a page may ask of an engine; it doesn't know which one it has."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Protocol

from bert_core.load import Loaded, ModelInfo
from bert_core.trace import Trace, TraceRequest


class Engine(Protocol):
    """Runs TraceRequests, for any number of visitors at once."""

    default: str

    def run(self, request: TraceRequest) -> Trace:
        """Run one request; ValueError says what is wrong with it."""
        ...

    def run_many(self, requests: Sequence[TraceRequest]) -> list[Trace]:
        """Run several together, one batch for each model they name."""
        ...

    def loaded(self, name: str | None = None) -> Loaded:
        """The model and tokenizer of this name, loaded on first use."""
        ...

    def models(self) -> tuple[ModelInfo, ...]:
        """Models that are shipped or were loaded here."""
        ...


@functools.lru_cache(maxsize=8)
def load_engine(name: str = "twin-bert") -> Engine:
    """The engine of this process whose default model is `name`.

    Raises:
        LoadError: the model can't be loaded.
    """
    from bert_core.serving.local import LocalEngine

    return LocalEngine(name)
