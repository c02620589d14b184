"""The in-process engine: right answers to the right visitor, bounded memory, clear errors."""

import copy
import errno
import functools
import gc
import random
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from bert_core.load import LoadError, load_model
from bert_core.serving import engine as engines
from bert_core.serving import local
from bert_core.serving.cache import CACHE_BYTES, TraceCache
from bert_core.serving.local import LocalEngine
from bert_core.serving.waiting import Busy, NoMemory, Stopped, TimedOut
from bert_core.trace import TraceRequest, run_batch
from tests.waiting import gate_passes, wait_until

WORDS = ["the", "dog", "barked", "all", "night", "in", "a", "garden", "and", "we", "walked", "home", "to", "paris"]


@pytest.fixture
def engine(tiny_bert):
    engine = LocalEngine(tiny_bert)
    yield engine
    engine.close()


def test_a_closed_engine_takes_its_models_along(tiny_bert):
    engine = LocalEngine(tiny_bert)
    engine.run(TraceRequest("the dog"))
    left = weakref.ref(engine), weakref.ref(engine.loaded().model)
    engine.close()
    engine._worker.join(timeout=120)
    del engine
    gc.collect()
    assert [one() for one in left] == [None, None]


def double(loaded, request):
    yield
    return 2


@pytest.mark.parametrize("used", [False, True])
def test_a_closed_engine_says_so_at_once_and_starts_nothing(tiny_bert, used):
    engine = LocalEngine(tiny_bert)
    if used:
        engine.run(TraceRequest("the dog"))
    engine.close()
    worker, began = engine._worker, time.monotonic()
    for ask in (engine.run, functools.partial(engine.call, double)):
        with pytest.raises(Stopped, match="the engine was stopped"):
            ask(TraceRequest("the cat"))
    assert time.monotonic() - began < 30
    assert engine._worker is worker


def test_the_engine_gives_what_a_single_pass_gives(engine, tiny_bert):
    request = TraceRequest(text="the [MASK] barked", pair="we slept", model=tiny_bert)
    trace, alone = engine.run(request), run_batch(load_model(tiny_bert), [request])[0]
    assert trace.arrays.keys() == alone.arrays.keys()
    for name, array in alone.arrays.items():
        if array.dtype.kind == "f":
            np.testing.assert_allclose(trace.arrays[name], array, atol=2e-5, err_msg=name)
        else:
            np.testing.assert_array_equal(trace.arrays[name], array, err_msg=name)


def test_forty_visitors_at_once_get_their_own_answers(engine, tiny_bert):
    draw = random.Random(5)
    asked = {f"visitor {n}": " ".join(draw.choices(WORDS, k=3 + n % 9)) for n in range(40)}
    got: dict[str, tuple] = {}

    def visit(name: str) -> None:
        for attention in ("bidirectional", "causal"):
            trace = engine.run(TraceRequest(text=asked[name], attention=attention), visitor=name)
            got[name, attention] = (trace.encoding.text, trace.attention_kind, trace.hidden_states[-1])

    threads = [threading.Thread(target=visit, args=(name,)) for name in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=240)
    assert len(got) == 80
    loaded = load_model(tiny_bert)
    for (name, attention), (text, kind, hidden) in got.items():
        assert (text, kind) == (asked[name], attention)
        alone = run_batch(loaded, [TraceRequest(text=text, attention=attention)])[0]
        np.testing.assert_allclose(hidden, alone.hidden_states[-1], atol=2e-5)


def test_waiting_requests_share_a_pass(engine, monkeypatch):
    sizes = []
    first, gate = threading.Event(), threading.Event()

    def slow(loaded, requests):
        first.set()
        gate.wait(240)
        sizes.append(len(requests))
        return run_batch(loaded, requests)

    monkeypatch.setattr("bert_core.serving.local.run_batch", slow)
    threads = [threading.Thread(target=engine.run, args=(TraceRequest(text=f"dog {n}"),)) for n in range(9)]
    threads[0].start()
    first.wait(240)
    for thread in threads[1:]:
        thread.start()
    while len(engine.room) < 8:
        threading.Event().wait(0.01)
    gate.set()
    for thread in threads:
        thread.join(timeout=240)
    assert sizes == [1, 8]


def test_what_a_whole_class_asks_for_is_run_once(engine, monkeypatch):
    taken, gate = gate_passes(monkeypatch)
    shown = [TraceRequest("the teacher's sentence"), TraceRequest("the teacher's sentence", masked=(1,))]
    with ThreadPoolExecutor(9) as visitors:
        first = visitors.submit(engine.run, TraceRequest("dog"))
        assert taken.wait(60)
        asked = [visitors.submit(engine.run, shown[n % 2], f"follower {n}") for n in range(8)]
        wait_until(lambda: len(engine.room) == 8)
        rows, run = [], local.run_batch
        monkeypatch.setattr(local, "run_batch", lambda loaded, asked: rows.append(len(asked)) or run(loaded, asked))
        gate.set()
        got = [answer.result(60) for answer in asked]
        first.result(60)
    assert rows == [2]
    assert [trace.request.masked for trace in got] == [(), (1,)] * 4
    assert len({id(trace) for trace in got}) == 2


def test_one_wrong_request_fails_alone(engine):
    fine, wrong = TraceRequest(text="the dog"), TraceRequest(text="the dog", masked=(99,))
    answers: dict[str, object] = {}

    def ask(name, request):
        try:
            answers[name] = engine.run(request)
        except ValueError as error:
            answers[name] = error

    threads = [threading.Thread(target=ask, args=pair) for pair in (("fine", fine), ("wrong", wrong))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=240)
    assert answers["fine"].tokens.tolist() == ["[CLS]", "the", "dog", "[SEP]"]
    assert "position 99 is outside 0 to 3" in str(answers["wrong"])


def test_the_same_request_comes_from_the_cache(engine):
    request = TraceRequest(text="the dog")
    assert engine.run(request) is engine.run(request)
    assert engine.run(replace(request, model=engine.default)) is engine.run(request)


def test_a_request_that_stands_in_a_call_twice_is_run_once(engine, monkeypatch):
    rows, run = [], local.run_batch
    monkeypatch.setattr(local, "run_batch", lambda loaded, asked: rows.append(len(asked)) or run(loaded, asked))
    engine.room.most = engine.room.most_a_visitor = 1
    dog, cat = TraceRequest("dog"), TraceRequest("cat")
    first, other, again = engine.run_many([dog, cat, dog], keep=False)
    assert first is again
    assert other.encoding.text == "cat"
    assert rows == [1, 1]


@pytest.mark.parametrize("room", [12, 1], ids=["room for all", "room for one"])
def test_the_worker_never_waits_for_a_disk(room, engine, checkpoint, monkeypatch):
    readers, load = [], local.load_model
    monkeypatch.setattr("bert_core.serving.models.MAX_MODELS", room)
    monkeypatch.setattr(local, "load_model",
                        lambda *args: readers.append(threading.current_thread().name) or load(*args))
    names = [checkpoint("BertForPreTraining", seed=seed) for seed in (4, 5)]
    engine.run_many([TraceRequest("dog", model=name) for name in names])
    assert readers == [threading.current_thread().name] * 2


def test_another_familys_model_runs_as_it_is(family):
    engine = LocalEngine(family("GPT-2"))
    assert engine.run(TraceRequest("the dog")).has("lm_logits")
    engine.close()


def test_the_cache_is_bounded_by_bytes(tiny_bert):
    loaded = load_model(tiny_bert)
    requests = [TraceRequest(text="dog " * n, model=tiny_bert) for n in range(1, 12)]
    traces = run_batch(loaded, requests)
    cache = TraceCache(limit=2 * max(trace.nbytes for trace in traces))
    for request, trace in zip(requests, traces, strict=True):
        cache.put(request, trace)
        assert cache.bytes <= cache.limit
    assert cache.get(requests[-1]) is traces[-1]
    assert cache.get(requests[0]) is None
    cache.drop_model(tiny_bert)
    assert cache.bytes == 0


def test_an_unknown_model_is_one_clear_line(engine):
    with pytest.raises(LoadError, match="no shipped model, no folder"):
        engine.run(TraceRequest(text="dog", model="../etc/passwd"))
    with pytest.raises(LoadError):
        LocalEngine("no such model!")


def test_a_model_made_here_is_no_name_to_check_in_any_precision(tiny_bert):
    def check(name):
        raise LoadError(f"{name} is not for you")

    engine = LocalEngine(tiny_bert, check=check)
    engine.register(replace(engine.loaded(), name="made here"))
    for precision in ("fp32", "bf16", "fp64"):
        assert engine.run(TraceRequest("dog", model="made here", precision=precision)).model == "made here"
        with pytest.raises(LoadError, match="not for you"):
            engine.run(TraceRequest("dog", model="elsewhere", precision=precision))
    engine.close()


def test_the_plain_matrices_go_back_to_the_kernel_where_they_are_packed(tiny_bert, monkeypatch):
    """Of twin-bert they are 43 MB."""
    done = []
    monkeypatch.setattr(local, "packed", lambda model: done.append("packed") or model)
    monkeypatch.setattr(local, "return_freed", lambda: done.append("given back"))
    LocalEngine(tiny_bert, pack=False)
    assert done == []
    LocalEngine(tiny_bert)
    assert done == ["packed", "given back"]


def test_precisions_are_kept_apart(engine):
    request = dict(text="the [MASK] barked")
    exact, double = engine.run(TraceRequest(**request)), engine.run(TraceRequest(**request, precision="fp64"))
    assert (exact.hidden_states.dtype, double.hidden_states.dtype) == (np.float32, np.float64)
    rough = engine.run(TraceRequest(**request, precision="bf16"))
    assert 0 < np.abs(rough.hidden_states - exact.hidden_states).max() < 0.2


def test_models_that_are_not_used_leave_memory(checkpoint, monkeypatch):
    monkeypatch.setattr("bert_core.serving.models.MAX_MODELS", 2)
    names = [checkpoint("BertForPreTraining", seed=seed) for seed in (3, 4, 5)]
    engine = LocalEngine(names[0])
    for name in names:
        engine.run(TraceRequest(text="dog", model=name))
    assert [name for name, _ in engine.models.names()] == [names[0], names[2]]
    engine.close()


def test_what_is_not_to_be_kept_stays_out_of_the_cache(engine):
    seen = engine.run(TraceRequest(text="the dog"))
    before = engine.cache.bytes
    experiment = [TraceRequest(text=f"the dog {n}") for n in range(5)]
    traces = engine.run_many([TraceRequest(text="the dog"), *experiment], keep=False)
    assert engine.cache.bytes == before
    assert traces[0] is seen
    assert engine.run(experiment[0]) is not traces[1]


def test_more_requests_than_a_visitor_may_have_waiting_go_in_several_calls(engine):
    texts = [f"dog {n}" for n in range(2 * engine.room.most_a_visitor + 3)]
    traces = engine.run_many([TraceRequest(text=text, parts=("hidden_states",)) for text in texts], "ann")
    assert [trace.encoding.text for trace in traces] == texts


def in_steps(loaded, request, count, log):
    """Steps that write down whose turn it was."""
    for _ in range(count):
        log.append(request.text)
        yield
    assert request.model == loaded.name
    return loaded.tokenizer.encode(request.text).tokens


def test_a_call_takes_turns_with_the_others(engine, monkeypatch):
    log: list[str] = []
    taken, gate = threading.Event(), threading.Event()

    def noted(loaded, requests):
        taken.set()
        gate.wait(60)
        log.extend(request.text for request in requests)
        return run_batch(loaded, requests)

    monkeypatch.setattr("bert_core.serving.local.run_batch", noted)
    got: dict[str, object] = {}
    plain = threading.Thread(target=lambda: got.update(first=engine.run(TraceRequest(text="first"))))
    plain.start()  # holds the worker until all the others wait
    assert taken.wait(60)
    calls = [threading.Thread(target=lambda who=who: got.update(
        {who: engine.call(in_steps, TraceRequest(text=who), 3, log, visitor=who)})) for who in ("ann", "bo")]
    for number, call in enumerate(calls):
        call.start()
        while len(engine.room) < number + 1:
            threading.Event().wait(0.01)
    other = threading.Thread(target=lambda: got.update(cy=engine.run(TraceRequest(text="cy"), "cy")))
    other.start()
    while len(engine.room) < 3:
        threading.Event().wait(0.01)
    gate.set()
    for thread in (plain, *calls, other):
        thread.join(timeout=60)
    assert log == ["first", "ann", "bo", "cy", "ann", "bo", "ann", "bo"]
    assert got["ann"] == ("[CLS]", *load_model(engine.default).tokenizer.encode("ann").tokens[1:])


def failing(loaded, request):
    yield
    raise ValueError(f"nothing to explain in {request.text!r}")


def slow_steps(loaded, request):
    for _ in range(9):
        threading.Event().wait(0.6)
        yield


def test_a_call_that_fails_or_waits_too_long_says_so(engine):
    with pytest.raises(ValueError, match="nothing to explain in 'dog'"):
        engine.call(failing, TraceRequest(text="dog"))
    with pytest.raises(TimedOut, match="no time for this"):
        engine.call(slow_steps, TraceRequest(text="dog"), seconds=0.5)
    engine.room.most = 0
    with pytest.raises(Busy, match="try again in a moment"):
        engine.call(in_steps, TraceRequest(text="dog"), 3, [])


@pytest.mark.parametrize(("asked", "kept"), [(None, CACHE_BYTES), ("32", 32 * 2**20), ("0", 0), ("-1", CACHE_BYTES),
                                             ("1e3", CACHE_BYTES), ("999999", CACHE_BYTES)])
def test_who_runs_the_server_bounds_its_traces(monkeypatch, tiny_bert, asked, kept):
    monkeypatch.delenv("BOTH_WAYS_CACHE_MB", raising=False)
    if asked is not None:
        monkeypatch.setenv("BOTH_WAYS_CACHE_MB", asked)
    assert engines.engine_of.__wrapped__(str(tiny_bert), None).cache.limit == kept


ENDS_IN_THE_MIDDLE = """
import sys, threading
from bert_core.serving.local import LocalEngine
from bert_core.trace import TraceRequest

engine = LocalEngine(sys.argv[1], cache_bytes=0)
engine.run(TraceRequest(text="the dog"))
for n in range(4):
    visit = lambda n=n: [engine.run(TraceRequest(text=f"dog {n} {k}"), visitor=str(n)) for k in range(1000)]
    threading.Thread(target=visit, daemon=True).start()
"""


def test_a_process_may_end_while_its_engine_works(tiny_bert):
    ended = subprocess.run([sys.executable, "-c", ENDS_IN_THE_MIDDLE, tiny_bert], capture_output=True, text=True,
                           timeout=240)
    assert ended.returncode == 0, ended.stderr


class Panic(BaseException):
    """As pyo3's: outside of Exception."""


@pytest.mark.parametrize("steps", [False, True], ids=["batch", "call"])
def test_a_panic_ends_neither_the_worker_nor_another_visitors_wait(steps, engine, tiny_bert, monkeypatch):
    bad = load_model(tiny_bert)
    bad = replace(bad, name="bad", tokenizer=copy.copy(bad.tokenizer))

    def panic(*_):
        raise Panic("retry-limit")
        yield

    monkeypatch.setattr(bad.tokenizer, "encode", lambda *_: next(panic()))
    engine.register(bad)
    ask = functools.partial(engine.call, panic) if steps else engine.run
    with pytest.raises(RuntimeError, match="Panic: retry-limit"):
        ask(TraceRequest("the dog", model="bad"))
    worker = engine._worker
    assert engine.run(TraceRequest("the dog barked")).encoding.text == "the dog barked"
    assert engine._worker is worker


@pytest.mark.parametrize("error", [
    MemoryError(), OSError(errno.ENOMEM, "Cannot allocate memory"), torch.OutOfMemoryError("CUDA out of memory"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory: you tried to"),
], ids=["numpy", "mmap", "GPU", "torch"])
def test_a_pass_without_memory_enough_is_a_line_for_its_visitor(error, engine, monkeypatch):
    def fail(*_):
        raise error
        yield

    monkeypatch.setattr(local, "run_batch", lambda *_: next(fail()))
    for ask in (engine.run, functools.partial(engine.call, fail)):
        with pytest.raises(NoMemory, match="this takes more memory than the server has; try a shorter text"):
            ask(TraceRequest("the dog"))


def test_another_failure_of_a_pass_is_told_as_it_is(engine, monkeypatch):
    def fail(*_):
        raise RuntimeError("a kernel is missing")

    monkeypatch.setattr(local, "run_batch", fail)
    with pytest.raises(RuntimeError, match="^a kernel is missing$"):
        engine.run(TraceRequest("the dog"))


def test_visitors_who_are_the_first_together_start_one_worker(engine, monkeypatch):
    started = []

    class Slow(threading.Thread):
        def __init__(self, **options):
            time.sleep(0.02)  # so that all of them look for a worker before the first is there
            super().__init__(**options)
            started.append(self)

    monkeypatch.setattr(local, "threading", SimpleNamespace(Thread=Slow))
    with ThreadPoolExecutor(8) as visitors:
        list(visitors.map(engine.run, [TraceRequest(f"dog {n}") for n in range(8)]))
    assert started == [engine._worker]


def test_a_worker_that_has_died_is_replaced(engine):
    engine._worker = dead = threading.Thread(target=lambda: None)
    dead.start()
    dead.join()
    assert len(engine.run_many([TraceRequest("the dog")], seconds=10)) == 1
    assert engine._worker is not dead


def test_a_callers_own_slow_batches_do_not_use_up_its_time(tiny_bert, monkeypatch):
    slow = LocalEngine(tiny_bert, pack=False)
    monkeypatch.setattr(local, "run_batch", lambda *batch: time.sleep(0.4) or run_batch(*batch))
    asked = [TraceRequest(f"the dog {'and ' * n}slept", parts=("pooled_output",)) for n in range(2 * local.MAX_BATCH)]
    try:
        assert len(slow.run_many(asked, seconds=0.3)) == len(asked)
    finally:
        slow.close()
