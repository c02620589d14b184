"""Traces by request, bounded by bytes, shared by every visitor."""

from __future__ import annotations

import os
import re
import threading
from collections import OrderedDict

from bert_core.trace import Trace, TraceRequest

#: Bytes of Traces kept by default.
CACHE_BYTES = 256 * 2**20
#: Bytes of a Trace and its request beside the arrays' numbers, by what there is of each: the two themselves, objects
#: of arrays, tokens of the Encoding, entries of other tuples, characters typed. Measured with tracemalloc (CPython
#: 3.11, twin-bert) and rounded up from 1,830, 250, 256, 100 (a pair of `cut`; a position takes 36) and 12 (an emoji's
#: 4 bytes in the request, in the Encoding and as UTF-8; the other copy may get its UTF-8 later).
_OF_A_TRACE, _OF_AN_ARRAY, _OF_A_TOKEN, _OF_AN_ENTRY, _OF_A_CHARACTER = 2000, 300, 400, 120, 16


def asked_bytes(variable: str, default: int) -> int:
    """Bytes that a setting of the environment asks for in MiB, 0 to 99,999; the default without a number."""
    asked = os.environ.get(variable, "")
    return int(asked) * 2**20 if re.fullmatch(r"[0-9]{1,5}", asked) else default


def held_bytes(request: TraceRequest, trace: Trace) -> int:
    """Bytes of memory that an entry of the cache keeps, a little more rather than less."""
    entries = len(trace.encoding.masks_beyond) + sum(len(v) for v in vars(request).values() if isinstance(v, tuple))
    return (trace.nbytes + _OF_A_TRACE + _OF_AN_ARRAY * len(trace.arrays) + _OF_A_TOKEN * len(trace)
            + _OF_AN_ENTRY * entries + _OF_A_CHARACTER * (len(request.text) + len(request.pair or "")))


class TraceCache:
    """The least recently used Trace is dropped first.

    Args:
        limit: bytes kept at most (`held_bytes`); a Trace larger than that isn't kept.

    Attributes:
        drops: how often a model's Traces were dropped, for `put`.
    """

    def __init__(self, limit: int = CACHE_BYTES):
        self.limit, self.bytes, self.drops = limit, 0, 0
        self._traces: OrderedDict[TraceRequest, Trace] = OrderedDict()
        self._lock = threading.Lock()

    def __contains__(self, request: TraceRequest) -> bool:
        with self._lock:
            return request in self._traces

    def get(self, request: TraceRequest) -> Trace | None:
        with self._lock:
            trace = self._traces.get(request)
            if trace is not None:
                self._traces.move_to_end(request)
            return trace

    def put(self, request: TraceRequest, trace: Trace, drops: int | None = None) -> None:
        """Keep it, unless it may be of a model that was replaced since.

        Args:
            drops: the cache's, before the model was looked up; None where no model is ever replaced.
        """
        size = held_bytes(request, trace)
        if size > self.limit:
            return
        with self._lock:
            if drops not in (None, self.drops):
                return
            if request in self._traces:
                self._drop(request)
            self.bytes += size
            self._traces[request] = trace
            while self.bytes > self.limit:
                self._drop(next(iter(self._traces)))

    def drop_model(self, name: str) -> None:
        """Forget the Traces of a model that was replaced, those that are on their way included."""
        with self._lock:
            self.drops += 1
            for request in [r for r in self._traces if r.model == name]:
                self._drop(request)

    def _drop(self, request: TraceRequest) -> None:
        self.bytes -= held_bytes(request, self._traces.pop(request))
