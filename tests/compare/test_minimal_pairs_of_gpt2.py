"""A causal model without a start token judges minimal pairs: its first piece is given, the rest is scored."""

from __future__ import annotations

import pytest

from bert_core import tasks
from bert_core.measures import compare_pairs
from bert_core.measures.compare_pairs import Pair

GOOD, BAD = "the dog barked", "the dog garden"


def test_its_log_likelihood_is_that_of_the_pieces_after_the_first(engine, family):
    model = family("GPT-2")
    found = compare_pairs.log_likelihoods(engine, model, [GOOD, BAD])
    assert found == pytest.approx([tasks.score(engine, text, model=model).log_likelihood for text in (GOOD, BAD)])


def test_of_a_pair_and_its_reverse_it_judges_one_right(engine, family):
    pairs = [Pair("x", GOOD, BAD), Pair("x", BAD, GOOD)]
    (_, verdicts), = compare_pairs.judge(engine, {"gpt2": [family("GPT-2")]}, pairs)
    assert sorted(verdicts["gpt2"]) == [False, True]
