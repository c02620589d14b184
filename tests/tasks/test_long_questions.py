"""Questions and contexts of any length take a bounded number of passes, and only for who still asks."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from bert_core import load_engine, tasks
from bert_core.load import load_model
from bert_core.serving import Superseded
from bert_core.serving.local import LocalEngine
from bert_core.tasks import answers
from bert_core.trace import TraceRequest
from tests.waiting import gate_passes

CONTEXT = "the dog barked all night in the garden . " * 12


@pytest.fixture
def engine(tiny_qa):
    engine = LocalEngine(tiny_qa)
    yield engine
    engine.close()


@pytest.mark.parametrize("question", ["who barked ? " * 300, "[SEP] " * 600, "who [SEP] " * 300, "[CLS]" * 600])
def test_half_of_the_window_is_left_for_the_context_whatever_was_asked(engine, question):
    loaded = engine.loaded()
    cut = answers.cut_question(loaded, question)
    assert question.startswith(cut)
    assert len(loaded.tokenizer.encode(cut)) == 2 + loaded.tokenizer.limit // 2
    windows = tasks.answer_windows(engine, question, CONTEXT)
    assert all(window.question == cut for window in windows)
    assert len(windows) < len(loaded.tokenizer.spans(CONTEXT)) / 4


def test_windows_are_bounded_and_the_message_says_what_fits(engine, monkeypatch):
    monkeypatch.setattr(answers, "MAX_WINDOWS", 5)
    with pytest.raises(ValueError, match=r"more than 5 windows of 37 tokens; shorten it to (\d+) characters") as told:
        tasks.answer_windows(engine, "who ?", CONTEXT)
    fits = int(str(told.value).split()[-2])
    assert len(tasks.answer_windows(engine, "who ?", CONTEXT[:fits])) == 5


def test_the_longest_text_of_short_pieces_is_refused_at_once(tiny_qa):
    with pytest.raises(ValueError, match="the context of 400,000 characters takes more than 256 windows"):
        answers.window_spans(load_model(tiny_qa), "who ?", "a " * 200_000)


def test_an_answer_in_two_windows_is_as_sure_as_in_one():
    engine, filler = load_engine("twin-bert-squad"), "The weather was mild and the people walked to the market . "
    scores: dict[int, list[float]] = {1: [], 2: []}
    for before in (0, 15, 30, 36, 38, 40, 50):
        context = filler * before + "It opened in May 1881, in the rain. " + filler * (55 - before)
        windows = tasks.answer_windows(engine, "When did the bridge open?", context)
        best = tasks.best_answers(windows, context, top=1)[0]
        assert best.text == "May 1881"
        scores[sum(window.start <= best.start and best.end <= window.end for window in windows)].append(best.score)
    assert len(scores[2]) == 3
    assert np.mean(scores[2]) == pytest.approx(np.mean(scores[1]), abs=0.1)


def test_spans_of_all_windows_add_up_to_one_at_most(engine):
    windows = tasks.answer_windows(engine, "who barked ?", CONTEXT)
    assert len(windows) > 3
    found = tasks.best_answers(windows, CONTEXT, top=10_000, max_answer=10_000)
    starts, ends = ({(window.start + window.trace.encoding.offsets[n][0]): p
                     for window, row in zip(windows, rows, strict=True)
                     for n, p in zip(window.positions, row, strict=True)}
                    for rows in zip(*answers.answer_probabilities(windows), strict=True))
    assert 0 < sum(starts.values()) < 1  # [CLS] of each window has the rest
    assert sum(one.score for one in found) <= sum(starts.values()) * sum(ends.values())


@pytest.mark.parametrize("read", [
    lambda engine, who: tasks.answer_windows(engine, "who barked ?", CONTEXT, visitor=who),
    lambda engine, who: tasks.find_entities(engine, "paris barked", visitor=who),
])
def test_a_newer_request_of_the_visitor_ends_the_older(tiny_qa, tiny_ner, monkeypatch, request, read):
    engine = LocalEngine(tiny_qa if "0" in request.node.callspec.id else tiny_ner)
    taken, gate = gate_passes(monkeypatch)
    holds = threading.Thread(target=engine.run, args=(TraceRequest("a dog"),))
    holds.start()  # the worker, until the others wait
    assert taken.wait(60)
    ended: list[Exception] = []

    def older() -> None:
        try:
            read(engine, "ann")
        except Superseded as error:
            ended.append(error)

    asks = threading.Thread(target=older)
    asks.start()
    while asks.is_alive() and not len(engine.room):
        threading.Event().wait(0.01)
    newer = threading.Thread(target=engine.run, args=(TraceRequest("a cat"), "ann"))
    newer.start()
    asks.join(20)
    gate.set()
    for thread in (holds, asks, newer):
        thread.join(60)
    engine.close()
    assert len(ended) == 1
