"""The engine that asks a cluster, with a cluster that is made up: what is sent, kept, run here or refused."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import pytest

from bert_core.load import LoadError, load_model
from bert_core.serving.cache import TraceCache
from bert_core.serving.local import LocalEngine
from bert_core.trace import TraceRequest, run_batch

pytestmark = pytest.mark.cluster


class Cluster:
    """Answers each request when its `result` is asked for, and notes what it was sent.

    Attributes:
        sent: texts, in the order in which they came.
        most: how many had no answer at once.
        meanwhile: done before each answer.
    """

    def __init__(self, loaded):
        self.loaded, self.sent, self.most, self._open = loaded, [], 0, 0
        self.meanwhile = lambda: None
        self.run = SimpleNamespace(remote=self._take)

    def _take(self, request: TraceRequest) -> SimpleNamespace:
        from bert_core.serving.ray_app import to_message

        self.sent.append(request.text)
        self._open += 1
        self.most = max(self.most, self._open)

        def result(timeout_s: float) -> dict:
            self._open -= 1
            self.meanwhile()
            return to_message(run_batch(self.loaded, [request])[0])

        return SimpleNamespace(result=result, cancel=lambda: None)


@pytest.fixture
def cluster(tiny_bert) -> Cluster:
    return Cluster(load_model(tiny_bert))


@pytest.fixture
def engine(tiny_bert, cluster) -> Iterator:
    """A RayEngine on the made-up cluster; it may use its default model and those made here."""
    from bert_core.serving.ray_calls import Calls
    from bert_core.serving.ray_engine import RayEngine

    def check(name: str) -> str:
        raise LoadError(f"{name} is not for you")

    engine = object.__new__(RayEngine)  # without a cluster to connect to
    engine.default, engine.check, engine.cache, engine._calls = tiny_bert, check, TraceCache(), Calls()
    engine._here, engine._made_here = LocalEngine(tiny_bert, cache_bytes=0, check=check), frozenset()
    engine._registers, engine._handle = threading.Lock(), cluster
    yield engine
    engine._here.close()


def small(text: str, **more) -> TraceRequest:
    return TraceRequest(text, parts=("hidden_states",), **more)


def test_what_was_answered_is_kept_unless_it_is_not_to_be(engine, cluster):
    first = engine.run(small("dog"))
    assert engine.run(small("dog")) is first
    engine.run(small("cat"), keep=False)
    engine.run(small("cat"))
    assert cluster.sent == ["dog", "cat", "cat"]


def test_what_need_not_be_asked_for_is_told(engine, cluster):
    request = small("the dog")
    named = replace(request, model=engine.default)
    assert not engine.has(named)
    engine.run(request)
    assert engine.has(engine.default, named)
    assert not engine.has("another", named)


def test_a_request_that_stands_in_a_call_twice_is_sent_once(engine, cluster):
    first, other, again = engine.run_many([small("dog"), small("cat"), small("dog")])
    assert first is again
    assert other.encoding.text == "cat"
    assert cluster.sent == ["dog", "cat"]


def test_of_many_requests_a_window_is_at_the_cluster_at_once(engine, cluster):
    from bert_core.serving.ray_calls import WINDOW

    texts = [f"dog {n}" for n in range(2 * WINDOW + 5)]
    assert [trace.encoding.text for trace in engine.run_many([small(text) for text in texts])] == texts
    assert cluster.sent == texts
    assert cluster.most == WINDOW


def test_a_trace_of_a_model_that_is_replaced_meanwhile_is_not_kept(engine, cluster):
    cluster.meanwhile = lambda: engine.register(replace(cluster.loaded, name="mine"))
    first = engine.run(small("dog"))
    cluster.meanwhile = lambda: None
    assert engine.run(small("dog")) is not first


def test_a_name_that_may_not_be_used_is_refused_before_anything_is_sent(engine, cluster):
    for name in ("elsewhere", "mine"):
        with pytest.raises(LoadError, match=f"{name} is not for you"):
            engine.run_many([small("dog"), small("dog", model=name)])
    engine.register(replace(cluster.loaded, name="mine"))
    assert [trace.model for trace in engine.run_many([small("dog", model="mine"), small("cat")])] == [
        "mine", engine.default]
    assert cluster.sent == ["cat"]


def test_a_model_made_here_is_its_own_until_it_is_gone(engine, cluster, monkeypatch):
    """Pushed out by others it may still be in use, and then it still runs here."""
    monkeypatch.setattr("bert_core.serving.models.MAX_MODELS", 2)
    names = [f"mine:{n}" for n in range(3)]
    in_use = replace(cluster.loaded, name=names[0])
    engine.register(in_use)
    for name in names[1:]:
        engine.register(replace(cluster.loaded, name=name))
    assert engine.run(small("dog", model=names[0])).model == names[0]
    del in_use
    engine.register(replace(cluster.loaded, name="mine:3"))
    engine.register(replace(cluster.loaded, name="mine:4"))
    with pytest.raises(LoadError, match=f"{names[0]} is not for you"):
        engine.run(small("dog", model=names[0]))
    assert cluster.sent == []


@pytest.mark.parametrize("is_there", [False, True])
def test_a_cluster_is_begun_where_there_is_none_and_reports_to_nobody(is_there, tiny_bert, monkeypatch):
    from bert_core.serving import ray_engine

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "")
    monkeypatch.delenv("RAY_USAGE_STATS_ENABLED")
    monkeypatch.setenv("RAY_ADDRESS", "somewhere:6379")
    begun, waited = [], []
    monkeypatch.setattr(ray_engine, "ray", SimpleNamespace(
        is_initialized=lambda: is_there,
        init=lambda address, **_: begun.append((address, os.environ.get("RAY_USAGE_STATS_ENABLED")))))
    monkeypatch.setattr(ray_engine, "serve", SimpleNamespace(get_deployment_handle=lambda *names: names))
    monkeypatch.setattr(ray_engine, "wait_for_application", waited.append)
    assert ray_engine.RayEngine(tiny_bert)._handle == ("encoder", "both-ways")
    assert begun == ([] if is_there else [("somewhere:6379", "0")])
    assert waited == [tiny_bert]
