"""Metrics and readiness, over real HTTP."""

import socket

import pytest

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


def test_a_wrong_port_is_said(monkeypatch):
    monkeypatch.setenv("BOTH_WAYS_METRICS_PORT", "http")
    with pytest.raises(ValueError, match="port number"):
        metrics.serve_if_asked(lambda: True)
    monkeypatch.delenv("BOTH_WAYS_METRICS_PORT")
    assert metrics.serve_if_asked(lambda: True) is None
