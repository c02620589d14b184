"""Numbers for whoever runs the server: Prometheus metrics and readiness.

Served on their own port, 127.0.0.1 only unless told otherwise, when
BOTH_WAYS_METRICS_PORT is set: /metrics, and /ready, which answers 200 once the
default model is loaded and 503 before (as on the explorer's own port, see
ui/server.py). No metric holds a visitor's text.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sized
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import Counter, Gauge, Histogram, make_wsgi_app

from bert_core.serving.waiting import Busy, NoMemory, Stopped, Superseded, TimedOut

requests = Counter("both_ways_requests", "Trace requests, cached ones included")
cache_hits = Counter("both_ways_cache_hits", "Trace requests answered from the cache")
batch_size = Histogram("both_ways_batch_size", "Sentences in one pass", buckets=(1, 2, 4, 8, 16))
latency = Histogram("both_ways_latency_seconds", "Call to answer, waiting included; calls that got none are not timed",
                    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10))
waiting = Gauge("both_ways_waiting", "Requests in the queue; of a cluster, those of this process that have no answer")
unanswered = Counter("both_ways_unanswered", "Calls that got no answer; refused: what this model or text can't be "
                     "asked, failed: anything unforeseen", ["why"])

#: Errors of the engine -> `why`.
_WHY = {Busy: "busy", Superseded: "superseded", TimedOut: "timed_out", NoMemory: "no_memory", Stopped: "stopped"}
for _why in (*_WHY.values(), "refused", "failed"):
    unanswered.labels(_why)  # told as 0 from the start, so that a rate can be taken of the first one


@contextlib.contextmanager
def unanswered_counted() -> Iterator[None]:
    """Count a call that ends in an error; the error goes on to who asked."""
    try:
        yield
    except Exception as error:
        known = next((why for kind, why in _WHY.items() if isinstance(error, kind)), None)
        unanswered.labels(known or ("refused" if isinstance(error, ValueError) else "failed")).inc()
        raise


def tell_waiting(*rooms: Sized) -> None:
    """Have the gauge tell how many wait here, counted when it is read: a worker that is busy or stuck tells nothing."""
    found = [weakref.ref(room) for room in rooms]
    waiting.set_function(lambda: sum(len(one() or ()) for one in found))


class _Threaded(ThreadingMixIn, WSGIServer):
    """A thread a connection: a browser opens some that it never uses, and a probe must not wait for those."""

    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    #: Seconds after which a connection that asks nothing is closed.
    timeout = 30

    def handle(self) -> None:
        with contextlib.suppress(TimeoutError, ConnectionError):  # a probe that only looks whether the port is open
            super().handle()

    def log_message(self, format: str, *args: object) -> None:
        """Probes every few seconds are no news."""


def application(ready: Callable[[], bool]) -> Callable:
    """The WSGI application of /metrics and /ready."""
    exposition = make_wsgi_app()

    def answer(environ: dict, start_response: Callable) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == "/metrics":
            return exposition(environ, start_response)
        status, body = ("200 OK", b"ready\n") if ready() else ("503 Service Unavailable", b"loading\n")
        if path != "/ready":
            status, body = "404 Not Found", b"try /metrics or /ready\n"
        start_response(status, [("Content-Type", "text/plain; charset=utf-8")])
        return [body]

    return answer


def serve(ready: Callable[[], bool], port: int, address: str = "127.0.0.1") -> WSGIServer:
    """Serve in a daemon thread; `server.shutdown()` ends it. Port 0 takes a free one."""
    server = make_server(address, port, application(ready), server_class=_Threaded, handler_class=_Quiet)
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server


def serve_if_asked(ready: Callable[[], bool]) -> WSGIServer | None:
    """Serve on BOTH_WAYS_METRICS_PORT (and _ADDRESS) if that is set.

    Raises:
        ValueError: the setting is no port number, or the port can't be had.
    """
    port = os.environ.get("BOTH_WAYS_METRICS_PORT")
    if not port:
        return None
    if not re.fullmatch("[0-9]{1,5}", port) or not 0 < int(port) < 65536:
        raise ValueError(f"BOTH_WAYS_METRICS_PORT is {port!r}; it must be a port number")
    address = os.environ.get("BOTH_WAYS_METRICS_ADDRESS") or "127.0.0.1"  # '' would be every address
    try:
        return serve(ready, int(port), address)
    except OSError as error:
        raise ValueError(f"BOTH_WAYS_METRICS_PORT is {port}, which can't be opened on {address} ({error})") from None
