"""What is said of a model: its tasks, its size, and a reason for each array that it lacks."""

from __future__ import annotations

import pytest

from bert_core.config import BertConfig
from bert_core.loading.describe import count_parameters, describe, gaps, head_gaps

GIVEN = {"mlm": {"mlm_positions", "mlm_logits"}, "lm": {"lm_logits"}, "nsp": {"nsp_logits"},
         "classification": {"logits"}, "token_classification": {"logits"},
         "question_answering": {"start_logits", "end_logits"}}
ARRAYS = set().union(*GIVEN.values())


@pytest.mark.parametrize(("heads", "tasks"), [
    ({"mlm"}, ("fill-mask",)), ({"lm"}, ("next",)), ({"nsp"}, ("nsp",)), ({"classification"}, ("classify",)),
    ({"token_classification"}, ("ner",)), ({"question_answering"}, ("answer",)), ({"pooler"}, ()),
    ({"pooler", "nsp", "mlm"}, ("fill-mask", "nsp")),
])
def test_tasks_are_the_commands_that_the_heads_serve(heads, tasks):
    assert describe("some", BertConfig(), frozenset(heads), 7, False).tasks == tasks


def test_the_architecture_is_the_first_that_is_declared_or_the_family():
    declared = BertConfig(architectures=("BertForMaskedLM", "BertModel"))
    assert describe("some", declared, frozenset(), 7, True).architecture == "BertForMaskedLM"
    assert describe("some", BertConfig(model_type="electra"), frozenset(), 7, True).architecture == "electra"


def test_parameters_are_the_numbers_in_all_tensors():
    assert count_parameters({"table": (3, 5), "bias": (7,), "scale": ()}) == 3 * 5 + 7 + 1


@pytest.mark.parametrize("head", GIVEN)
def test_an_array_is_there_where_its_head_is_and_has_a_reason_elsewhere(head):
    found = head_gaps(BertConfig(), frozenset({head}))
    assert found.keys() == ARRAYS - GIVEN[head]
    assert all(found.values())


@pytest.mark.parametrize(("changes", "part", "reason"), [
    ({}, "mlm_logits", "no masked-LM head was saved"),
    ({"is_decoder": True}, "mlm_positions", "it is causal: it predicts the next token"),
    ({}, "lm_logits", "it reads both ways: it can't predict a next token"),
    ({"is_decoder": True}, "lm_logits", "no next-token head was saved"),
    ({}, "nsp_logits", "no next-sentence head was saved"),
    ({"model_type": "roberta"}, "nsp_logits", "RoBERTa was trained without next-sentence prediction"),
    ({"model_type": "camembert"}, "nsp_logits", "CamemBERT was trained without next-sentence prediction"),
    ({"model_type": "xlm-roberta"}, "nsp_logits", "XLM-RoBERTa was trained without next-sentence prediction"),
    ({"model_type": "distilbert"}, "nsp_logits", "DistilBERT was distilled without next-sentence prediction"),
    ({"model_type": "albert"}, "nsp_logits",
     "ALBERT was trained on the order of two sentences instead of next-sentence prediction"),
    ({"model_type": "electra"}, "nsp_logits",
     "ELECTRA was trained to spot replaced words, without next-sentence prediction"),
    ({}, "logits", "no classification head was saved"), ({}, "end_logits", "no question-answering head was saved"),
])
def test_the_reason_is_the_models_own(changes, part, reason):
    assert head_gaps(BertConfig(**changes), frozenset())[part] == reason


@pytest.mark.parametrize(("family", "heads", "pooled", "segments"), [
    ("bert", {"pooler"}, None, None), ("bert", set(), "no pooler was saved", None),
    ("roberta", set(), "no pooler was saved", None), ("electra", set(), "electra has no pooler", None),
    ("distilbert", set(), "distilbert has no pooler", "distilbert has no segment embeddings"),
])
def test_a_pooler_that_was_not_saved_is_told_from_none_at_all(family, heads, pooled, segments):
    found = gaps(BertConfig(model_type=family), frozenset(heads))
    assert (found.get("pooled_output"), found.get("segment_embeddings")) == (pooled, segments)
    assert found.keys() >= ARRAYS
