"""The Family page for models of other kinds, run without a browser."""

from __future__ import annotations

import contextlib
import html
import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bert_core import TraceRequest
from bert_core.figures import family_claims
from bert_core.load import load_model
from bert_core.measures import cost
from bert_core.measures.cost import Fit, Measured, Timing
from bert_core.tasks.vocabulary import continuation
from tests.payloads import said, table_rows, visit
from ui import state
from ui.turns import Turns
from ui.views import family_cost

TEXT = "the dog barked"


@pytest.mark.parametrize(("asked", "line"), [
    ({"size": "the chosen model"}, "a different block from BERT&#x27;s"),
    ({"view": "Wrong claims"}, "Said wrongly elsewhere"),
    ({"view": "Cost", "cost": "time, measured here"}, "can&#x27;t be measured here"),
])
def test_other_families_get_a_plain_line(family, monkeypatch, asked, line):
    monkeypatch.setenv("BOTH_WAYS_MODEL", family("ModernBERT"))
    words = said(visit("family", text=TEXT, **asked))
    assert line in words
    assert "correlation with the sinusoids" not in words


OTHER, LESS = "is not counted.", "keep less of this model than the formula counts."


@pytest.mark.parametrize(("name", "cost", "lines"), [
    ("ModernBERT", "operations", {OTHER}), ("ModernBERT", "memory", {OTHER, LESS}), ("GPT-2", "operations", set()),
    ("GPT-2", "memory", {LESS}), ("RoBERTa", "operations", set()), ("RoBERTa", "memory", set()),
])
def test_what_the_formulas_do_not_count_of_a_block_is_said(family, monkeypatch, name, cost, lines):
    monkeypatch.setenv("BOTH_WAYS_MODEL", family(name))
    words = said(visit("family", text=TEXT, view="Cost", cost=cost))
    assert {line for line in (OTHER, LESS) if line in words} == lines


def test_no_claim_rests_on_formulas_that_do_not_count_the_model(family):
    for name, there in (("ModernBERT", False), ("GPT-2", True)):
        loaded = load_model(family(name))
        assert [bool(family_claims.evidence(which, loaded, TEXT)) for which in ("prefix", "memory")] == [there] * 2


def test_parts_of_gpt2_are_counted_although_transformers_runs_it(family, monkeypatch):
    folder = family("GPT-2")
    monkeypatch.setenv("BOTH_WAYS_MODEL", folder)
    counted = f'<p class="bw-figure-number">{load_model(folder).info.parameters:,}</p>'
    assert counted in said(visit("family", text=TEXT, size="the chosen model"))


@pytest.mark.parametrize(("model", "title"), [
    ("twin-gpt", "Next after the sentence"), ("twin-rtl", "Before the sentence")])
@pytest.mark.parametrize("text", [TEXT, "dog", ""])
def test_guesses_are_those_of_the_command_line(model, title, text):
    words = said(visit("family", view="Side by side", text=text, model=model))
    assert title in words
    for guess in continuation(state.engine(), text, model):
        assert f"<td data-label=\"token\">{html.escape(guess.token)}</td>" in words


def test_the_maps_side_by_side_have_their_numbers_as_a_table():
    words = said(visit("family", view="Side by side", text="dog dog"))
    for model in ("twin-bert", "twin-gpt"):
        assert f"Attention of {model}, last layer, mean of heads: rows look at columns" in words
    weights = state.engine().run(TraceRequest("dog dog", model="twin-gpt")).attention_probs[-1].mean(axis=0)
    assert f">{weights[2, 1]:.4f}<" in words


def test_what_is_left_out_is_said():
    at = visit("family", view="Side by side", text="dog " * 60)
    at.session_state["with"] = state.model_names()[:4]
    words = said(at.run())
    assert f"not shown: {Path(state.model_names()[3]).name}" in words
    assert "drawn up to 48 tokens, and here are 62" in words


@pytest.fixture
def nothing_measured():
    family_cost._kept().by_model.clear()
    yield
    family_cost._kept().by_model.clear()


def measured_in(lengths, batches) -> Measured:
    """A measurement of the first sizes, so many runs each."""
    times = [Timing(size, float(size), runs) for size, runs in zip(family_cost.LENGTHS, lengths)]
    together = [Timing(size, float(size), runs) for size, runs in zip(family_cost.BATCHES, batches)]
    return Measured(times, Fit(1.0, 0.0, 0.296), together, "CPU")


@pytest.mark.parametrize(("lengths", "batches", "line"), [
    ([3] * 9, [3] * 5, "the fastest of 3 runs each."), ([2] * 9, [2] * 5, "2 runs each, as 12 seconds allow."),
    ([3, 3, 2, 2, 2, 2, 1, 1], [1] * 4,
     "the fastest of 1 to 3 runs each, as 12 seconds allow; there was no time for length 1,024 and batch 16."),
])
def test_a_measurement_says_how_many_runs_it_stands_on(monkeypatch, nothing_measured, lengths, batches, line):
    family_cost._kept().by_model["twin-bert"] = measured_in(lengths, batches)
    at = visit("family", view="Cost", cost="time, measured here", text=TEXT)
    assert line in said(at)
    assert "off by 30 % on average" in said(at)
    assert [row[2] for row in table_rows(at, "Time against length")] == [str(runs) for runs in lengths]
    assert [row[2] for row in table_rows(at, "Time of a batch")] == [str(runs) for runs in batches]


@pytest.mark.parametrize(("model", "line"), [
    ("twin-gpt", "One pass over 64 tokens, with a guess at each: 2.92 GFLOP both ways"),
    ("twin-gpt", "46.5 GFLOP anew each time, 2.90 with a KV cache"),
    ("twin-bert-sst2", "The layers over 64 tokens: 1.40 GFLOP both ways"),
])
def test_what_a_pass_and_writing_cost_has_the_head_where_there_is_one(model, line):
    words = family_claims.evidence("prefix", state.engine().loaded(model), TEXT)
    assert line in words
    assert ("one by one" in words) == (model == "twin-gpt")


@pytest.mark.parametrize("model", ["twin-bert", "twin-bert-sst2"])
def test_a_guess_comes_on_top_of_the_layers(model):
    words = said(visit("family", view="Cost", text=TEXT, model=model))
    assert ("takes 23.7 million operations for each token that is guessed" in words) == (model == "twin-bert")
    assert "GFLOP of the layers" in words


def of(model: str) -> TraceRequest:
    """What asks for a model's measurement."""
    return TraceRequest("", model=model)


def test_nobody_else_computes_in_a_pass_that_is_timed(monkeypatch, nothing_measured):
    """A class that types made the lengths up to twice as slow, for everyone who looked after that."""
    engine, inside, together = state.engine(), [], []

    def timed(model, *inputs):
        inside.append(threading.current_thread())
        hidden = encode(model, *inputs)
        time.sleep(0.002)  # time for another pass to begin in
        together.append(len(inside))
        inside.pop()
        return hidden

    encode = cost.bert.encode
    monkeypatch.setattr(cost.bert, "encode", timed)
    monkeypatch.setattr(family_cost, "LENGTHS", (8, 16))
    monkeypatch.setattr(family_cost, "BATCHES", (1, 2))
    with ThreadPoolExecutor(2) as pool:
        typed = [pool.submit(engine.run, TraceRequest(f"the dog saw {n} cats", model="twin-bert"), f"{n}", False)
                 for n in range(12)]
        measured = family_cost._measure(of("twin-bert"))
        for one in typed:
            one.result(60)
    assert [one.size for one in measured.lengths] == [8, 16]
    assert len(together) >= 12
    assert set(together) == {1}


def test_measurements_are_bounded(monkeypatch, nothing_measured):
    made = itertools.count()
    monkeypatch.setattr(family_cost.state, "call", lambda *_: next(made))
    for n in range(family_cost.MOST_KEPT + 2):
        assert family_cost._measure(of(f"model {n}")) == n
    assert family_cost._measure(of("model 3")) == 3
    assert list(family_cost._kept().by_model) == [f"model {n}" for n in range(2, family_cost.MOST_KEPT + 2)]


def test_two_measure_one_after_the_other_and_share_what_was_found(monkeypatch, nothing_measured):
    inside, most, waiting = [], [], []
    began, both_wait = threading.Event(), threading.Event()

    def say(line):
        waiting.extend(["told to wait"] if "Another visitor is measuring" in line else [])
        if len(waiting) >= 2:
            both_wait.set()
        return contextlib.nullcontext()

    def slow(_steps, request, *_):
        inside.append(request.model)
        most.append(len(inside))
        began.set()
        assert both_wait.wait(60)
        inside.remove(request.model)
        return request.model

    monkeypatch.setattr(family_cost.st, "spinner", say)
    monkeypatch.setattr(family_cost.state, "call", slow)
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(family_cost._measure, of("one"))
        assert began.wait(60)
        same, other = (pool.submit(family_cost._measure, of(name)) for name in ("one", "two"))
        assert [one.result(60) for one in (first, same, other)] == ["one", "one", "two"]
    assert most == [1, 1]
    assert len(waiting) == 2


def test_who_leaves_while_waiting_keeps_nobody_else_out(monkeypatch, nothing_measured):
    lock = family_cost._kept().lock

    class Left(Exception):
        """What Streamlit raises at the end of a spinner whose visitor is gone."""

    @contextlib.contextmanager
    def spinner(line):
        lock.release()  # the other's measurement ends
        yield
        raise Left

    monkeypatch.setattr(family_cost.st, "spinner", spinner)
    lock.acquire()  # another visitor measures
    with pytest.raises(Left), family_cost._alone():
        pass
    assert not lock.locked()


def test_who_measures_lets_others_draw(monkeypatch, nothing_measured):
    turns = Turns(1, patience=10)
    monkeypatch.setattr(family_cost, "TURNS", turns)

    def drawn_meanwhile(*_):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(_draws, turns).result(10)

    monkeypatch.setattr(family_cost.state, "call", drawn_meanwhile)
    with turns.one():
        assert family_cost._measure(of("one")) is True
        assert turns.held


def _draws(turns: Turns) -> bool:
    """Whether another session got a turn."""
    with turns.one():
        return turns.held


def test_a_measurement_that_fails_lets_the_next_one_in(monkeypatch, nothing_measured):
    monkeypatch.setattr(family_cost.state, "call", lambda *_: 1 / 0)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            family_cost._measure(of("one"))
    assert not family_cost._kept().lock.locked()


def test_relatives_explain_their_terms_and_lead_to_their_papers():
    words = said(visit("family", view="Relatives", text=TEXT))
    assert '<a href="https://arxiv.org/abs/1907.11692">RoBERTa</a>' in words
    assert words.count(">–</td>") == 2  # mBERT and HerBERT: no paper in the facts
    assert '<dfn class="bw-term" tabindex="0">token<' in words.partition("bw-cards")[2]


def test_the_letters_of_the_formulas_are_explained():
    words = said(visit("family", size="base", text=TEXT))
    assert "S = 2 segments, E = 768 numbers an embedding" in words
    assert "C is the number of labels of a classifier" in words
