"""How far accounts agree: Spearman's rho with ties, and nothing where it has no sense."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.stats import spearmanr

from bert_core.measures import target
from bert_core.measures.attribution import finish, leave_one_out, rank_agreement
from bert_core.measures.target import Target, read_target
from bert_core.trace import TraceRequest, run_batch
from tests.payloads import drawn, visit

MASK = 6  # [CLS] the dog barked ##s all [MASK] . [SEP]


def test_agreement_is_spearmans_with_ties():
    tied, rising = np.array([1.0, 0.0, 0.0]), np.array([3.0, 1.0, 2.0])
    rng = np.random.default_rng(4)
    ours = rank_agreement([tied, rising])
    assert ours[0][1] == ours[1][0] == pytest.approx(spearmanr(tied, rising).statistic)
    many = rng.integers(0, 4, size=(3, 40)).astype(float)
    np.testing.assert_allclose(np.array(rank_agreement(many)), spearmanr(many, axis=1).statistic)


def test_an_account_that_says_nothing_agrees_with_none():
    assert rank_agreement([np.ones(3), np.array([3.0, 1.0, 2.0])]) == [[None, None], [None, 1.0]]


def test_the_page_can_show_an_account_that_says_nothing(monkeypatch):
    from ui.views import attention_attribution as view

    monkeypatch.setattr(view, "rollout", lambda probs: np.full(probs.shape[:1] + probs.shape[2:], 0.25))
    agreement = drawn(visit("attention", view="Attribution", text="We [MASK] home."), "attention_strips")["agreement"]
    assert agreement[1] == [None] * len(agreement)
    assert agreement[0][0] == pytest.approx(1.0)


def test_only_the_position_that_is_read_goes_through_the_vocabulary(small, pair_request, monkeypatch):
    rows = []

    def counted(loaded, requests):
        traces = run_batch(loaded, requests)
        rows.extend(len(trace.mlm_logits) for trace in traces)
        return traces

    monkeypatch.setattr(target, "run_batch", counted)
    finish(leave_one_out(small, pair_request, Target("mlm", 11, MASK)))
    assert rows
    assert max(rows) == 2  # what is read, and what is left out


@pytest.mark.parametrize("request_", [TraceRequest("the dog barked"), TraceRequest("the [MASK] barked"),
                                      TraceRequest("the dog barked", masked=(1,)),
                                      TraceRequest("the dog barked", replaced=((2, 4),))])
def test_a_position_is_read_whether_it_is_masked_or_not(small, request_):
    for position in range(5):
        whole = run_batch(small, [TraceRequest(**{**vars(request_), "all_logits": True})])[0]
        assert read_target(small, request_, Target("mlm", 11, position)) == pytest.approx(
            whole.mlm_logits[position, 11], abs=1e-12)
    found = finish(leave_one_out(small, request_, Target("mlm", 11, 2)))
    assert len(found.values) == 5


@pytest.mark.parametrize(("text", "note"), [
    ("Rain", "on the way from all-[MASK]: nothing changes"),
    ("We [MASK] home.", r"on the way from all-\[MASK\]: adds up to [+-][\d.]+, off by (<0.1|[\d.]+) %"),
])
def test_a_path_says_what_it_adds_up_to_or_that_there_is_nothing(text, note):
    methods = drawn(visit("attention", view="Attribution", text=text), "attention_strips")["methods"]
    (said,) = (method["note"] for method in methods if method["key"] == "path")
    assert said == note or re.fullmatch(note, said)


def test_the_page_ranks_by_size_as_attention_has_no_sign():
    strips = drawn(visit("attention", view="Attribution", explain="The sentiment",
                         text="It starts slowly, but the ending is wonderful."), "attention_strips")
    rows = zip(strips["methods"], strips["arrays"]["values"], strict=True)
    values = {method["key"]: row[1:-1] for method, row in rows}
    keys = list(values)
    path, attention = keys.index("path"), keys.index("attention")
    assert (values["path"] < 0).any()
    assert strips["agreement"][path][attention] == pytest.approx(
        spearmanr(np.abs(values["path"]), values["attention"]).statistic)


@pytest.mark.parametrize(("model", "last"), [("twin-gpt", 5), ("twin-rtl", 1)])
def test_the_token_that_is_read_last_is_not_called_worthless(model, last):
    strips = drawn(visit("attention", view="Attribution", model=model, text="The cat sat on the"), "attention_strips")
    row = [method["key"] for method in strips["methods"]].index("left_out")
    values = strips["arrays"]["values"][row]
    assert np.flatnonzero(np.isnan(values)).tolist() == [last]
    assert "can't be" in strips["methods"][row]["note"]
