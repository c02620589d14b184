"""The score of no answer: only where it was trained, and by its definition."""

import dataclasses

import numpy as np
import pytest

from bert_core import load_engine
from bert_core.measures.no_answer import knows_no_answer, no_answer_score
from bert_core.tasks import answer_windows


@pytest.mark.parametrize(("name", "expected"), [
    ("deepset/roberta-base-squad2", True), ("someone/bert-squad_v2", True), ("twin-bert-squad", False),
    ("bert-large-cased-whole-word-masking-finetuned-squad", False),
])
def test_a_name_tells(tiny_qa, name, expected):
    assert knows_no_answer(dataclasses.replace(load_engine(tiny_qa).loaded(), name=name)) is expected


def test_a_config_tells(checkpoint):
    loaded = load_engine(checkpoint("BertForQuestionAnswering", no_answer=True)).loaded()
    assert knows_no_answer(loaded)


def test_it_is_the_span_at_cls_smallest_over_the_windows(tiny_qa):
    engine = load_engine(tiny_qa)
    windows = answer_windows(engine, "who barked ?", "the dog barked all night in the garden . " * 6)
    assert len(windows) > 1
    by_hand = []
    for window in windows:
        places = [0, *window.positions]
        start, end = (np.exp(window.trace.arrays[n][places].astype(float)) for n in ("start_logits", "end_logits"))
        by_hand.append(start[0] / start.sum() * end[0] / end.sum())
    assert no_answer_score(windows) == pytest.approx(min(by_hand))
