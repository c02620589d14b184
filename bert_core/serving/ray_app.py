"""The Ray Serve deployment: replicas that own models and batch what waits.

`serve run bert_core.serving.ray_app:app` or deploy/serve.yaml starts it on any
cluster; RayEngine starts a local one if none runs.
"""

from __future__ import annotations

import asyncio
import functools
import pickle
from typing import Any

from ray import serve

from bert_core.serving.engine import Steps, Value
from bert_core.serving.local import MAX_BATCH, LocalEngine
from bert_core.serving.waiting import MAX_WAITING
from bert_core.trace import Trace, TraceRequest

DEPLOYMENT = "encoder"
APPLICATION = "both-ways"


def to_message(trace: Trace) -> dict[str, Any]:
    """A Trace as a message; Ray sends the arrays without a copy."""
    return {"arrays": dict(trace.arrays), "request": trace.request, "encoding": trace.encoding,
            "config": trace.config, "model": trace.model, "attention_kind": trace.attention_kind,
            "gaps": dict(trace.gaps)}


def that_travels(error: Exception) -> Exception:
    """The error, or its words where it can't be packed here and unpacked there; some of other libraries can't."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


@serve.deployment(name=DEPLOYMENT, num_replicas=2, max_ongoing_requests=128, max_queued_requests=MAX_WAITING,
                  health_check_period_s=2)
class Encoder:
    """One replica: a LocalEngine without a cache behind Serve's batching.

    Args:
        default: the model loaded before the replica is ready.
        cache_bytes: of Traces kept in this replica.
    """

    def __init__(self, default: str = "twin-bert", cache_bytes: int = 0):
        self.engine = LocalEngine(default, cache_bytes=cache_bytes)

    @serve.batch(max_batch_size=MAX_BATCH, batch_wait_timeout_s=0.0)
    async def run(self, requests: list[TraceRequest]) -> list[dict[str, Any] | Exception]:
        """Run what waits; a request that fails is answered with its error, beside the others' Traces."""
        answers: list[dict[str, Any] | Exception] = []
        try:
            return [to_message(trace) for trace in self.engine.run_many(requests)]
        except Exception:
            for request in requests:
                try:
                    answers.append(to_message(self.engine.run(request)))
                except Exception as error:
                    answers.append(that_travels(error))
        return answers

    async def call(
        self, visitor: str | None, steps: Steps[Value], request: TraceRequest, *rest: Any
    ) -> Value | Exception:
        """As LocalEngine.call, beside the batches; an error is an answer too."""
        work = functools.partial(self.engine.call, steps, request, *rest, visitor=visitor)
        try:
            return await asyncio.get_running_loop().run_in_executor(None, work)
        except Exception as error:
            return that_travels(error)


def app(args: dict[str, str] | None = None) -> serve.Application:
    """The application that `serve run` and deploy/serve.yaml name.

    Args:
        args: `model`, the default model; `cache_bytes` a replica.
    """
    args = args or {}
    return Encoder.bind(args.get("model", "twin-bert"), int(args.get("cache_bytes", 0)))
