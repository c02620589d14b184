"""The same engine calls, answered by a Ray Serve deployment."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import ray
from ray import serve
from ray.serve.schema import ApplicationStatus

from bert_core.load import Loaded
from bert_core.serving import metrics
from bert_core.serving.cache import CACHE_BYTES, TraceCache
from bert_core.serving.engine import Check, Steps, Value
from bert_core.serving.local import LocalEngine
from bert_core.serving.ray_app import APPLICATION, DEPLOYMENT, app
from bert_core.serving.ray_calls import WINDOW, Calls
from bert_core.serving.waiting import ALTOGETHER, DEADLINE
from bert_core.trace import Trace, TraceRequest

#: Seconds for which what the cluster said of itself is believed, and within which it says something.
AFRESH, ANSWERS_WITHIN = 2.0, 3.0
#: Seconds after which Ray ends a process, this server with all its visitors, that does not find the cluster's head.
#: Replicas answer without it, and it may come back.
HEADLESS = 7 * 86_400


def from_message(message: dict[str, Any]) -> Trace:
    """The Trace that a replica sent, its arrays read-only."""
    for array in message["arrays"].values():
        array.flags.writeable = False
    return Trace(**{**message, "arrays": MappingProxyType(message["arrays"])})


def on_a_thread_that_stays(work: Callable[[], Any]) -> None:
    """Do it on a thread that ends with this process only, and wait until it is done.

    Ray has Linux kill what it started when its parent dies (prctl(2),
    PR_SET_PDEATHSIG), and that parent is the thread, not the process: a cluster
    begun by the server's start died with the thread that had loaded the model.

    Raises:
        Exception: what `work` raised.
    """
    done: Future[None] = Future()

    def stay() -> None:
        try:
            work()
        except BaseException as error:  # else nobody would ever be told
            done.set_exception(error)
            return
        done.set_result(None)
        threading.Event().wait()

    threading.Thread(target=stay, name="ray-parent", daemon=True).start()
    done.result()


def wait_for_application(default: str) -> None:
    """Wait until the cluster's application can answer; one that nobody has begun is begun here.

    Raises:
        RuntimeError: its replicas can't be made.
    """
    while (found := serve.status().applications.get(APPLICATION)) is not None:
        if found.status in (ApplicationStatus.RUNNING, ApplicationStatus.UNHEALTHY):  # a lost replica is made again
            return
        if found.status == ApplicationStatus.DEPLOY_FAILED:
            raise RuntimeError(f"the cluster can't run {APPLICATION} ({found.message}); deploy it again")
        time.sleep(0.2)
    try:
        serve.run(app({"model": default}), name=APPLICATION, route_prefix=None)
    except BaseException:
        serve.delete(APPLICATION)  # else the next start would find one that is there and answers nobody
        raise


class Health:
    """Whether the application is there, asked of the cluster by one thread at a time and at most every AFRESH seconds.

    A cluster that is gone lets one wait for minutes: who has waited for ANSWERS_WITHIN is told so.
    """

    def __init__(self) -> None:
        self._lock, self._found, self._since = threading.Lock(), "", -AFRESH
        self._asking: threading.Thread | None = None

    def problem(self) -> str:
        """As Engine.problem."""
        with self._lock:
            if self._asking is None and time.monotonic() - self._since > AFRESH:
                self._asking = threading.Thread(target=self._look, name="health", daemon=True)
                self._asking.start()
            asking = self._asking
        if asking is not None:
            asking.join(ANSWERS_WITHIN)
        return "the cluster does not answer" if asking is not None and asking.is_alive() else self._found

    def _look(self) -> None:
        found = self._ask()
        with self._lock:
            self._found, self._since, self._asking = found, time.monotonic(), None

    def _ask(self) -> str:
        try:
            found = serve.status().applications.get(APPLICATION)
        except Exception as error:  # whatever the way to it throws
            return f"the cluster does not answer ({type(error).__name__})"
        if found is None or found.status == ApplicationStatus.DELETING:
            return f"the cluster runs no {APPLICATION}; deploy it again"
        return f"the cluster can't run {APPLICATION}" if found.status == ApplicationStatus.DEPLOY_FAILED else ""


class RayEngine:
    """See Engine. Connects to the cluster of RAY_ADDRESS, or starts one here.

    Args:
        default: model of requests that name none.
        cache_bytes: bound of the Trace cache of this process.
        check: asked before a model other than `default` is used by its name.

    Models that were made in this process (register) are not sent to the
    cluster: they run here.
    """

    def __init__(self, default: str = "twin-bert", cache_bytes: int = CACHE_BYTES, check: Check | None = None):
        self.default, self.check = default, check
        self.cache = TraceCache(cache_bytes)
        self._calls, self._health = Calls(), Health()
        self._here = LocalEngine(default, cache_bytes=0, check=check)
        metrics.tell_waiting(self._here.room, self._calls)
        self._made_here: frozenset[str] = frozenset()
        self._registers = threading.Lock()
        if not ray.is_initialized():
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray would report to its makers
            os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", str(HEADLESS))
            on_a_thread_that_stays(functools.partial(
                ray.init, address=os.environ.get("RAY_ADDRESS"), namespace="both-ways", log_to_driver=False))
        wait_for_application(default)
        self._handle = serve.get_deployment_handle(DEPLOYMENT, APPLICATION)

    def run(self, request: TraceRequest, visitor: str | None = None, keep: bool = True) -> Trace:
        return self.run_many([request], visitor, keep)[0]

    @metrics.unanswered_counted()
    def run_many(self, requests: Sequence[TraceRequest], visitor: str | None = None, keep: bool = True) -> list[Trace]:
        started, drops = time.perf_counter(), self.cache.drops
        metrics.requests.inc(len(requests))
        requests = [self._named(r) for r in requests]
        traces = {request: trace for request in requests if (trace := self.cache.get(request)) is not None}
        missing = [request for request in dict.fromkeys(requests) if request not in traces]
        metrics.cache_hits.inc(sum(request in traces for request in requests))
        here = [request for request in missing if request.model in self._made_here]
        fresh = self._fresh([request for request in missing if request not in here], here, visitor)
        for request, trace in fresh.items() if keep else ():
            self.cache.put(request, trace, drops)
        if requests:
            metrics.latency.observe(time.perf_counter() - started)
        traces |= fresh
        return [traces[request] for request in requests]

    def _fresh(
        self, there: Sequence[TraceRequest], here: Sequence[TraceRequest], visitor: str | None
    ) -> dict[TraceRequest, Trace]:
        """What no cache has: from the replicas, while this process runs the models made in it."""
        asks = [functools.partial(self._handle.run.remote, request) for request in there]
        messages: list[dict[str, Any]] = []
        with self._calls.begin(visitor) as call:
            waits = [(call.send(ask), ask) for ask in asks[:WINDOW]]
            traces = dict(self._here.fresh(here, visitor))
            while waits:
                messages += [call.answer(response, ask, DEADLINE) for response, ask in waits]
                waits = [(call.send(ask), ask) for ask in asks[len(messages):len(messages) + WINDOW]]
        return traces | dict(zip(there, map(from_message, messages), strict=True))

    def call(self, steps: Steps[Value], request: TraceRequest, *rest: Any, visitor: str | None = None) -> Value:
        if request.model in self._made_here:
            return self._here.call(steps, request, *rest, visitor=visitor)
        metrics.requests.inc()
        with metrics.unanswered_counted(), self._calls.begin(visitor) as call:
            ask = functools.partial(self._handle.call.remote, visitor, steps, self._named(request), *rest)
            return call.answer(call.send(ask), ask, ALTOGETHER * DEADLINE)

    def _named(self, request: TraceRequest) -> TraceRequest:
        """The request with its model's name, if that may be used."""
        return replace(request, model=self._allowed(request.model or self.default))

    def loaded(self, name: str | None = None) -> Loaded:
        """Tokenizer, config and weights for the views that read them directly."""
        return self._here.loaded(name)

    def has(self, *wanted: str | TraceRequest) -> bool:
        return all(one in (self._here.models if isinstance(one, str) else self.cache) for one in wanted)

    def problem(self) -> str:
        return self._health.problem()

    def _allowed(self, name: str) -> str:
        free = self.check is None or name == self.default or name in self._made_here
        return name if free else self.check(name)

    def register(self, loaded: Loaded) -> None:
        """Keep a model that was made here under its name; a replica could not load it."""
        with self._registers:
            self._here.register(loaded)
            self._made_here = self._made_here & self._here.models.alive() | {loaded.name}
        self.cache.drop_model(loaded.name)
