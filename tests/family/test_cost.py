"""What an encoder costs, against counting by hand and by PyTorch."""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from bert_core import model as bert
from bert_core.config import BertConfig
from bert_core.figures import cost as figures
from bert_core.load import load_model
from bert_core.measures.cost import (
    activation_memory,
    crossover,
    fit_time,
    forward_work,
    generation_work,
    measure_encoder,
    measure_time,
)
from bert_core.trace import TraceRequest, run_batch

BASE = BertConfig()


def test_operations_are_those_that_pytorch_counts(tiny_bert):
    model = load_model(tiny_bert).model
    ids = torch.arange(11)[None] % 50
    inputs = bert.Inputs(ids, torch.zeros_like(ids), torch.ones_like(ids, dtype=torch.bool), torch.tensor([False]))
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        bert.encode(model, inputs)
    assert counter.get_total_flops() == forward_work(model.config, 11).total


def test_crossovers_are_where_the_formulas_meet():
    at = crossover(BASE)
    work = forward_work(BASE, int(at.scores))
    assert work.scores == work.feed_forward
    work = forward_work(BASE, int(at.attention))
    assert work.scores + work.projections == work.feed_forward
    assert (at.scores, at.attention) == (3072, 1536)


def test_memory_is_what_a_trace_keeps(tiny_bert):
    loaded = load_model(tiny_bert)
    trace = run_batch(loaded, [TraceRequest("the dog barked all night")])[0]
    kept = ("hidden_states", "query", "key", "value", "context", "attention_output", "intermediate",
            "attention_scores", "attention_probs")
    total = sum(trace.arrays[name].nbytes for name in kept)
    assert activation_memory(loaded.config, len(trace)).total == total


def test_memory_at_the_limit_matches_the_known_size():
    assert 430e6 < activation_memory(BASE, 512).total < 600e6


def test_a_cache_saves_all_but_the_new_token():
    again, kept = generation_work(BASE, 64)
    assert kept < again / 20
    assert generation_work(BASE, 1)[0] == pytest.approx(forward_work(BASE, 1).total)
    assert generation_work(BASE, 1)[1] == pytest.approx(forward_work(BASE, 1).total)


def test_fit_finds_what_made_the_times():
    lengths = [16, 48, 128, 500]
    fit = fit_time(lengths, [0.2 * n + 0.0005 * n**2 for n in lengths])
    assert fit.a == pytest.approx(0.2)
    assert fit.b == pytest.approx(0.0005)
    assert fit.crossover == pytest.approx(400)
    assert fit.error < 1e-9


def test_fit_never_goes_below_zero():
    straight = fit_time([10, 20, 40], [1.0, 1.9, 3.5])
    assert straight.b == 0
    assert straight.crossover == float("inf")


@pytest.mark.parametrize(("lengths", "times"), [([8], [1.0]), ([8, 8], [1.0, 2.0]), ([8, 9], [1.0, 0.0])])
def test_fit_needs_two_lengths_and_positive_times(lengths, times):
    with pytest.raises(ValueError, match="two different lengths"):
        fit_time(lengths, times)


def test_measuring_stops_at_its_budget():
    seen = []
    measure_time(seen.append, (1, 2, 3), repeats=2, budget=0.0)
    assert seen == []
    assert [n for n, _ in measure_time(seen.append, (1, 2), repeats=2, budget=5.0)] == [1, 2]
    assert seen == [1, 2, 2, 1]


def test_encoder_is_measured_past_its_position_table(tiny_bert):
    measured = measure_encoder(load_model(tiny_bert), (8, 16, 64), (1, 2), budget=3.0)
    assert [n for n, _ in measured.lengths] == [8, 16, 64]
    assert [n for n, _ in measured.batches] == [1, 2]
    assert "float32" in measured.where


def test_figures_draw_the_same_numbers():
    drawn = {trace.name: trace for trace in figures.work_figure(BASE).data}
    at = figures.LENGTHS.index(figures.LENGTHS[20])
    assert drawn["feed-forward"].y[at] * 1e9 == forward_work(BASE, figures.LENGTHS[20]).feed_forward
    drawn = figures.memory_figure(BASE)
    memory = {trace.name: trace for trace in drawn.data}
    assert drawn.layout.yaxis.title.text == "activations of one sentence, MiB"
    assert memory["attention maps, n²"].y[at] * 2**20 == activation_memory(BASE, figures.LENGTHS[20]).attention
    fit = fit_time([8, 16], [1.0, 2.5])
    assert figures.time_figure([(8, 1.0), (16, 2.5)], fit).data[3].y == (1.0, 2.5)
    assert list(figures.batch_figure([(1, 3.0), (4, 6.0)]).data[0].y) == [3.0, 1.5]
