"""What a page may ask of an engine; it doesn't know which one it has."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Generator, Sequence
from typing import Any, Protocol, TypeVar

from bert_core.load import Loaded
from bert_core.trace import Trace, TraceRequest

#: Raises LoadError for a model's name that may not be loaded here, else gives it back.
Check = Callable[[str], str]
Value = TypeVar("Value")
Steps = Callable[..., Generator[None, None, Value]]
_one_at_a_time = threading.Lock()


class Engine(Protocol):
    """Runs TraceRequests, for any number of visitors at once."""

    default: str

    def run(self, request: TraceRequest, visitor: str | None = None, keep: bool = True) -> Trace:
        """Run one request.

        Args:
            request: what to run.
            visitor: who asks; a newer call of the same visitor supersedes
                what of theirs still waits. None is nobody in particular,
                EVERYONE is for what one run makes for all: nobody supersedes it,
                and each request has its own turn among the visitors'.
            keep: whether the Trace may be asked for again and goes to the
                cache; a long experiment would push out everybody's.

        Raises:
            ValueError: the request is wrong.
            EngineError: it was superseded, timed out, or the server is full.
        """
        ...

    def run_many(self, requests: Sequence[TraceRequest], visitor: str | None = None, keep: bool = True) -> list[Trace]:
        """Run several together, one pass for each model that they name."""
        ...

    def call(self, steps: Steps[Value], request: TraceRequest, *rest: Any, visitor: str | None = None) -> Value:
        """Do what no Trace holds (gradients, say) in the same queue, a step at a time between the others' passes.

        Args:
            steps: a generator function of a module (a cluster finds it by its
                name), called as steps(loaded, request, *rest); it yields between
                passes and returns the result.
            request: names the model and the precision.
            visitor: as in `run`.

        Raises:
            ValueError: what `steps` raises.
            EngineError: as in `run`.
        """
        ...

    def loaded(self, name: str | None = None) -> Loaded:
        """The model and tokenizer of this name, loaded on first use."""
        ...

    def has(self, *wanted: str | TraceRequest) -> bool:
        """Whether these models are loaded and the Traces of these requests cached, so that nobody waits for them.

        Args:
            wanted: names of models, and requests that name their model.
        """
        ...

    def problem(self) -> str:
        """One line that says why it can answer nobody now, '' if it can; may ask other machines."""
        ...

    def register(self, loaded: Loaded) -> None:
        """Keep a model that was made here under its name."""
        ...


def load_engine(name: str = "twin-bert", check: Check | None = None) -> Engine:
    """The engine of this process whose default model is `name`; who asks while it loads waits for it.

    BOTH_WAYS_ENGINE chooses it: 'local' (default) or 'ray'; BOTH_WAYS_CACHE_MB
    bounds the Traces that this process keeps, BOTH_WAYS_MODELS_MB the models.

    Args:
        name: a shipped model, a folder or a hub id; a folder is read once, what
            is saved there later only by another process.
        check: asked before any other model is loaded by its name; None allows all.

    Raises:
        LoadError: the model can't be loaded.
        ValueError: the setting names no engine.
    """
    with _one_at_a_time:
        return engine_of(name, check)


@functools.lru_cache(maxsize=8)
def engine_of(name: str, check: Check | None) -> Engine:
    """See load_engine; not to be called by two threads at once."""
    from bert_core.serving.cache import CACHE_BYTES, asked_bytes

    cache_bytes = asked_bytes("BOTH_WAYS_CACHE_MB", CACHE_BYTES)
    kind = os.environ.get("BOTH_WAYS_ENGINE") or "local"
    if kind == "ray":
        try:
            from bert_core.serving.ray_engine import RayEngine
        except ModuleNotFoundError as missing:
            if missing.name != "ray":
                raise
            raise ValueError("BOTH_WAYS_ENGINE is 'ray', which needs what requirements-cluster.txt names") from None

        return RayEngine(name, cache_bytes=cache_bytes, check=check)
    if kind != "local":
        raise ValueError(f"BOTH_WAYS_ENGINE is {kind!r}; choose 'local' or 'ray'")
    from bert_core.serving.local import LocalEngine

    return LocalEngine(name, cache_bytes=cache_bytes, check=check)
