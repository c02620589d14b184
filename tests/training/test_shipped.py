"""Modest floors under the shipped weights: they were trained, they read the way they say."""

from __future__ import annotations

import numpy as np
import pytest

from bert_core.load import load_model, shipped_names
from bert_core.training import evaluate

TEXT = (
    "The old man walked slowly down the street with his dog. It was raining, and he had no coat.",
    "The city lies on the river and has a large port. In 1850 the railway reached the town.",
    "She was born in London and studied at the University of Oxford before the war.",
)
#: ln of the 30,522 pieces of the vocabulary: what a model that knows nothing pays for a piece.
IGNORANT = float(np.log(30522))


def loss(name: str) -> float:
    """Mean nats a piece over TEXT."""
    loaded = load_model(name)
    pieces = sum(len(loaded.tokenizer.encode(text).content) for text in TEXT)
    return float(-evaluate.log_likelihoods(loaded, TEXT).sum() / pieces)


@pytest.mark.parametrize(("name", "order", "causal"), [
    ("twin-bert", "left-to-right", False), ("twin-gpt", "left-to-right", True), ("twin-rtl", "right-to-left", True),
])
def test_twins_are_what_their_configs_say(name, order, causal):
    assert name in shipped_names()
    loaded = load_model(name)
    assert loaded.config.reading_order == order
    assert loaded.config.is_decoder == causal
    assert loaded.model.heads == ({"lm"} if causal else {"mlm", "pooler", "nsp"})


@pytest.mark.parametrize("name", ["twin-bert", "twin-gpt", "twin-rtl"])
def test_twins_have_learned(name):
    assert loss(name) < 0.75 * IGNORANT


def test_reading_both_ways_leaves_less_surprise_than_one_way():
    assert loss("twin-bert") < min(loss("twin-gpt"), loss("twin-rtl"))


def test_everyday_gaps_are_often_filled():
    assert evaluate.everyday_cloze(load_model("twin-bert"))["top5"] >= 0.5


@pytest.mark.parametrize(("task", "head"), [
    ("sst2", "classification"), ("cola", "classification"), ("ner", "token_classification"),
    ("squad", "question_answering"),
])
def test_task_models_have_their_head(task, head):
    assert head in load_model(f"twin-bert-{task}").model.heads


@pytest.mark.parametrize(("text", "label"), [
    ("A wonderful film, moving and very funny.", "positive"), ("A dull and boring mess, a waste of time.", "negative"),
])
def test_plain_sentiment_is_read_right(text, label):
    from bert_core.serving.local import LocalEngine
    from bert_core.tasks.sentences import classify

    engine = LocalEngine("twin-bert-sst2", pack=False)
    assert classify(engine, text).label == label
    engine.close()
