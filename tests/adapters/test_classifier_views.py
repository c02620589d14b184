"""Classifiers that run through transformers on the pages: what can be told of them, and a plain reason for the rest."""

from __future__ import annotations

import html

import pytest

from bert_core.load import Loaded, load_model
from bert_core.measures.attribution import finish, gradient_x_input, integrated_gradients, leave_one_out
from bert_core.measures.pooler import head_operands
from bert_core.measures.target import Target
from bert_core.trace import TraceRequest, run_batch
from tests.payloads import drawn, is_ready, plain_line, said, visit

STEMS = {"DeBERTa v2 and v3": "DebertaV2", "ModernBERT": "ModernBert", "unknown: MPNet": "MPNet"}
TEXT = "the dog barked"


@pytest.fixture(scope="module", params=STEMS)
def classifier(request, family) -> Loaded:
    """A tiny random sequence classifier of another family."""
    return load_model(family(request.param, f"{STEMS[request.param]}ForSequenceClassification"))


@pytest.fixture
def look(classifier, monkeypatch):
    """look(page, view) -> the page run with the classifier as its model."""
    monkeypatch.setenv("BOTH_WAYS_MODEL", classifier.name)

    def run(page: str, view: str):
        at = visit(page, view=view, text=TEXT)
        assert not at.exception
        return at

    return run


@pytest.mark.parametrize("method", [integrated_gradients, gradient_x_input])
def test_gradients_are_refused_with_a_reason(classifier, method):
    with pytest.raises(ValueError, match="runs through transformers: gradients"):
        finish(method(classifier, TraceRequest(TEXT), Target("classification", 1)))


def test_the_head_is_refused_with_a_reason(classifier):
    trace = run_batch(classifier, [TraceRequest(TEXT)])[0]
    with pytest.raises(ValueError, match="runs through transformers: only a head"):
        head_operands(classifier, trace, "classification")


def test_the_answer_keeps_the_accounts_that_there_are(classifier, look):
    at = look("cls", "Answer")
    strip = drawn(at, "influence")
    assert [row["name"] for row in strip["rows"]] == ["leave one out", "attention"]
    trace = run_batch(classifier, [TraceRequest(TEXT)])[0]
    winner = int(trace.logits.argmax())
    expected = finish(leave_one_out(classifier, TraceRequest(TEXT), Target("classification", winner)))
    assert strip["arrays"]["values"][0] == pytest.approx(expected.values, abs=1e-4)
    assert strip["arrays"]["values"][1] == pytest.approx(trace.attention_probs[-1, :, 0].mean(axis=0), abs=1e-5)
    assert "There are no gradients here. " in said(at)
    assert "runs through transformers" in said(at)


@pytest.mark.parametrize(("page", "view", "reason"), [
    ("cls", "The head", "does not give the operands of its head"),
    ("attention", "Attribution", "gradients are taken only"),
])
def test_what_can_not_be_shown_is_said_in_one_line(look, page, view, reason):
    at = look(page, view)
    assert reason in said(at)
    assert drawn(at, "ready")["text"] == TEXT


@pytest.fixture
def gpt2(family, monkeypatch) -> str:
    """A tiny GPT-2 as a classifier, the model of the pages: no [CLS], it reads the last token."""
    folder = family("GPT-2", "GPT2ForSequenceClassification", pad_token_id=0)
    monkeypatch.setenv("BOTH_WAYS_MODEL", folder)
    return folder


def test_a_classifier_without_cls_has_none_to_follow(gpt2):
    at = visit("cls", view="Layers", text=TEXT)
    assert "puts no [CLS] before its input" in plain_line(at)
    at.button(key="instead").click().run()
    assert is_ready(at)["status"].startswith("twin-bert-sst2 ·")
    at = visit("cls", view="Change a word", text=TEXT, changed="a cat slept")
    is_ready(at)
    assert "Where the change arrives" not in said(at)


def test_a_classifier_without_cls_is_asked_at_its_last_token(gpt2):
    at = visit("attention", view="Attribution", text=TEXT, explain="The class")
    assert "as read at the last token" in said(at)
    strip = drawn(at, "attention_strips")
    probs = run_batch(load_model(gpt2), [TraceRequest(TEXT)])[0].attention_probs
    assert strip["arrays"]["values"][0] == pytest.approx(probs[-1, :, -1].mean(axis=0), abs=1e-5)


@pytest.mark.parametrize(("name", "architecture", "pattern"), [
    ("GPT-2", "GPT2", "A B, and answered from the last token."),
    ("RoBERTa", "Roberta", "<s> A </s> </s> B </s>, and answered from <s>."),
    ("BERT", "Bert", "[CLS] A [SEP] B [SEP], and answered from [CLS].")])
def test_a_pair_is_said_as_this_model_gets_it(family, monkeypatch, name, architecture, pattern):
    changes = {"pad_token_id": 0} if name == "GPT-2" else {}
    monkeypatch.setenv("BOTH_WAYS_MODEL", family(name, f"{architecture}ForSequenceClassification", **changes))
    at = visit("tasks", view="Sentence pairs", text=TEXT, pair="a cat")
    assert f"as one input, {html.escape(pattern)}" in said(at)


def test_a_head_that_reads_the_mean_is_not_said_to_read_cls(family, monkeypatch):
    for pooling, where in (("mean", "the mean of all tokens"), ("cls", "[CLS]")):
        folder = family("ModernBERT", "ModernBertForSequenceClassification", classifier_pooling=pooling)
        monkeypatch.setenv("BOTH_WAYS_MODEL", folder)
        assert f"answered from {where}" in said(visit("tasks", view="Sentence pairs", text=TEXT, pair="a cat"))
        assert ("reads the mean of all tokens" in said(visit("cls", view="Answer", text=TEXT))) == (pooling == "mean")
        words = said(visit("attention", view="Attribution", text=TEXT, explain="The class"))
        assert f"as read at {where}" in words
