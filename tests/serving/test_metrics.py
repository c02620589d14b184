"""Metrics and readiness, over real HTTP."""

import contextlib
import gc
import socket
import struct
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from prometheus_client import REGISTRY

from bench._server import free_port
from bert_core.serving import metrics
from bert_core.serving.local import LocalEngine
from bert_core.serving.waiting import Busy, NoMemory, Superseded, WaitingRoom
from bert_core.trace import TraceRequest
from tests.serving.http import fetch
from tests.waiting import gate_passes, wait_until


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


COUNTED = ("requests_total", "cache_hits_total", "batch_size_count", "batch_size_sum", "latency_seconds_count")


@pytest.fixture
def counted(tiny_bert):
    """What is counted while an engine does something: requests, hits, passes, sentences in them, calls timed."""
    engine = LocalEngine(tiny_bert)

    def count(ask) -> list[float]:
        before = [REGISTRY.get_sample_value(f"both_ways_{name}") for name in COUNTED]
        with contextlib.suppress(ValueError):
            ask(engine)
        return [REGISTRY.get_sample_value(f"both_ways_{name}") - then for name, then in zip(COUNTED, before)]

    yield count
    engine.close()


def ends_badly(loaded, request):
    yield
    raise ValueError("no good end")


ONE, WRONG, NOWHERE = TraceRequest("dog"), TraceRequest("dog", masked=(99,)), TraceRequest("dog", model="no such!")


@pytest.mark.parametrize(("ask", "expected"), [
    (lambda engine: engine.run_many([ONE, TraceRequest("cat")]), [2, 0, 1, 2, 1]),
    (lambda engine: (engine.run(ONE), engine.run_many([ONE, ONE])), [3, 2, 1, 1, 2]),
    (lambda engine: engine.run_many([ONE] * 3), [3, 0, 1, 1, 1]),
    (lambda engine: engine.run_many([]), [0, 0, 0, 0, 0]),
    (lambda engine: engine.run(WRONG), [1, 0, 0, 0, 0]),
    (lambda engine: engine.run_many([ONE, WRONG]), [2, 0, 1, 1, 0]),
    (lambda engine: engine.run(NOWHERE), [1, 0, 0, 0, 0]),
    (lambda engine: engine.call(two_steps, ONE), [1, 0, 0, 0, 0]),
    (lambda engine: engine.call(ends_badly, ONE), [1, 0, 0, 0, 0]),
    (lambda engine: engine.call(two_steps, NOWHERE), [1, 0, 0, 0, 0]),
    (lambda engine: (engine.close(), engine.run(ONE)), [1, 0, 0, 0, 0]),
], ids=["two", "cached", "thrice in a call", "none", "wrong", "wrong beside right", "no such model", "steps",
        "steps that fail", "steps of no such model", "stopped"])
def test_everything_is_counted_once_however_it_ends(counted, ask, expected):
    """A pass counts its sentences once it is through; only a call that has its answer is timed."""
    assert counted(ask) == expected


def breaks(loaded, request):
    yield
    raise KeyError("unforeseen")


WHY = ("busy", "superseded", "timed_out", "no_memory", "stopped", "refused", "failed")


def unanswered() -> dict[str, float]:
    return {why: REGISTRY.get_sample_value("both_ways_unanswered_total", {"why": why}) for why in WHY}


@pytest.mark.parametrize(("ask", "why"), [
    (lambda engine: engine.run_many([ONE, TraceRequest("cat")]), None),
    (lambda engine: engine.call(two_steps, ONE), None),
    (lambda engine: engine.run_many([ONE, WRONG]), "refused"),
    (lambda engine: engine.run(NOWHERE), "refused"),
    (lambda engine: engine.call(ends_badly, ONE), "refused"),
    (lambda engine: engine.call(breaks, ONE), "failed"),
    (lambda engine: engine.run_many([TraceRequest("a dog")], seconds=1e-9), "timed_out"),
    (lambda engine: (engine.close(), engine.run(TraceRequest("two dogs"))), "stopped"),
], ids=["answered", "steps", "wrong", "no such model", "steps that fail", "steps that break", "late", "closed"])
def test_a_call_without_an_answer_is_counted_once_by_why(tiny_bert, ask, why):
    engine, before = LocalEngine(tiny_bert), unanswered()
    with contextlib.suppress(ValueError, KeyError):
        ask(engine)
    engine.close()
    assert {name: count - before[name] for name, count in unanswered().items()} == {
        name: float(name == why) for name in WHY}


@pytest.mark.parametrize(("error", "why"), [
    (Busy, "busy"), (Superseded, "superseded"), (NoMemory, "no_memory"), (OSError, "failed")])
def test_the_errors_of_the_engine_have_names_of_their_own(error, why):
    before = unanswered()[why]
    with pytest.raises(error), metrics.unanswered_counted():
        raise error("x")
    assert unanswered()[why] == before + 1


def test_what_waits_is_told_at_any_moment(tiny_bert, monkeypatch):
    """Also while the worker is in a pass, or is stuck in it."""
    taken, gate = gate_passes(monkeypatch)
    engine = LocalEngine(tiny_bert)
    with ThreadPoolExecutor(4) as visitors:
        asked = [visitors.submit(engine.run, TraceRequest("dog"))]
        assert taken.wait(60)
        asked += [visitors.submit(engine.run, TraceRequest(f"dog {n}")) for n in range(3)]
        wait_until(lambda: len(engine.room) == 3)
        assert REGISTRY.get_sample_value("both_ways_waiting") == 3
        gate.set()
        for answer in asked:
            answer.result(60)
    assert REGISTRY.get_sample_value("both_ways_waiting") == 0
    engine.close()


def test_nobody_waits_for_an_engine_that_is_gone():
    room, other = WaitingRoom(), WaitingRoom()
    metrics.tell_waiting(room, other)
    room.enter([ONE], "ann")
    other.enter([ONE], "ann")
    assert REGISTRY.get_sample_value("both_ways_waiting") == 2
    del room
    gc.collect()
    assert REGISTRY.get_sample_value("both_ways_waiting") == 1
    del other
    gc.collect()
    assert REGISTRY.get_sample_value("both_ways_waiting") == 0


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


@pytest.mark.parametrize(("asked", "told"), [(None, "127.0.0.1"), ("", "127.0.0.1"), ("127.0.0.2", "127.0.0.2")])
def test_only_this_machine_is_answered_unless_told_otherwise(monkeypatch, asked, told):
    monkeypatch.setenv("BOTH_WAYS_METRICS_PORT", str(free_port()))
    monkeypatch.delenv("BOTH_WAYS_METRICS_ADDRESS", raising=False)
    if asked is not None:
        monkeypatch.setenv("BOTH_WAYS_METRICS_ADDRESS", asked)
    server = metrics.serve_if_asked(lambda: True)
    try:
        assert server.server_address[0] == told
    finally:
        server.shutdown()
        server.server_close()


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
