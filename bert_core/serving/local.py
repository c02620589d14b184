"""The in-process engine: one worker thread owns the models and batches.

Requests that wait at the same moment for the same model run as one pass; a
thread a request would make thirty visitors wait eight times longer.
"""

from __future__ import annotations

import queue
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace

from bert_core.load import Loaded, LoadError, ModelInfo, load_model, shipped_names
from bert_core.trace import Trace, TraceRequest, run_batch

#: Sentences in one pass: the gain is flat beyond.
MAX_BATCH = 16
#: Bytes of Traces kept.
CACHE_BYTES = 256 * 2**20
#: Models kept in memory at once.
MAX_MODELS = 12


class TraceCache:
    """Traces by request, the least recently used dropped first, bounded by bytes."""

    def __init__(self, limit: int = CACHE_BYTES):
        self.limit, self.bytes = limit, 0
        self._traces: OrderedDict[TraceRequest, Trace] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, request: TraceRequest) -> Trace | None:
        with self._lock:
            trace = self._traces.get(request)
            if trace is not None:
                self._traces.move_to_end(request)
            return trace

    def put(self, request: TraceRequest, trace: Trace) -> None:
        if trace.nbytes > self.limit // 2:
            return
        with self._lock:
            old = self._traces.pop(request, None)
            self.bytes += trace.nbytes - (old.nbytes if old is not None else 0)
            self._traces[request] = trace
            while self.bytes > self.limit:
                self.bytes -= self._traces.popitem(last=False)[1].nbytes


class LocalEngine:
    """See Engine. The worker starts with the first request and is a daemon.

    Args:
        default: model of requests that name none; loaded at once, so that a
            wrong name is an error here.
    """

    def __init__(self, default: str = "twin-bert", cache_bytes: int = CACHE_BYTES):
        self.default = default
        self.cache = TraceCache(cache_bytes)
        self._models: OrderedDict[str, Loaded] = OrderedDict()
        self._models_lock = threading.Lock()
        self._waiting: queue.Queue[tuple[TraceRequest, Future]] = queue.Queue()
        self._start = threading.Lock()
        self._worker: threading.Thread | None = None
        self.loaded(default)

    def loaded(self, name: str | None = None) -> Loaded:
        name = name or self.default
        with self._models_lock:
            if name not in self._models:
                self._models[name] = load_model(name)
                while len(self._models) > MAX_MODELS:
                    self._models.popitem(last=False)
            self._models.move_to_end(name)
            return self._models[name]

    def models(self) -> tuple[ModelInfo, ...]:
        names = [n for n in shipped_names()]
        with self._models_lock:
            names += [n for n in self._models if n not in names]
        found = []
        for name in names:
            try:
                found.append(self.loaded(name).info)
            except LoadError:
                continue
        return tuple(found)

    def run(self, request: TraceRequest) -> Trace:
        return self.run_many([request])[0]

    def run_many(self, requests: Sequence[TraceRequest]) -> list[Trace]:
        requests = [r if r.model else replace(r, model=self.default) for r in requests]
        found = [self.cache.get(request) for request in requests]
        futures = [None if trace else self._submit(request) for request, trace in zip(requests, found, strict=True)]
        return [trace or future.result() for trace, future in zip(found, futures, strict=True)]

    def _submit(self, request: TraceRequest) -> Future:
        with self._start:
            if self._worker is None:
                self._worker = threading.Thread(target=self._work, name="engine", daemon=True)
                self._worker.start()
        future: Future = Future()
        self._waiting.put((request, future))
        return future

    def _work(self) -> None:
        while True:
            waiting = [self._waiting.get()]
            while len(waiting) < MAX_BATCH:
                try:
                    waiting.append(self._waiting.get_nowait())
                except queue.Empty:
                    break
            groups: dict[tuple, list[tuple[TraceRequest, Future]]] = {}
            for request, future in waiting:
                groups.setdefault((request.model, request.precision), []).append((request, future))
            for group in groups.values():
                self._run_group(group)

    def _run_group(self, group: list[tuple[TraceRequest, Future]]) -> None:
        """One pass for the group; if it fails, each alone, so that one can't fail the others."""
        requests = [request for request, _ in group]
        try:
            traces = run_batch(self.loaded(requests[0].model), requests)
        except Exception as error:
            if len(group) == 1:
                group[0][1].set_exception(error)
                return
            for one in group:
                self._run_group([one])
            return
        for (request, future), trace in zip(group, traces, strict=True):
            self.cache.put(request, trace)
            future.set_result(trace)
