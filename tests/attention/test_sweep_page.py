"""The act view's switch “Which head matters?”: what it runs, says and does not offer."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bert_core.measures import head_effects
from bert_core.trace import TraceRequest
from tests.payloads import drawn, is_ready, said, visit
from ui import state
from ui.views import attention_act

TEXT = "The old dog saw the [MASK]."


def act(**parameters):
    at = visit("attention", view="Act", sweep="true", **parameters)
    is_ready(at)
    return at


def test_it_is_off_at_first():
    at = visit("attention", view="Act", text=TEXT)
    assert [toggle.label for toggle in at.toggle if toggle.key == "sweep"] == ["Which head matters?"]
    with pytest.raises(AssertionError, match="no component head_effects"):
        drawn(at, "head_effects")


def test_a_cell_is_what_the_answers_say_once_that_head_alone_is_off():
    shown = drawn(act(text=TEXT), "head_effects")
    effects = shown["arrays"]["divergence"]
    assert effects.shape == (6, 12)
    layer, head = np.unravel_index(int(effects.argmax()), effects.shape)
    at = act(text=TEXT, off=f"{layer + 1}-{head + 1}")
    block = drawn(at, "effect")["blocks"][0]
    assert shown["title"] == block["title"]
    assert effects[layer, head] == pytest.approx(block["divergence"], rel=1e-3)
    assert shown["answer"] == block["names"][0]
    assert shown["before"] == pytest.approx(block["before"][0], rel=1e-4)
    assert shown["arrays"]["after"][layer, head] == pytest.approx(block["after"][0], rel=1e-3)
    assert f"Without head {head + 1} of layer {layer + 1} the answer moves most: " in said(at)
    now = drawn(at, "head_effects")
    assert now["off"] == [layer * 12 + head]
    assert np.array_equal(now["arrays"]["divergence"], effects)  # from the whole model, whatever is off


def test_a_hidden_word_is_the_gap_that_is_asked():
    shown = drawn(act(text="The dog chased the cat."), "head_effects")
    assert shown["title"] == "The gap at position 2: “dog” is hidden"
    trace, = state.traces([TraceRequest("The dog chased the cat.", model="twin-bert", masked=(2,))])
    probabilities = np.exp(trace.mlm_logits[0].astype(float) - trace.mlm_logits[0].max())
    assert shown["before"] == pytest.approx((probabilities / probabilities.sum()).max(), rel=1e-4)


def test_several_heads_are_told_beside_the_sum_of_theirs_alone_where_nothing_else_is_changed():
    at = act(text=TEXT, off="5-8,6-11")
    block, shown = drawn(at, "effect")["blocks"][0], drawn(at, "head_effects")["arrays"]["divergence"]
    told = re.search(r"The 2 heads that are off move the answer by ([\d.]+) nats together; "
                     r"what each does alone adds up to ([\d.]+)\.", said(at))
    assert float(told[1]) == pytest.approx(block["divergence"], abs=0.006)
    assert float(told[2]) == pytest.approx(shown[4, 7] + shown[5, 10], abs=0.006)
    assert "heads that are off move" not in said(act(text=TEXT, off="5-8,6-11", window="5"))
    assert "heads that are off move" not in said(act(text=TEXT, off="5-8"))


@pytest.mark.parametrize(("model", "title"), [("twin-gpt", "Next after “.”"), ("twin-bert-sst2", "Class")])
def test_a_model_without_a_gap_is_asked_for_its_first_answer(monkeypatch, model, title):
    monkeypatch.setenv("BOTH_WAYS_MODEL", model)
    at = act(text="The dog barked.", off="6-3")
    shown, block = drawn(at, "head_effects"), drawn(at, "effect")["blocks"][0]
    assert shown["title"] == block["title"] == title
    assert shown["arrays"]["divergence"][5, 2] == pytest.approx(block["divergence"], rel=1e-2, abs=1e-6)


def test_a_text_without_words_asks_the_classifier():
    shown = drawn(act(text="\u200b"), "head_effects")
    assert shown["title"] == "Sentiment by twin-bert-sst2"
    assert shown["answer"] in ("negative", "positive")


def test_what_takes_too_long_is_not_begun(monkeypatch):
    monkeypatch.setattr(head_effects, "LARGEST", 2e9 * 72)  # a sixth of the sentence at most
    at = act(text="The old dog saw the [MASK]. " * 20)
    most = head_effects.longest(state.loaded("twin-bert").config)
    assert (f"once without each of its 72 heads. With twin-bert that is quick up to {most} tokens, "
            "and this input has 142") in said(at)
    with pytest.raises(AssertionError, match="no component head_effects"):
        drawn(at, "head_effects")


def test_a_model_whose_heads_cannot_be_switched_off_has_no_switch(monkeypatch, family):
    monkeypatch.setenv("BOTH_WAYS_MODEL", family("GPT-2"))
    assert not [toggle for toggle in act(text="the dog barked").toggle if toggle.key == "sweep"]


def test_a_click_names_the_heads_that_are_off(monkeypatch):
    written: dict[str, str | None] = {}
    monkeypatch.setattr(state, "set_param", written.__setitem__)
    attention_act._receive_heads({"heads": [25, 0]}, 6, 12)
    assert written == {"off": "1-1,3-2"}
    attention_act._receive_heads({"heads": []}, 6, 12)
    assert written == {"off": None}
