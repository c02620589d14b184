"""The same engine calls, answered by a Ray Serve deployment."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import ray
from ray import serve
from ray.exceptions import RayError

from bert_core.load import Loaded, load_model
from bert_core.serving.cache import CACHE_BYTES, TraceCache
from bert_core.serving.engine import Check, Steps, Value
from bert_core.serving.models import KeptModels
from bert_core.serving.ray_app import APPLICATION, DEPLOYMENT, app
from bert_core.serving.waiting import ALTOGETHER, DEADLINE, Busy, TimedOut
from bert_core.trace import Trace, TraceRequest

#: A request is read-only, so that one whose replica died is simply asked again.
_TRIES = 4


def from_message(message: dict[str, Any]) -> Trace:
    """The Trace that a replica sent, its arrays read-only."""
    for array in message["arrays"].values():
        array.flags.writeable = False
    return Trace(**{**message, "arrays": MappingProxyType(message["arrays"])})


class RayEngine:
    """See Engine. Connects to the cluster of RAY_ADDRESS, or starts one here.

    Args:
        default: model of requests that name none.
        cache_bytes: bound of the Trace cache of this process.
        check: asked before a model other than `default` is used by its name.

    Models that were made in this process (register) are not sent to the
    cluster; they are refused with a clear message.
    """

    def __init__(self, default: str = "twin-bert", cache_bytes: int = CACHE_BYTES, check: Check | None = None):
        self.default, self.check = default, check
        self.cache = TraceCache(cache_bytes)
        self._models = KeptModels(default, lambda name, _precision: load_model(name))
        if not ray.is_initialized():
            ray.init(address=os.environ.get("RAY_ADDRESS"), namespace="both-ways", log_to_driver=False)
        if APPLICATION not in serve.status().applications:
            serve.run(app({"model": default}), name=APPLICATION, route_prefix=None)
        self._handle = serve.get_deployment_handle(DEPLOYMENT, APPLICATION)

    def run(self, request: TraceRequest, visitor: str | None = None, keep: bool = True) -> Trace:
        return self.run_many([request], visitor, keep)[0]

    def run_many(self, requests: Sequence[TraceRequest], visitor: str | None = None, keep: bool = True) -> list[Trace]:
        requests = [self._named(r) for r in requests]
        traces = {request: trace for request in requests if (trace := self.cache.get(request)) is not None}
        missing = [request for request in dict.fromkeys(requests) if request not in traces]
        asked = [(request, functools.partial(self._handle.run.remote, request)) for request in missing]
        for request, ask, response in [(request, ask, ask()) for request, ask in asked]:
            traces[request] = from_message(self._answer(response, ask))
            if keep:
                self.cache.put(request, traces[request])
        return [traces[request] for request in requests]

    def call(self, steps: Steps[Value], request: TraceRequest, *rest: Any, visitor: str | None = None) -> Value:
        ask = functools.partial(self._handle.call.remote, steps, self._named(request), *rest)
        return self._answer(ask(), ask, ALTOGETHER * DEADLINE)

    def _named(self, request: TraceRequest) -> TraceRequest:
        """The request with its model's name, if that may be used."""
        return replace(request, model=self._allowed(request.model or self.default))

    def _answer(self, response: Any, ask: Callable[[], Any], seconds: float = DEADLINE) -> Any:
        """Wait so long for an answer; ask another replica if this one died."""
        for _ in range(_TRIES):
            try:
                answer = response.result(timeout_s=seconds)
            except TimeoutError:
                raise TimedOut("the cluster had no time for this within the limit; try again") from None
            except RayError:
                response = ask()
                continue
            if isinstance(answer, Exception):
                raise answer
            return answer
        raise Busy("the cluster lost this request several times; is a replica still running?")

    def loaded(self, name: str | None = None) -> Loaded:
        """Tokenizer, config and weights for the views that read them directly."""
        return self._models.get(self._allowed(name or self.default))

    def _allowed(self, name: str) -> str:
        return name if self.check is None or name == self.default else self.check(name)

    def register(self, loaded: Loaded) -> None:
        raise ValueError("a model made here stays here; the cluster runs shipped and named models only")
