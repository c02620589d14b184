"""Traces by request, bounded by bytes, shared by every visitor."""

from __future__ import annotations

import os
import re
import threading
from collections import OrderedDict

from bert_core.trace import Trace, TraceRequest

#: Bytes of Traces kept by default.
CACHE_BYTES = 256 * 2**20


def asked_bytes() -> int:
    """Bytes of Traces that BOTH_WAYS_CACHE_MB asks to keep, 0 to 99,999 MiB; the default without a number."""
    asked = os.environ.get("BOTH_WAYS_CACHE_MB", "")
    return int(asked) * 2**20 if re.fullmatch(r"[0-9]{1,5}", asked) else CACHE_BYTES


class TraceCache:
    """The least recently used Trace is dropped first.

    Args:
        limit: bytes of arrays kept at most; a Trace larger than that isn't kept.
    """

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
        if trace.nbytes > self.limit:
            return
        with self._lock:
            old = self._traces.pop(request, None)
            self.bytes += trace.nbytes - (old.nbytes if old is not None else 0)
            self._traces[request] = trace
            while self.bytes > self.limit:
                self.bytes -= self._traces.popitem(last=False)[1].nbytes

    def drop_model(self, name: str) -> None:
        """Forget the Traces of a model that was replaced or unloaded."""
        with self._lock:
            for request in [r for r in self._traces if r.model == name]:
                self.bytes -= self._traces.pop(request).nbytes
