"""Entities from the most probable valid sequence of labels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from bert_core import load_engine
from bert_core.config import BertConfig
from bert_core.tasks import find_entities
from bert_core.tasks.entities import most_probable_path
from tests.payloads import drawn, is_ready, visit

LABELS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
TEXT = "Anna Schmidt of the Hudson Bay Company spoke in New York about war and peace near the old Paris Opera."


def is_valid(path: tuple[int, ...], labels: tuple[str, ...]) -> bool:
    return all(not labels[n].startswith("I-") or (place and labels[path[place - 1]][1:] == labels[n][1:])
               for place, n in enumerate(path))


@pytest.mark.parametrize("words", [1, 2, 3, 5])
def test_the_path_is_the_best_of_all_valid_ones(words: int):
    rng = np.random.default_rng(words)
    paths = [path for path in itertools.product(range(5), repeat=words) if is_valid(path, LABELS)]
    changed = 0
    for _ in range(50):
        table = rng.dirichlet(np.full(5, 0.4), size=words)
        found = tuple(most_probable_path(table, LABELS))
        best = max(paths, key=lambda p: np.prod(table[np.arange(words), list(p)]))
        assert found == best
        changed += found != tuple(table.argmax(axis=1))
    assert changed


def test_another_scheme_gives_each_words_own_label():
    table = np.random.default_rng(3).dirichlet(np.ones(3), size=40)
    for labels in (("O", "PER", "LOC"), ("LABEL_0", "LABEL_1", "LABEL_2"), ("O", "I-PER", "I-LOC")):
        assert most_probable_path(table, labels) == table.argmax(axis=1).tolist()


def test_a_certain_invalid_label_is_no_dead_end():
    path = most_probable_path(np.eye(5)[[2, 4, 2]], LABELS)  # every valid sequence has a probability of 0
    assert is_valid(tuple(path), LABELS)


def test_the_config_says_how_a_model_is_read(checkpoint):
    names = dict(enumerate(LABELS))
    plain, sequence = (checkpoint("BertForTokenClassification", id2label=names, **more)
                       for more in ({}, {"label_decoding": "viterbi"}))
    readings = {}
    for folder in (plain, sequence):
        engine = load_engine(folder)
        own, other = find_entities(engine, TEXT), "argmax" if folder == sequence else "viterbi"
        readings[folder] = [own.entities, find_entities(engine, TEXT, decoding=other).entities]
        labels = tuple(LABELS.index(word.label) for word in own.words)
        assert is_valid(labels, LABELS) == (folder == sequence)
        assert all(word.probability == word.probabilities[n] for word, n in zip(own.words, labels, strict=True))
    assert readings[plain] == readings[sequence][::-1]
    assert readings[plain][0] != readings[plain][1]
    assert load_engine("twin-bert-ner").loaded().config.label_decoding == "viterbi"
    assert "label_decoding" not in BertConfig().to_dict()
    for wrong in ("best", ["viterbi"], 3):
        with pytest.raises(ValueError, match="label_decoding"):
            BertConfig.from_dict({"label_decoding": wrong})
    with pytest.raises(ValueError, match="decoding 'best'"):
        find_entities(load_engine(plain), TEXT, decoding="best")


def test_the_page_reads_either_way():
    at = visit("tasks", text=TEXT)
    is_ready(at)
    engine = load_engine("twin-bert-ner")
    for shown, decoding in (("Best valid sequence", "viterbi"), ("Each word alone", "argmax")):
        at.session_state["sequence"] = shown
        at.run()
        is_ready(at)
        found = find_entities(engine, TEXT, decoding=decoding)
        picture = drawn(at, "entities")
        assert [(e["label"], e["start"], e["end"]) for e in picture["entities"]] == \
            [(e.label, e.start, e.end) for e in found.entities]
        assert [word["label"] for word in picture["words"]] == [word.label for word in found.words]
