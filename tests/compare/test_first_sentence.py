"""What a visitor sees first: both sides say book, the left alone says door."""

from __future__ import annotations

import pytest

from bert_core.measures import compare
from bert_core.measures.compare import Question, Readers
from bert_core.serving.local import LocalEngine
from tests.payloads import drawn, visit
from ui.state import DEFAULT_TEXT
from ui.views.compare_ask import DEFAULT_WORD


@pytest.fixture(scope="module")
def engine():
    started = LocalEngine()
    yield started
    started.close()


def test_both_ways_names_the_word_and_the_left_alone_another(engine):
    start = DEFAULT_TEXT.index("[MASK]")
    text = DEFAULT_TEXT.replace("[MASK]", DEFAULT_WORD)
    question = Question(text, None, 0, start, start + len(DEFAULT_WORD))
    readers = Readers("twin-bert", "twin-gpt", "twin-rtl")
    readings, _ = compare.read(engine, question, readers, ("both", "left", "hidden"))
    first = {reader: compare.top(reading, engine, 1)[0].token for reader, reading in readings.items()}
    assert first["both"] == DEFAULT_WORD
    assert first["left"] == "door"  # as the tour says
    assert first["hidden"] != DEFAULT_WORD


def test_it_has_a_word_that_is_cut_and_one_gap():
    chips = drawn(visit("masking"), "gaps")["chips"]
    assert sum(chip["t"] == "[MASK]" for chip in chips) == 1
    assert any(chip["t"].startswith("##") for chip in chips)
