"""Metrics and readiness, over real HTTP."""

import socket
import struct
import threading
from types import SimpleNamespace

import pytest
from prometheus_client import REGISTRY

from bert_core.serving import metrics
from bert_core.serving.local import LocalEngine
from bert_core.trace import TraceRequest
from tests.serving.http import fetch


@pytest.fixture
def server():
    state = {"ready": False}
    server = metrics.serve(lambda: state["ready"], port=0)
    yield f"http://127.0.0.1:{server.server_port}", state
    server.shutdown()
    server.server_close()


def test_ready_only_once_the_model_is_there(server):
    address, state = server
    assert fetch(f"{address}/ready") == (503, "loading\n")
    state["ready"] = True
    assert fetch(f"{address}/ready") == (200, "ready\n")
    assert fetch(f"{address}/else")[0] == 404


def test_a_connection_that_asks_nothing_holds_no_probe_up(server):
    address, state = server
    state["ready"] = True
    with socket.create_connection(("127.0.0.1", int(address.rsplit(":", 1)[1]))):
        assert fetch(f"{address}/ready", seconds=5) == (200, "ready\n")


def test_requests_are_counted_and_no_text_leaks(server, tiny_bert):
    address, _ = server

    def value(name: str) -> float:
        line = next(li for li in fetch(f"{address}/metrics")[1].splitlines() if li.startswith(name + " "))
        return float(line.split()[1])

    before = value("both_ways_requests_total"), value("both_ways_cache_hits_total")
    engine = LocalEngine(tiny_bert)
    for _ in range(3):
        engine.run(TraceRequest(text="a secret sentence"))
    engine.close()
    assert (value("both_ways_requests_total"), value("both_ways_cache_hits_total")) == (before[0] + 3, before[1] + 2)
    assert "secret" not in fetch(f"{address}/metrics")[1]


def two_steps(loaded, request):
    yield


def test_calls_and_waits_are_counted_too(tiny_bert):
    def counted() -> list[float]:
        return [REGISTRY.get_sample_value(name) for name in (
            "both_ways_requests_total", "both_ways_latency_seconds_count", "both_ways_batch_size_count")]

    engine, before = LocalEngine(tiny_bert), counted()
    engine.run_many([TraceRequest("dog"), TraceRequest("cat")])
    assert [now - then for now, then in zip(counted(), before, strict=True)] == [2, 1, 1]
    engine.call(two_steps, TraceRequest("dog"))
    assert counted()[0] - before[0] == 3
    engine.close()


def test_what_waits_is_told_before_each_pass(tiny_bert, monkeypatch):
    told = []  # other tests' engines tell the gauge too
    monkeypatch.setattr(metrics, "waiting", SimpleNamespace(set=told.append))
    monkeypatch.setattr("bert_core.serving.local.MAX_BATCH", 1)
    engine = LocalEngine(tiny_bert)
    engine.run_many([TraceRequest(f"dog {n}") for n in range(3)])
    engine.close()
    assert [number for number in told if number] == [2, 1]


@pytest.mark.parametrize("port", ["http", "0", "65536", "-1", "²", "٨٠", "8080 ", "1e3"])
def test_a_wrong_port_is_said(monkeypatch, port):
    monkeypatch.setenv("BOTH_WAYS_METRICS_PORT", port)
    with pytest.raises(ValueError, match="it must be a port number"):
        metrics.serve_if_asked(lambda: True)


@pytest.mark.parametrize("port", [None, ""])
def test_without_a_port_nothing_is_served(monkeypatch, port):
    monkeypatch.delenv("BOTH_WAYS_METRICS_PORT", raising=False)
    if port is not None:
        monkeypatch.setenv("BOTH_WAYS_METRICS_PORT", port)
    assert metrics.serve_if_asked(lambda: True) is None


def test_a_port_that_is_taken_is_said_with_its_setting(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setenv("BOTH_WAYS_METRICS_PORT", str(port))
        with pytest.raises(ValueError, match=f"^BOTH_WAYS_METRICS_PORT is {port}, which can't be opened on 127.0.0.1"):
            metrics.serve_if_asked(lambda: True)


def test_a_probe_that_hangs_up_leaves_no_traceback():
    """As a balancer does that only looks whether the port is open."""
    server, errors, ended = metrics.serve(lambda: True, port=0), [], threading.Event()
    shutdown = server.shutdown_request
    server.handle_error = lambda *about: errors.append(about)
    server.shutdown_request = lambda request: (shutdown(request), ended.set())
    try:
        probe = socket.create_connection(("127.0.0.1", server.server_port))
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, not a farewell
        probe.close()
        assert ended.wait(60)
        assert errors == []
    finally:
        server.shutdown()
        server.server_close()
