"""What the engine keeps is bounded by the memory it takes: Traces with their texts, models by their weights."""

from __future__ import annotations

import gc
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from bert_core.load import Loaded, load_model
from bert_core.serving.cache import TraceCache, held_bytes
from bert_core.serving.local import LocalEngine
from bert_core.serving.models import MODEL_BYTES
from bert_core.trace import Trace, TraceRequest, run_batch
from tests.adapters.families import FAMILIES, make_family

#: Kinds of entries whose memory is mostly not the arrays'.
ENTRIES = {
    "short": lambda n: TraceRequest(f"{n} dog", parts=("nsp_logits",)),
    "all parts": lambda n: TraceRequest(f"{n} the dog barked all night"),
    "emoji": lambda n: TraceRequest(f"{n} " + "😀" * 9_000, f"{n} " + "😀 " * 9_000, parts=("nsp_logits",)),
    "masks beyond the cut": lambda n: TraceRequest(f"{n} " + "[MASK] " * 300, parts=("nsp_logits",)),
    "cuts": lambda n: TraceRequest(f"{n} " + "dog " * 15, cut=tuple((q, k) for q in range(15) for k in range(15)),
                                   parts=("nsp_logits",)),
}


def taken_and_counted(loaded: Loaded, kind: str) -> tuple[int, int]:
    """Bytes that three entries took, and those that the cache counts for them."""
    cache = TraceCache(limit=2**30)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for n in range(10, 13):
        request = ENTRIES[kind](n)
        cache.put(request, run_batch(loaded, [request])[0])
    del request
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return taken, cache.bytes


@pytest.mark.parametrize("kind", ENTRIES)
def test_the_cache_counts_all_the_memory_that_an_entry_takes(tiny_bert, kind):
    loaded = load_model(tiny_bert)
    run_batch(loaded, [ENTRIES[kind](0)])
    # The least of three: a thread that an earlier test has left may take memory of its own meanwhile.
    taken, counted = min(taken_and_counted(loaded, kind) for _ in range(3))
    assert taken <= counted


def test_long_texts_push_others_out(tiny_bert):
    loaded, cache = load_model(tiny_bert), TraceCache(limit=2**20)
    requests = [TraceRequest(f"{n} " + "😀" * 20_000, model=tiny_bert, parts=("nsp_logits",)) for n in range(9)]
    for request in requests:
        cache.put(request, run_batch(loaded, [request])[0])
        assert cache.bytes <= cache.limit
    assert [cache.get(request) is not None for request in requests] == [False] * 6 + [True] * 3
    cache.put(requests[-1], cache.get(requests[-1]))
    cache.drop_model(tiny_bert)
    assert cache.bytes == 0


def test_the_trace_used_last_stays_and_one_beyond_the_limit_pushes_nobody_out(tiny_bert):
    loaded = load_model(tiny_bert)
    small = [TraceRequest(f"dog {n}", model=name, parts=("nsp_logits",)) for n, name in enumerate("mmno")]
    large = TraceRequest("dog " * 30, model="m")
    traces = run_batch(loaded, [*small, large])
    cache = TraceCache(limit=int(3.5 * held_bytes(small[0], traces[0])))

    def kept() -> list[int]:
        return [n for n, request in enumerate([*small, large]) if request in cache._traces]

    for n in range(3):
        cache.put(small[n], traces[n])
    assert cache.get(small[0]) is traces[0]
    cache.put(small[3], traces[3])
    assert kept() == [0, 2, 3]
    cache.put(large, traces[4])
    assert kept() == [0, 2, 3]
    cache.drop_model("m")
    assert kept() == [2, 3]
    assert cache.bytes == sum(held_bytes(small[n], traces[n]) for n in (2, 3))
    before = cache.drops
    cache.put(small[0], traces[0], before - 1)
    assert kept() == [2, 3]
    cache.put(small[0], traces[0], before)
    assert kept() == [0, 2, 3]


def whole_memory(array: np.ndarray) -> int:
    """Bytes that stay in memory as long as the array does."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array.nbytes if array.base is None else array.base.untyped_storage().nbytes()


def assert_alone(traces: list[Trace]) -> None:
    for trace in traces:
        for name, array in trace.arrays.items():
            assert whole_memory(array) == array.nbytes, name


BATCH = [TraceRequest(text) for text in ("the dog", "the dog barked all night in the garden", "a cat")]


@pytest.mark.parametrize("name", ["GPT-2", "DeBERTa v2 and v3"])
def test_a_trace_of_an_adapter_does_not_keep_its_batch(tmp_path, name):
    loaded = load_model(str(make_family(tmp_path, next(family for family in FAMILIES if family.name == name))))
    traces = run_batch(loaded, BATCH)
    assert_alone(traces)
    for request, trace in zip(BATCH, traces, strict=True):
        alone = run_batch(loaded, [request])[0]
        np.testing.assert_allclose(trace.hidden_states, alone.hidden_states, atol=2e-5)
        np.testing.assert_allclose(trace.attention_probs, alone.attention_probs, atol=2e-5)


@pytest.mark.parametrize("architecture", ["BertForPreTraining", "BertForSequenceClassification",
                                          "BertForTokenClassification", "BertForQuestionAnswering"])
def test_no_head_keeps_its_batch(checkpoint, architecture):
    assert_alone(run_batch(load_model(checkpoint(architecture)), BATCH))


@pytest.fixture
def four(checkpoint) -> list[str]:
    return [checkpoint("BertForPreTraining", seed=seed) for seed in (3, 4, 5, 6)]


def kept_after(engine: LocalEngine, names: list[str]) -> list[str]:
    for name in names:
        engine.loaded(name)
    return [name for name, _ in engine.models.names()]


def test_models_beyond_the_bytes_leave_the_oldest_first(four):
    engine = LocalEngine(four[0])
    size = 4 * engine.loaded().info.parameters
    engine.models.bytes = 3 * size
    assert kept_after(engine, four) == [four[0], four[2], four[3]]
    engine.loaded(four[2])  # used again
    assert kept_after(engine, [four[1]]) == [four[0], four[2], four[1]]
    engine.models.bytes = 3 * size - 1
    assert kept_after(engine, [four[3]]) == [four[0], four[3]]


def test_the_default_and_the_newest_model_stay_however_large(four):
    engine = LocalEngine(four[0])
    engine.models.bytes = 0
    for name in four[1:]:
        assert kept_after(engine, [name]) == [four[0], name]
    engine.register(replace(engine.loaded(), name="made here"))
    assert kept_after(engine, []) == [four[0], "made here"]


def test_a_precision_counts_by_its_bytes(four):
    engine = LocalEngine(four[0])
    engine.models.bytes = int(4.4 * 4 * engine.loaded().info.parameters)
    engine.loaded(four[1])
    engine.loaded(four[1], "fp64")  # 1 + 1 + 2
    assert kept_after(engine, [four[2]]) == [four[0], four[1], four[2]]
    assert [precision for _, precision in engine.models.names()] == ["fp32", "fp64", "fp32"]


@pytest.mark.parametrize(("asked", "kept"), [(None, MODEL_BYTES), ("32", 32 * 2**20), ("0", 0), ("-1", MODEL_BYTES),
                                             ("6 GB", MODEL_BYTES), ("999999", MODEL_BYTES)])
def test_who_runs_the_server_bounds_its_models(monkeypatch, tiny_bert, asked, kept):
    monkeypatch.delenv("BOTH_WAYS_MODELS_MB", raising=False)
    if asked is not None:
        monkeypatch.setenv("BOTH_WAYS_MODELS_MB", asked)
    assert LocalEngine(tiny_bert).models.bytes == kept


def test_what_is_kept_is_told(tiny_bert, checkpoint):
    engine = LocalEngine(tiny_bert)
    request, other = TraceRequest("the dog", model=tiny_bert), checkpoint("BertForMaskedLM")
    assert [engine.has(one) for one in (tiny_bert, request, other)] == [True, False, False]
    engine.run(request)
    assert engine.has(tiny_bert, request)
    assert not engine.has(request, replace(request, masked=(1,)))
    engine.loaded(other)
    assert engine.has(other, request)
    engine.cache.drop_model(tiny_bert)
    assert not engine.has(request)
    assert engine.problem() == ""
    engine.close()
    assert engine.problem() == "the engine was closed"
