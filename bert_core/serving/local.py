"""The in-process engine: one worker thread owns the models and batches.

Requests that wait at the same moment for the same model run as one pass; a
thread a request would make thirty visitors wait eight times longer (measured,
see docs/benchmarks.md).
"""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from bert_core.kernels import packed
from bert_core.load import Loaded, load_model, with_dtype
from bert_core.memory import let_go_unused, ran_out, return_freed
from bert_core.model import Model
from bert_core.serving import metrics
from bert_core.serving.cache import CACHE_BYTES, TraceCache
from bert_core.serving.engine import Check, Steps, Value
from bert_core.serving.models import DTYPES, KeptModels
from bert_core.serving.waiting import ALTOGETHER, DEADLINE, NoMemory, Ticket, TimedOut, WaitingRoom
from bert_core.threads import give_team_back
from bert_core.trace import Trace, TraceRequest, run_batch

#: Sentences in one pass: the gain is flat beyond.
MAX_BATCH = 16


class LocalEngine:
    """See Engine. The models that were used last are kept, BOTH_WAYS_MODELS_MB of them.

    Args:
        default: model of requests that name none; loaded at once, so that a
            wrong name is an error here.
        cache_bytes: bound of the Trace cache; 0 keeps none.
        pack: whether linears are packed (kernels.py).
        check: asked before a model other than `default` is loaded by its name.

    Raises:
        LoadError: `default` can't be loaded.
    """

    def __init__(self, default: str = "twin-bert", cache_bytes: int = CACHE_BYTES, pack: bool = True,
                 check: Check | None = None):
        self.default, self.pack, self.check = default, pack, check
        self.cache = TraceCache(cache_bytes)
        self.room = WaitingRoom()
        metrics.tell_waiting(self.room)
        self.models = KeptModels(default, self._load)
        self._start = threading.Lock()
        self._worker: threading.Thread | None = None
        self._closed = False
        self.loaded(default)

    # --- models --------------------------------------------------------------

    def loaded(self, name: str | None = None, precision: str = "fp32") -> Loaded:
        """The model of this name in this precision, loaded on first use."""
        return self.models.get(name or self.default, precision)

    def has(self, *wanted: str | TraceRequest) -> bool:
        return all(one in (self.models if isinstance(one, str) else self.cache) for one in wanted)

    def problem(self) -> str:
        return "the engine was closed" if self._closed else ""

    def _load(self, name: str, precision: str) -> Loaded:
        if precision != "fp32":
            loaded = with_dtype(self.loaded(name), DTYPES[precision])
        else:
            if self.check is not None and name != self.default:
                self.check(name)
            loaded = load_model(name, torch.float32, "cuda" if torch.cuda.is_available() else "cpu")
        if self.pack and isinstance(loaded.model, Model):
            loaded = replace(loaded, model=packed(loaded.model))
            return_freed()  # the plain matrices
        give_team_back()  # packing had one
        return loaded

    def register(self, loaded: Loaded) -> None:
        """Keep a model that was made here (fine-tuned live) under its name."""
        self.models.replace(loaded)
        self.cache.drop_model(loaded.name)

    # --- requests ------------------------------------------------------------

    def run(self, request: TraceRequest, visitor: str | None = None, keep: bool = True) -> Trace:
        return self.run_many([request], visitor, keep)[0]

    @metrics.unanswered_counted()
    def run_many(
        self, requests: Sequence[TraceRequest], visitor: str | None = None, keep: bool = True,
        seconds: float = DEADLINE,
    ) -> list[Trace]:
        started, drops = time.perf_counter(), self.cache.drops
        metrics.requests.inc(len(requests))
        requests = [r if r.model else replace(r, model=self.default) for r in requests]
        traces = {request: trace for request in requests if (trace := self.cache.get(request)) is not None}
        missing = [request for request in dict.fromkeys(requests) if request not in traces]
        metrics.cache_hits.inc(sum(request in traces for request in requests))
        for request, trace in self.fresh(missing, visitor, seconds):
            traces[request] = trace
            if keep:
                self.cache.put(request, trace, drops)
        if requests:
            metrics.latency.observe(time.perf_counter() - started)
        return [traces[request] for request in requests]

    def fresh(
        self, missing: Sequence[TraceRequest], visitor: str | None, seconds: float = DEADLINE
    ) -> Iterator[tuple[TraceRequest, Trace]]:
        """What no cache has, from the worker: as many at once as one visitor may have waiting.

        Who asks counts them, and keeps what may be asked for again. The models are
        loaded here and held to the end, so that the worker never waits for a
        disk, however many other models are asked for meanwhile.
        """
        held = [self.loaded(name, precision) for name, precision in {(r.model, r.precision) for r in missing}]
        most, call = self.room.most_a_visitor, None
        for start in range(0, len(missing), most):
            self._ensure_worker()
            tickets = self.room.enter(missing[start:start + most], visitor, seconds, goes_on=call)
            call = tickets[0].call
            yield from zip(missing[start:start + most], _answers(tickets, seconds), strict=True)
        del held

    @metrics.unanswered_counted()
    def call(self, steps: Steps[Value], request: TraceRequest, *rest: Any, visitor: str | None = None,
             seconds: float = DEADLINE) -> Value:
        metrics.requests.inc()
        request = request if request.model else replace(request, model=self.default)
        loaded = self.loaded(request.model, request.precision)
        self._ensure_worker()
        (answer,) = _answers(self.room.enter([request], visitor, seconds, steps(loaded, request, *rest)), seconds)
        return answer

    def close(self) -> None:
        """Stop the worker; what waits, or comes later, is given up; the models go when nobody else has the engine."""
        self._closed = True
        self.room.close()

    def _ensure_worker(self) -> None:
        with self._start:
            if not self._closed and (self._worker is None or not self._worker.is_alive()):
                self._worker = threading.Thread(target=self._work, name="engine", daemon=True)
                self._worker.start()
                atexit.register(_end, weakref.ref(self))

    def _work(self) -> None:
        while not self._closed:
            batch = self.room.next_batch(MAX_BATCH, timeout=1.0)
            let_go_unused()
            if batch and batch[0].work is not None:
                self._go_on(batch[0])
            elif batch:
                self._run_tickets(batch)
                self.room.done(batch)

    def _go_on(self, ticket: Ticket) -> None:
        """One step of a call; the rest of it waits for its next turn, where it is dropped if nobody wants it now."""
        try:
            next(ticket.work)
        except StopIteration as end:
            ticket.answer(end.value)
        except BaseException as error:
            ticket.refuse(for_visitor(error))
        else:
            self.room.put_back(ticket)

    def _run_tickets(self, batch: list[Ticket]) -> None:
        """One pass for all, what several ask for once; if it fails, each alone, so that one can't fail the others."""
        requests = list(dict.fromkeys(ticket.request for ticket in batch))
        try:
            loaded = self.loaded(requests[0].model, requests[0].precision)
            traces = dict(zip(requests, run_batch(loaded, requests), strict=True))
        except BaseException as error:
            if len(batch) == 1:
                batch[0].refuse(for_visitor(error))
                return
            for ticket in batch:
                self._run_tickets([ticket])
            return
        metrics.batch_size.observe(len(requests))
        for ticket in batch:
            ticket.answer(traces[ticket.request])


def _end(engine: weakref.ref[LocalEngine]) -> None:
    """At the interpreter's end: a thread that is still in torch then aborts it. A closed engine is long gone."""
    if (running := engine()) is not None:
        running._closed = True
        running.room.end()
        running._worker.join(timeout=2)


def for_visitor(error: BaseException) -> Exception:
    """An error as the asking thread may raise it: a library's panic ends neither that thread nor the worker."""
    if ran_out(error):
        return NoMemory("this takes more memory than the server has; try a shorter text, or a smaller model")
    return error if isinstance(error, Exception) else RuntimeError(f"{type(error).__name__}: {error}")


def _answers(tickets: Sequence[Ticket], seconds: float) -> Iterator[Any]:
    """What the worker found for each in turn, or the error it met; in the end the worker drops what is left of them.

    While this thread waits the worker has the processors: see threads.py.

    Raises:
        TimedOut: an answer takes far longer than one may wait.
    """
    give_team_back()
    try:
        for ticket in tickets:
            yield ticket.future.result(timeout=ALTOGETHER * seconds)
    except TimeoutError:
        raise TimedOut("the server had no time for this within the limit; try again, or a shorter text") from None
    finally:
        for ticket in tickets:
            ticket.future.cancel()  # does nothing to one that is done
