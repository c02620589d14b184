"""Byte-level BPE has pieces of spaces alone: they are neither an answer nor an entity."""

from __future__ import annotations

import pytest

from bert_core import load_engine, tasks
from bert_core.tasks.entities import AGGREGATIONS
from tests.payloads import drawn, visit

TEXTS = ("Paris   dog  \t x", "a \u3000 b", "  dog  ", "\u200b dog \u00a0 x", "dog    the dog")
LABELS = {0: "O", 1: "PER", 2: "LOC", 3: "ORG"}
NAMES = ("RoBERTa", "ModernBERT")


@pytest.fixture(params=NAMES)
def name(request) -> str:
    return request.param


def of_class(name: str, head: str) -> str:
    return {"RoBERTa": "Roberta", "ModernBERT": "ModernBert"}[name] + head


def test_no_answer_is_empty(family, name):
    engine = load_engine(family(name, of_class(name, "ForQuestionAnswering")))
    for text in TEXTS:
        windows = tasks.answer_windows(engine, "who dog?", text)
        found = tasks.best_answers(windows, text, top=999)
        assert found
        assert all(one.text.strip() == one.text == text[one.start:one.end] != "" for one in found)


def test_a_window_of_spaces_alone_is_left_out(family, name):
    engine = load_engine(family(name, of_class(name, "ForQuestionAnswering")))
    text = "dog" + " \t" * 200 + "dog"
    windows = tasks.answer_windows(engine, "who dog?", text)
    assert windows
    assert all(window.positions for window in windows)
    assert tasks.best_answers(windows, text)[0].text


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_no_entity_is_empty(family, name, aggregation):
    engine = load_engine(family(name, of_class(name, "ForTokenClassification"), id2label=LABELS))
    for text in TEXTS:
        reading = tasks.find_entities(engine, text, aggregation=aggregation)
        assert all(text[word.start:word.end].strip() for word in reading.words)
        assert all(one.text == text[one.start:one.end] != "" for one in reading.entities)


def test_the_page_draws_words_and_leaves_spaces(family, name, monkeypatch):
    monkeypatch.setenv("BOTH_WAYS_MODEL", family(name, of_class(name, "ForTokenClassification"), id2label=LABELS))
    for pieces in AGGREGATIONS:
        shown = drawn(visit("tasks", text=TEXTS[0], pieces=pieces), "entities")["words"]
        assert [word["text"].strip() for word in shown] == ["Paris", "dog", "x"]
