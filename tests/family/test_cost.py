"""What an encoder costs, against counting by hand and by PyTorch."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import BertConfig as TheirConfig
from transformers import BertLMHeadModel

from bert_core import model as bert
from bert_core.config import BertConfig
from bert_core.figures import cost as figures
from bert_core.load import load_model
from bert_core.measures import cost
from bert_core.measures.attribution import finish
from bert_core.measures.cost import (
    Timing,
    activation_memory,
    crossover,
    fit_time,
    forward_work,
    generation_work,
    head_work,
    measure_encoder,
    measure_time,
)
from bert_core.request import EMBEDDING_PARTS, HEAD_PARTS, INPUT_PARTS, TraceRequest
from bert_core.sizes import is_counted
from bert_core.trace import run_batch

BASE = BertConfig()


def inputs_of(ids: torch.Tensor) -> bert.Inputs:
    return bert.Inputs(ids, torch.zeros_like(ids), torch.ones_like(ids, dtype=torch.bool), torch.tensor([True]))


def test_operations_are_those_that_pytorch_counts(tiny_bert):
    model = load_model(tiny_bert).model
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        bert.encode(model, inputs_of(torch.arange(11)[None] % 50))
    assert counter.get_total_flops() == forward_work(model.config, 11).total


def flops_of(module: torch.nn.Module) -> int:
    """What PyTorch counts in one pass of transformers' own encoder over 11 tokens."""
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        module.base_model(torch.arange(5, 16)[None])
    return counter.get_total_flops()


def test_a_block_that_the_formulas_do_not_count_is_said_to_be_another(family):
    gpt2, modern = load_model(family("GPT-2")), load_model(family("ModernBERT"))
    assert flops_of(gpt2.model.module) == forward_work(gpt2.config, 11).total
    assert is_counted(gpt2.config)
    work = forward_work(modern.config, 11)
    assert flops_of(modern.model.module) == work.total + work.feed_forward / 2  # its gate is one more product of D I
    assert not is_counted(modern.config)


@pytest.mark.parametrize("name", ["BERT", "ALBERT", "ELECTRA, generator", "GPT-2"])
def test_operations_of_the_vocabulary_head_are_those_that_pytorch_counts(family, name):
    loaded = load_model(family(name))
    hidden = torch.zeros(1, 11, loaded.config.hidden_size)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        loaded.model.module.lm_head(hidden) if name == "GPT-2" else bert.mlm_logits(loaded.model, hidden)
    assert counter.get_total_flops() == head_work(loaded.config, 11)


def test_writing_anew_takes_what_pytorch_counts(tiny_bert):
    model = load_model(tiny_bert).model
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        for n in range(1, 8):
            _, hidden = bert.encode(model, inputs_of(torch.arange(n)[None]))
            bert.mlm_logits(model, hidden[:, -1])
    assert counter.get_total_flops() == generation_work(model.config, 7)[0]


def test_writing_with_a_cache_takes_what_pytorch_counts():
    sizes = dict(vocab_size=83, hidden_size=15, num_hidden_layers=2, num_attention_heads=3, intermediate_size=28,
                 is_decoder=True)
    writer = BertLMHeadModel(TheirConfig(**sizes, attn_implementation="eager")).eval()
    kept = None
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        for n in range(7):
            kept = writer(torch.tensor([[n]]), past_key_values=kept, use_cache=True).past_key_values
    assert counter.get_total_flops() == generation_work(BertConfig(**sizes), 7)[1]


def test_crossovers_are_where_the_formulas_meet():
    at = crossover(BASE)
    work = forward_work(BASE, int(at.scores))
    assert work.scores == work.feed_forward
    work = forward_work(BASE, int(at.attention))
    assert work.scores + work.projections == work.feed_forward
    assert (at.scores, at.attention) == (3072, 1536)


@pytest.mark.parametrize("name", ["BERT", "RoBERTa", "DistilBERT", "ALBERT"])
def test_memory_is_what_a_trace_keeps(family, name):
    loaded = load_model(family(name))
    trace = run_batch(loaded, [TraceRequest("the dog barked all night")])[0]
    besides = sum(array.nbytes for part, array in trace.arrays.items() if part in (*INPUT_PARTS, *HEAD_PARTS))
    memory = activation_memory(loaded.config, len(trace))
    assert memory.total == trace.nbytes - besides
    assert memory.embeddings == sum(trace.arrays[part].nbytes for part in EMBEDDING_PARTS if trace.has(part))
    assert memory.attention == trace.attention_scores.nbytes + trace.attention_probs.nbytes


def test_memory_at_the_limit_matches_the_known_size():
    assert 430e6 < activation_memory(BASE, 512).total < 600e6


def test_a_cache_saves_all_but_the_new_token():
    again, kept = (work - head_work(BASE, 64) for work in generation_work(BASE, 64))
    assert kept < again / 20
    once = forward_work(BASE, 1).total + head_work(BASE, 1)
    assert generation_work(BASE, 1) == pytest.approx((once, once))


def test_fit_finds_what_made_the_times():
    lengths = [16, 48, 128, 500]
    fit = fit_time(lengths, [0.2 * n + 0.0005 * n**2 for n in lengths])
    assert fit.a == pytest.approx(0.2)
    assert fit.b == pytest.approx(0.0005)
    assert fit.crossover == pytest.approx(400)
    assert fit.error < 1e-9


def test_how_far_off_a_fit_is_is_the_mean_of_its_distances():
    lengths, times = np.array([16, 48, 128, 500]), np.array([4.0, 9.0, 50.0, 150.0])
    fit = fit_time(lengths.tolist(), times.tolist())
    assert fit.error == pytest.approx(np.mean(np.abs(fit.at(lengths) - times) / times))
    assert fit.error > 0.1


def test_fit_never_goes_below_zero():
    straight = fit_time([10, 20, 40], [1.0, 1.9, 3.5])
    assert straight.b == 0
    assert straight.crossover == float("inf")


@pytest.mark.parametrize(("lengths", "times"), [([8], [1.0]), ([8, 8], [1.0, 2.0]), ([8, 9], [1.0, 0.0])])
def test_fit_needs_two_lengths_and_positive_times(lengths, times):
    with pytest.raises(ValueError, match="two different lengths"):
        fit_time(lengths, times)


def test_measuring_warms_up_and_counts_its_runs():
    seen = []
    timed = finish(measure_time(seen.append, (1, 2), repeats=2, budget=5.0))
    assert [(one.size, one.runs) for one in timed] == [(1, 2), (2, 2)]
    assert seen == [1, 1, 2, 2, 1]


def test_measuring_stops_at_its_budget(monkeypatch):
    seen, clock = [], itertools.count()
    monkeypatch.setattr(cost.time, "perf_counter", lambda: float(next(clock)))
    assert finish(measure_time(seen.append, (1, 2, 3), repeats=2, budget=0.0)) == []
    timed = finish(measure_time(seen.append, (1, 2, 3), repeats=2, budget=4.5))  # seconds, of which each run takes one
    assert [(one.size, one.runs) for one in timed] == [(1, 1), (2, 2), (3, 1)]


def test_encoder_is_measured_past_its_position_table(tiny_bert):
    measured = finish(measure_encoder(load_model(tiny_bert), TraceRequest(""), (8, 16, 64), (1, 2), budget=3.0))
    assert [(one.size, one.runs) for one in measured.lengths] == [(8, 3), (16, 3), (64, 3)]
    assert [(one.size, one.runs) for one in measured.batches] == [(1, 3), (2, 3)]
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
    assert figures.time_figure([Timing(8, 1.0, 3), Timing(16, 2.5, 3)], fit).data[3].y == (1.0, 2.5)
    assert list(figures.batch_figure([Timing(1, 3.0, 3), Timing(4, 6.0, 2)]).data[0].y) == [3.0, 1.5]
