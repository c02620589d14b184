"""Waiting is limited, work is not cut off; a call that takes too long altogether, or that nobody wants, is dropped."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest

from bert_core.serving.local import LocalEngine
from bert_core.serving.waiting import ALTOGETHER, Superseded, TimedOut, WaitingRoom
from bert_core.trace import TraceRequest, run_batch
from tests.waiting import gate_passes


@pytest.fixture
def engine(tiny_bert):
    engine = LocalEngine(tiny_bert)
    yield engine
    engine.close()


def ask(text: str, model: str = "m") -> TraceRequest:
    return TraceRequest(text=text, model=model)


def eight_steps(loaded, request):
    for _ in range(8):
        time.sleep(0.2)
        yield
    return "done"


def test_a_call_may_work_longer_than_it_may_wait(engine):
    assert engine.call(eight_steps, TraceRequest("dog"), seconds=1.0) == "done"


def without_end(loaded, request, log):
    try:
        while True:
            time.sleep(0.02)
            log.append(time.monotonic())
            yield
    finally:
        log.append("dropped")


def test_a_call_without_an_end_is_given_up_and_dropped(engine):
    log, started = [], time.monotonic()
    with pytest.raises(TimedOut, match="a shorter text"):
        engine.call(without_end, TraceRequest("dog"), log, seconds=0.5)
    assert time.monotonic() - started >= ALTOGETHER * 0.5
    while log[-1] != "dropped":
        time.sleep(0.01)
    assert len(engine.room) == 0
    assert len(engine.run(TraceRequest("the dog"))) == 4


def one_long_step(loaded, request, done):
    time.sleep(2.0)
    done.set()
    yield from ()


def test_an_answer_that_nobody_waits_for_harms_nobody(engine, monkeypatch):
    done = threading.Event()
    with pytest.raises(TimedOut):
        engine.call(one_long_step, TraceRequest("dog"), done, seconds=0.4)
    assert done.wait(60)
    _, gate = gate_passes(monkeypatch)
    worker = engine._worker
    with pytest.raises(TimedOut):
        engine.run_many([TraceRequest("dog"), TraceRequest("dog", masked=(99,))], seconds=0.05)
    gate.set()
    assert len(engine.run(TraceRequest("the dog"))) == 4
    assert engine._worker is worker


def test_one_wrong_request_leaves_none_of_its_call_in_the_queue(engine, monkeypatch):
    monkeypatch.setattr("bert_core.serving.local.MAX_BATCH", 1)
    ran = []

    def slow(loaded, requests):
        time.sleep(0.05)
        ran.extend(requests)
        return run_batch(loaded, requests)

    monkeypatch.setattr("bert_core.serving.local.run_batch", slow)
    wrong, others = TraceRequest("dog", masked=(99,)), [TraceRequest(f"dog {n}") for n in range(40)]
    with pytest.raises(ValueError, match="position 99"):
        engine.run_many([wrong, *others], "ann")
    while len(engine.room):
        time.sleep(0.01)
    assert len(ran) < 30


def test_work_waits_anew_for_each_turn():
    room = WaitingRoom()
    (work,) = room.enter([ask("gradients")], "ann", seconds=0.5, work=iter(()))
    assert room.next_batch(16) == [work]
    time.sleep(0.6)  # a step
    room.put_back(work)
    assert room.next_batch(16) == [work]
    room.put_back(work)
    time.sleep(0.6)  # others' passes
    assert room.next_batch(16, timeout=0) == []
    with pytest.raises(TimedOut):
        work.future.result(timeout=0)


def test_who_gets_no_turn_for_too_long_is_given_up():
    room = WaitingRoom()
    tickets = room.enter([ask(str(n)) for n in range(3)], "ann", seconds=1.0)
    (other,) = room.enter([ask("other", "another model")], "bo", seconds=1.0)
    assert room.next_batch(1) == tickets[:1]
    time.sleep(0.6)
    assert room.next_batch(1) == [other]
    time.sleep(0.6)
    assert room.next_batch(1, timeout=0) == []  # ann's: 1.2 s without a turn


def test_a_turn_of_one_request_is_a_turn_of_its_call():
    room = WaitingRoom()
    tickets = room.enter([ask(str(n)) for n in range(3)], "ann", seconds=1.0)
    for ticket in tickets:
        assert room.next_batch(1) == [ticket]
        time.sleep(0.6)


def test_a_cancelled_ticket_is_not_handed_out():
    room = WaitingRoom()
    (gone,) = room.enter([ask("gone")], "ann")
    (left,) = room.enter([ask("left")], "bo")
    assert gone.future.cancel()
    assert room.next_batch(16) == [left]
    assert len(room) == 0


def test_the_rest_of_an_older_call_gives_way_to_a_newer_one(engine, monkeypatch):
    taken, gate = gate_passes(monkeypatch)
    engine.room.most_a_visitor = 2
    got: dict[str, object] = {}

    def visit(who: str, texts: list[str]) -> None:
        try:
            got[who] = [trace.encoding.text for trace in engine.run_many([TraceRequest(t) for t in texts], "ann")]
        except Superseded as error:
            got[who] = error

    older = threading.Thread(target=visit, args=("older", ["a", "b", "c", "d"]))
    older.start()
    assert taken.wait(60)  # its first two are being computed
    newer = threading.Thread(target=visit, args=("newer", ["e", "f"]))
    newer.start()
    while len(engine.room) < 2:
        time.sleep(0.01)
    original = engine.room.next_batch
    monkeypatch.setattr(engine.room, "next_batch", lambda *args, **kwargs: older.join(60) or original(*args, **kwargs))
    gate.set()  # the older call goes on before the newer one's turn
    for thread in (older, newer):
        thread.join(60)
    assert isinstance(got["older"], Superseded)
    assert got["newer"] == ["e", "f"]


@pytest.mark.cluster
def test_the_cluster_too_waits_for_work_as_long_as_it_may_take():
    from bert_core.serving.ray_calls import Calls
    from bert_core.serving.ray_engine import RayEngine

    waited = []
    response = SimpleNamespace(result=lambda timeout_s: waited.append(timeout_s))
    handle = SimpleNamespace(call=SimpleNamespace(remote=lambda *args: response))
    engine = SimpleNamespace(_handle=handle, _named=lambda request: request, _made_here=frozenset(), _calls=Calls())
    RayEngine.call(engine, eight_steps, TraceRequest("dog"))
    assert waited == [ALTOGETHER * 30]
