"""Ray Serve for real: two replicas, one killed under load, nothing lost or crossed."""

import contextlib
import functools
import os
import re
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from prometheus_client import REGISTRY

from bench.replica import replicas
from bert_core.load import load_model
from bert_core.measures.attribution import finish, leave_one_out
from bert_core.measures.target import Target
from bert_core.serving.waiting import MAX_WAITING, Busy, Superseded
from bert_core.trace import TraceRequest, run_batch

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def engine(tiny_bert, monkeypatch_module):
    import ray
    from ray import serve

    from bert_core.serving.ray_engine import RayEngine

    ray.init("local", num_cpus=4, namespace="both-ways", include_dashboard=False, log_to_driver=False)
    engine = RayEngine(tiny_bert, cache_bytes=0)
    yield engine
    serve.shutdown()
    ray.shutdown()


@pytest.fixture(scope="module")
def monkeypatch_module():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.delenv("RAY_ADDRESS", raising=False)
        yield patch


def test_the_cluster_gives_the_same_trace(engine, tiny_bert):
    request = TraceRequest(text="the [MASK] barked", pair="we slept", model=tiny_bert)
    trace, alone = engine.run(request), run_batch(load_model(tiny_bert), [request])[0]
    assert trace.arrays.keys() == alone.arrays.keys()
    np.testing.assert_allclose(trace.hidden_states, alone.hidden_states, atol=2e-5)
    with pytest.raises(ValueError, match="read-only"):
        trace.hidden_states[0, 0, 0] = 1


def test_a_wrong_request_is_the_users_error(engine):
    with pytest.raises(ValueError, match="position 99"):
        engine.run(TraceRequest(text="dog", masked=(99,)))


def test_the_cluster_explains_as_this_process_does(engine, tiny_bert):
    request, target = TraceRequest(text="the dog barked", pair="we slept"), Target("nsp", 0)
    found = engine.call(leave_one_out, request, target)
    alone = finish(leave_one_out(load_model(tiny_bert), request, target))
    np.testing.assert_allclose(found.values, alone.values, atol=2e-5)
    with pytest.raises(ValueError, match="has no classification head"):
        engine.call(leave_one_out, request, Target("classification", 0))


def test_a_model_made_here_runs_here_and_the_newest_of_its_name_answers(engine, tiny_bert):
    """A replica could not load it: it lies in no folder."""
    shipped, request = load_model(tiny_bert), TraceRequest(text="the dog barked", model="mine:sentiment-full")
    for shift in (0.0, 1.0):
        bias = f"{shipped.model.names.embedding_norm}.bias"
        weights = {**shipped.model.weights, bias: shipped.model.weights[bias] + shift}
        made = replace(shipped, name=request.model, model=replace(shipped.model, weights=weights))
        engine.register(made)
        (alone,) = run_batch(made, [request])
        np.testing.assert_allclose(engine.run(request).hidden_states, alone.hidden_states, atol=2e-5)
        np.testing.assert_allclose(engine.run_many([TraceRequest(text="cats"), request])[1].hidden_states,
                                   alone.hidden_states, atol=2e-5)
    assert engine.loaded(request.model).name == request.model


def test_the_clusters_requests_are_counted_once(engine, tiny_bert):
    """Those of a model made here too, which this process runs; only calls that have their answer are timed."""
    def counted(ask) -> list[float]:
        names = "both_ways_requests_total", "both_ways_cache_hits_total", "both_ways_latency_seconds_count"
        before = [REGISTRY.get_sample_value(name) for name in names]
        with contextlib.suppress(ValueError):
            ask()
        return [REGISTRY.get_sample_value(name) - then for name, then in zip(names, before, strict=True)]

    engine.register(replace(load_model(tiny_bert), name="mine:counted"))
    there, here = TraceRequest("dogs bark"), TraceRequest("dogs bark", model="mine:counted")
    assert counted(lambda: engine.run_many([there, TraceRequest("cats"), there])) == [3, 0, 1]
    assert counted(lambda: engine.run_many([here, there])) == [2, 0, 1]
    assert counted(lambda: engine.run(here)) == [1, 0, 1]
    assert counted(lambda: engine.run(TraceRequest("dog", masked=(99,)))) == [1, 0, 0]
    for request in (there, here):
        assert counted(lambda request=request: engine.call(leave_one_out, request, Target("nsp", 0))) == [1, 0, 0]
        refused = REGISTRY.get_sample_value("both_ways_unanswered_total", {"why": "refused"})
        wrong = replace(request, masked=(99,))
        with pytest.raises(ValueError, match="99"):
            engine.run(wrong)
        with pytest.raises(ValueError, match="99"):
            engine.call(leave_one_out, wrong, Target("nsp", 0))
        assert REGISTRY.get_sample_value("both_ways_unanswered_total", {"why": "refused"}) == refused + 2


def test_a_replica_killed_under_load_loses_nothing(engine, tiny_bert):
    loaded = load_model(tiny_bert)
    answered: dict[str, np.ndarray] = {}
    errors: list[Exception] = []
    killed = threading.Event()

    def visit(number: int) -> None:
        for turn in range(30):
            text = f"dog {number} cat {turn}"
            try:
                trace = engine.run(TraceRequest(text=text, parts=("hidden_states",)))
                assert trace.encoding.text == text
                answered[text] = trace.hidden_states[-1]
            except Exception as error:
                errors.append(error)
            if number == 0 and turn == 5:
                os.kill(replicas(os.getpid())[0], signal.SIGKILL)
                killed.set()

    threads = [threading.Thread(target=visit, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=240)
    assert killed.is_set()
    assert errors == []
    assert len(answered) == 180
    for text, hidden in list(answered.items())[::9]:
        alone = run_batch(loaded, [TraceRequest(text=text, parts=("hidden_states",))])[0]
        np.testing.assert_allclose(hidden, alone.hidden_states[-1], atol=2e-5)


def test_a_request_that_fails_on_a_replica_is_not_asked_again():
    from bert_core.serving.ray_calls import Call

    asked = []

    class Failed:
        def result(self, timeout_s):
            return RuntimeError("out of memory")

        def cancel(self):
            raise AssertionError("it has its answer")

    call = Call()

    def ask() -> Failed:
        asked.append(1)
        return Failed()

    with pytest.raises(RuntimeError, match="out of memory"):
        call.answer(call.send(ask), ask, 30.0)
    call.give_up()
    assert asked == [1]


def many(name: str, count: int) -> list[TraceRequest]:
    return [TraceRequest(text=f"{name} dog " + "cat " * n, all_logits=True) for n in range(1, count + 1)]


def test_a_newer_call_of_a_visitor_gives_up_what_is_left_of_the_older(engine):
    ended: dict[str, object] = {}

    def ask(name: str, visitor: str, count: int) -> threading.Thread:
        def work() -> None:
            try:
                ended[name] = [trace.encoding.text for trace in engine.run_many(many(name, count), visitor)]
            except Exception as error:
                ended[name] = error

        thread = threading.Thread(target=work)
        thread.start()
        return thread

    threads = [ask("older", "anna", 400), ask("other", "ben", 40)]
    while "anna" not in engine._calls._newest:
        time.sleep(0.001)
    threads.append(ask("newer", "anna", 2))
    for thread in threads:
        thread.join(120)
    assert isinstance(ended["older"], Superseded)
    assert ended["newer"] == [request.text for request in many("newer", 2)]
    assert ended["other"] == [request.text for request in many("other", 40)]
    assert not engine._calls._newest


def test_who_asks_for_hundreds_leaves_room_for_the_others(engine):
    """A call has a window of requests at the cluster; one that comes later isn't behind all of them."""
    took: dict[str, float] = {}

    def ask(name: str, count: int) -> None:
        started = time.perf_counter()
        engine.run_many(many(name, count), name)
        took[name] = time.perf_counter() - started

    ask("warm", 2)
    long = threading.Thread(target=ask, args=("long", 400))
    long.start()
    while "long" not in engine._calls._newest:
        time.sleep(0.001)
    ask("short", 1)
    long.join(120)
    assert took["short"] < took["long"] / 4


def test_a_full_cluster_says_so(engine, tiny_bert):
    from ray import serve

    from bert_core.serving.ray_app import Encoder
    from bert_core.serving.ray_calls import Call

    small = Encoder.options(num_replicas=1, max_ongoing_requests=1, max_queued_requests=2)
    handle = serve.run(small.bind(tiny_bert), name="small", route_prefix=None)
    try:
        call, problems, answers = Call(), [], []
        asks = [functools.partial(handle.run.remote, request) for request in many("full", 60)]
        for response, ask in [(call.send(ask), ask) for ask in asks]:
            try:
                answers.append(call.answer(response, ask, 60.0))
            except Busy as problem:
                problems.append(str(problem))
        assert answers
        assert problems
        assert all("requests wait already; try again in a moment" in problem for problem in problems)
    finally:
        serve.delete("small")


def test_the_bound_of_what_waits_is_the_same_on_a_cluster_of_one_s_own():
    from bert_core.serving.ray_app import Encoder

    text = (Path(__file__).resolve().parents[2] / "deploy/serve.yaml").read_text()
    bounds, ours = re.findall(r"^ +(max_\w+_requests): (\d+)$", text, re.MULTILINE), Encoder._deployment_config
    assert bounds == [("max_ongoing_requests", str(ours.max_ongoing_requests)),
                      ("max_queued_requests", str(ours.max_queued_requests))]
    assert ours.max_queued_requests == MAX_WAITING


def test_an_application_that_is_taken_away_and_deployed_again_is_told_and_answers(engine, tiny_bert, monkeypatch):
    from ray import serve

    from bert_core.serving import ray_engine
    from bert_core.serving.ray_app import APPLICATION, app

    monkeypatch.setattr(ray_engine, "AFRESH", -1.0)
    assert engine.problem() == ""
    serve.delete(APPLICATION)
    assert engine.problem() == "the cluster runs no both-ways; deploy it again"
    with pytest.raises(Busy, match="is a replica still running"):
        engine.run(TraceRequest(text="the dog"))
    serve.run(app({"model": tiny_bert}), name=APPLICATION, route_prefix=None)
    assert engine.problem() == ""
    assert engine.run(TraceRequest(text="the dog")).hidden_states.shape[1] == 4
