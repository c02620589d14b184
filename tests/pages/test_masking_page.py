"""What the Masking page sends to its components, against the engine."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bert_core import TraceRequest, load_engine
from bert_core.measures import surprise
from bert_core.measures.predictions import softmax
from tests.payloads import drawn, is_ready, said, visit
from ui.views import masking

TEXT = "She poured the tea into her cup."


def engine():
    return load_engine("twin-bert")


def test_guesses_are_the_engines_with_the_truth_ranked():
    at = visit("masking", text=TEXT, mask="4", k="5")
    is_ready(at)
    rows = drawn(at, "gaps")["cards"][0]["lists"][0]["rows"]
    trace = engine().run(TraceRequest(TEXT, masked=(4,)))
    p = softmax(trace.mlm_logits[0])
    best = np.argsort(-p)[:5]
    tokenizer = engine().loaded().tokenizer
    assert [row["t"] for row in rows[:5]] == [tokenizer.token_of(i) for i in best]
    assert [row["p"] for row in rows[:5]] == pytest.approx(p[best].tolist(), rel=1e-4)
    truth = next(row for row in rows if row["hit"])
    assert truth["t"] == "tea"
    assert truth["p"] == pytest.approx(p[tokenizer.id_of("tea")], rel=1e-4)
    if "rank" in truth:
        assert truth["rank"] == int((p > p[tokenizer.id_of("tea")]).sum()) + 1


def test_several_gaps_have_a_card_each_and_typed_ones_have_no_truth():
    cards = drawn(visit("masking", text="The [MASK] barked all [MASK].", mask="3"), "gaps")["cards"]
    assert [card["title"] for card in cards] == [
        "Gap 1 at position 2", "Gap 2 at position 3: “barked” is hidden", "Gap 3 at position 5"]


GAPS = "The [MASK] went to the [MASK]. " * 8 + "The dog barked."


@pytest.mark.parametrize(("mask", "titles", "hint"), [
    ({}, ["Gap 12 at position 41"], "12 of 16 gaps have a card: the first of the text."),
    ({"mask": "58"}, ["Gap 11 at position 37", "Gap 12 at position 58: “dog” is hidden"],
     "12 of 17 gaps have a card: what you hid, and the first that were typed."),
])
@pytest.mark.parametrize(("page", "view"), [("masking", "Fill the gap"), ("embeddings", "Switch off and shuffle")])
def test_a_word_that_was_hidden_behind_many_gaps_has_a_card(page, view, mask, titles, hint):
    shown = drawn(visit(page, view=view, text=GAPS, **mask), "gaps")
    assert [card["title"] for card in shown["cards"]][-len(titles):] == titles
    assert (len(shown["cards"]), shown["hint"]) == (12, hint)


@pytest.mark.parametrize(("page", "view"), [
    ("masking", "Fill the gap"), ("masking", "The head"), ("masking", "Layer by layer"), ("masking", "Neurons"),
    ("masking", "Other sentence"), ("masking", "Swap vectors"), ("embeddings", "Switch off and shuffle")])
def test_a_gap_behind_the_cut_is_not_asked_for_again(page, view):
    at = visit(page, view=view, text="The dog went. " * 140 + "It was [MASK].")
    assert drawn(at, "gaps")["hint"] == masking.BEHIND_CUT
    hidden = visit(page, view=view, text="The dog went. " * 140 + "It was [MASK].", mask="2")
    assert drawn(hidden, "gaps")["hint"] == ""


def test_before_and_after_are_two_runs_and_their_difference():
    at = visit("masking", text=TEXT, mask="4", view="Before and after", layer="2")
    maps = drawn(at, "maps")["arrays"]
    before, after = (engine().run(TraceRequest(TEXT, masked=masked)) for masked in ((), (4,)))
    np.testing.assert_allclose(maps["first"], before.attention_probs[1].mean(0), atol=1e-6)
    np.testing.assert_allclose(maps["second"], after.attention_probs[1].mean(0), atol=1e-6)
    np.testing.assert_allclose(maps["change"], maps["second"] - maps["first"], atol=1e-6)
    pairs = drawn(at, "pairs")
    assert pairs["tokens"][3] == "tea"
    assert pairs["first"][3] > pairs["second"][3]


def test_two_sentences_cover_the_whole_vocabulary():
    at = visit("masking", text="The [MASK] barked.", other="The [MASK] sang.", view="Other sentence")
    is_ready(at)
    sent = drawn(at, "vocabulary")
    size = engine().loaded().config.vocab_size
    assert len(sent["tokens"]) + int(sent["arrays"]["counts"].sum()) == size
    trace = engine().run(TraceRequest("The [MASK] barked."))
    index = engine().loaded().tokenizer.id_of("dog")
    assert 10 ** sent["arrays"]["first"][sent["tokens"].index("dog")] == pytest.approx(
        softmax(trace.mlm_logits[0])[index], rel=1e-4)


def test_the_other_sentence_without_a_gap_is_said():
    at = visit("masking", other="no gap here", view="Other sentence")
    is_ready(at)
    assert "has no [MASK]" in said(at)


def test_the_rule_shows_a_seeded_draw_with_loss_on_the_chosen_only():
    sent = drawn(visit("masking", text=TEXT, view="80/10/10", seed="5", rate="40", draws="50"), "corruption")
    chosen = [token for token in sent["tokens"] if token["outcome"] != "untouched"]
    assert chosen
    assert all(token["loss"] > 0 for token in chosen)
    assert all(token["loss"] is None and token["seen"] == token["was"]
               for token in sent["tokens"] if token["outcome"] == "untouched")
    assert all(token["seen"] == "[MASK]" for token in chosen if token["outcome"] == "masked")
    assert sent["over"].startswith("50 draws over ")
    again = drawn(visit("masking", text=TEXT, view="80/10/10", seed="5", rate="40", draws="50"), "corruption")
    assert again["tokens"] == sent["tokens"]


def test_pseudo_perplexity_masks_one_piece_at_a_time():
    at = visit("masking", text="The dog barked.", view="Pseudo-perplexity")
    is_ready(at)
    shown = drawn(at, "chips")["chips"]
    encoding = engine().loaded().tokenizer.encode("The dog barked.")
    for place in encoding.content:
        trace = engine().run(TraceRequest("The dog barked.", masked=(place,)))
        expected = softmax(trace.mlm_logits[0])[encoding.input_ids[place]]
        assert shown[place]["v"] == pytest.approx(expected, abs=1e-4)
    assert "v" not in shown[0]


def test_pseudo_perplexity_of_a_long_text_says_what_it_covers(monkeypatch):
    monkeypatch.setattr(surprise, "MAX_WORK", 5 * 10**9)
    at = visit("masking", text="dog " * 30, view="Pseudo-perplexity")
    is_ready(at)
    assert re.search(r"over the first \d+ of 30 pieces; .* Each piece needs a run over the whole text", said(at))


@pytest.mark.parametrize("view", masking.VIEWS)
@pytest.mark.parametrize("text", ["", "[MASK]", "a"])
def test_the_shortest_texts_have_their_answer(view, text):
    is_ready(visit("masking", text=text, view=view, mask="1"))


@given(text=st.text(max_size=80), view=st.sampled_from(masking.VIEWS), mask=st.text(max_size=6))
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_anything_in_the_address_gets_an_answer(text, view, mask):
    is_ready(visit("masking", text=text, view=view, mask=mask))


def test_where_no_gap_is_open_there_are_sentences_to_try():
    at = visit("masking", text="")
    tries = [button for button in at.button if button.key.startswith("try_masking")]
    assert len(tries) == 3
    tries[0].click().run()
    assert at.text_input(key="text").value == tries[0].label
    assert drawn(at, "gaps")["cards"]
    assert not [button for button in at.button if button.key.startswith("try_masking")]


def test_how_many_guesses_is_asked_only_where_there_is_a_gap_and_remembered_meanwhile():
    at = visit("masking", text="Paris is [MASK].", k="9")
    assert [slider.label for slider in at.slider] == ["Guesses"]
    at.text_input(key="text").set_value("Paris is big.").run()
    assert [slider.label for slider in at.slider] == []
    at.text_input(key="text").set_value("Rome is [MASK].").run()
    assert at.slider(key="k").value == 9


def test_a_link_with_the_former_name_of_a_view_opens_it():
    at = visit("masking", other="The [MASK] sang.", view="Two sentences")
    assert at.session_state["view"] == "Other sentence"
    assert is_ready(at)["lines"] == []
    assert drawn(at, "vocabulary")
