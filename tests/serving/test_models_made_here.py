"""A model put under a name that is in use: whoever asks from then on gets the new one's numbers."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from bert_core.load import Loaded, LoadError, load_model
from bert_core.serving import models
from bert_core.serving.local import LocalEngine
from bert_core.serving.models import KeptModels
from bert_core.trace import TraceRequest
from tests.waiting import gate_passes, wait_until


@pytest.fixture
def two(checkpoint) -> list[Loaded]:
    """Two models by the same name."""
    return [replace(load_model(checkpoint("BertForPreTraining", seed=seed)), name="mine") for seed in (3, 4)]


def test_a_trace_of_a_model_that_is_replaced_meanwhile_is_not_kept(tiny_bert, two, monkeypatch):
    engine, request = LocalEngine(tiny_bert), TraceRequest("the dog", model="mine")
    engine.register(two[0])
    taken, gate = gate_passes(monkeypatch)
    with ThreadPoolExecutor(1) as visitor:
        asked = visitor.submit(engine.run, request)
        assert taken.wait(60)
        engine.register(two[1])
        gate.set()
        old = asked.result(60)
    new = engine.run(request)
    assert new.config is two[1].config
    assert (new.hidden_states != old.hidden_states).any()
    assert engine.run(request) is new
    engine.close()


class Loader:
    """Loads what `store` has under a name, as soon as it may."""

    def __init__(self, store: dict[str, Loaded]):
        self.store, self.calls = store, []
        self.began, self.gate = threading.Event(), threading.Event()

    def __call__(self, name: str, precision: str) -> Loaded:
        self.calls.append((name, precision))
        found = self.store.get(name)
        self.began.set()
        assert self.gate.wait(60)
        if found is None:
            raise LoadError("there is none")
        return found


def test_a_model_that_is_replaced_while_it_loads_does_not_push_the_new_one_out(two):
    load = Loader({"mine": two[0]})
    kept = KeptModels("default", load)
    with ThreadPoolExecutor(1) as visitor:
        asked = visitor.submit(kept.get, "mine")
        assert load.began.wait(60)
        kept.replace(two[1])
        load.gate.set()
        assert asked.result(60) is two[1]
    assert kept.get("mine") is two[1]


def test_another_precision_of_a_replaced_model_is_made_once_more(two):
    load = Loader({"mine": two[0]})
    kept = KeptModels("default", load)
    with ThreadPoolExecutor(1) as visitor:
        asked = visitor.submit(kept.get, "mine", "bf16")
        assert load.began.wait(60)
        kept.replace(two[1])
        load.store["mine"] = two[1]
        load.gate.set()
        assert asked.result(60) is two[1]
    assert load.calls == [("mine", "bf16")] * 2
    assert kept.get("mine", "bf16") is two[1]
    assert load.calls == [("mine", "bf16")] * 2


def test_no_precision_of_a_replaced_model_stays(two):
    load = Loader({"mine": two[0]})
    load.gate.set()
    kept = KeptModels("default", load)
    assert kept.get("mine", "bf16") is two[0]
    kept.replace(two[1])
    assert kept.names() == [("mine", "fp32")]
    load.store["mine"] = two[1]
    assert kept.get("mine", "bf16") is two[1]


def test_a_model_that_is_replaced_overtakes_no_other(two):
    load = Loader({"other": replace(two[0], name="other")})
    kept = KeptModels("default", load)
    with ThreadPoolExecutor(1) as visitor:
        asked = visitor.submit(kept.get, "other")
        assert load.began.wait(60)
        kept.replace(two[1])
        load.gate.set()
        assert asked.result(60).name == "other"
    assert load.calls == [("other", "fp32")]


def test_a_name_that_fails_is_tried_by_one_after_the_other_and_then_forgotten(two):
    load, running = Loader({}), []

    def alone(name: str, precision: str) -> Loaded:
        running.append(name)
        try:
            assert len(running) == 1
            return load(name, precision)
        finally:
            running.pop()

    kept = KeptModels("default", alone)
    with ThreadPoolExecutor(9) as visitors:
        asked = [visitors.submit(kept.get, "mine") for _ in range(8)]
        wait_until(lambda: kept._loading and kept._loading["mine", "fp32"].wanted_by == 8)
        other = visitors.submit(kept.replace, replace(two[0], name="another"))
        other.result(60)  # while they wait
        load.gate.set()
        for answer in asked:
            with pytest.raises(LoadError, match="there is none"):
                answer.result(60)
    assert len(load.calls) == 8
    assert kept._loading == {}
    load.store["mine"] = two[1]
    assert kept.get("mine") is two[1]


def test_who_waits_for_a_model_that_another_loads_gets_the_very_same(two):
    load = Loader({"mine": two[0]})
    kept = KeptModels("default", load)
    with ThreadPoolExecutor(8) as visitors:
        asked = [visitors.submit(kept.get, "mine") for _ in range(8)]
        wait_until(lambda: kept._loading and kept._loading["mine", "fp32"].wanted_by == 8)
        load.gate.set()
        assert {id(answer.result(60)) for answer in asked} == {id(two[0])}
    assert load.calls == [("mine", "fp32")]
    assert kept._loading == {}


def test_the_model_used_last_is_the_last_to_go(two, monkeypatch):
    monkeypatch.setattr(models, "MAX_MODELS", 3)
    kept = KeptModels("default", lambda name, precision: replace(two[0], name=name))
    for name in ("default", "a", "b", "a", "c"):
        assert kept.get(name).name == name
    assert [name for name, _ in kept.names()] == ["default", "a", "c"]


def test_a_model_that_was_dropped_and_is_still_in_use_is_kept_again(two, monkeypatch):
    monkeypatch.setattr(models, "MAX_MODELS", 1)
    load = Loader({name: replace(two[0], name=name) for name in ("mine", "other")})
    load.gate.set()
    kept = KeptModels("default", load)
    mine = kept.get("mine")
    load.store["mine"] = None
    kept.get("other")
    assert [name for name, _ in kept.names()] == ["other"]
    assert kept.get("mine") is mine
    assert [name for name, _ in kept.names()] == ["mine"]
    kept.get("other")
    kept.replace(two[1])
    kept.get("other")
    assert kept.get("mine") is two[1]


def test_a_model_that_was_dropped_is_gone_with_its_last_user(two, monkeypatch):
    monkeypatch.setattr(models, "MAX_MODELS", 1)
    kept = KeptModels("default", lambda name, precision: replace(two[0], name=name))
    mine = kept.get("mine")
    kept.get("other")
    assert kept.alive() == {"mine", "other"}
    del mine
    assert kept.alive() == {"other"}
