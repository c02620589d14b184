"""The fast mode: only where it is offered, said on screen, and nowhere that numbers are checked."""

from __future__ import annotations

import pytest

from bert_core.measures.arithmetic import Arithmetic
from tests.payloads import drawn, is_ready, visit
from ui import arithmetic, settings, state

TEXT = "The [MASK] barked at the cat all night."
FOUND = Arithmetic(time=0.6, hidden=0.058, hidden_size=9.9, attention=0.023, probability=0.0041)


@pytest.fixture
def offered(monkeypatch):
    monkeypatch.setenv("BOTH_WAYS_FAST", "on")


def captions(at) -> str:
    return " ".join(caption.value for caption in at.sidebar.caption)


def test_the_fast_mode_makes_the_picture_and_says_so(offered):
    exact, fast = visit("masking", text=TEXT), visit("masking", text=TEXT, fast="true")
    assert "float32" in is_ready(exact)["status"]
    assert "bfloat16, the fast mode" in is_ready(fast)["status"]
    assert "exact" in captions(fast)
    assert not captions(exact)
    assert drawn(exact, "gaps")["cards"] != drawn(fast, "gaps")["cards"]


@pytest.mark.parametrize(("page", "view", "place"), [
    ("attention", "All heads", "bfloat16"), ("attention", "Step by step", "float32"),
    ("compare", "Side by side", "bfloat16"), ("compare", "Surprise", "float32"),
    ("masking", "Pseudo-perplexity", "float32")])
def test_views_that_check_numbers_stay_exact(offered, page, view, place):
    at = visit(page, text=TEXT, fast="true", **({"view": view} if view else {}))
    assert place in is_ready(at)["status"]
    assert ("stays exact" in captions(at)) == (place == "float32")


def test_two_sentences_are_read_by_the_same_arithmetic(offered):
    """One in float32 against one in bfloat16 would differ where the sentences don't."""
    at = visit("masking", text=TEXT, other=TEXT, view="Other sentence", fast="true")
    assert "bfloat16" in is_ready(at)["status"]
    shown = drawn(at, "vocabulary")
    assert (shown["up"], shown["down"]) == ([], [])


def test_a_page_without_a_fast_view_has_no_switch_and_the_choice_outlives_it(offered):
    at = visit("masking", text=TEXT, fast="true")
    at.switch_page("pages/tokens.py").run()
    assert "float32" in is_ready(at)["status"]
    assert not [toggle for toggle in at.sidebar.toggle if toggle.label == arithmetic.LABEL]
    at.switch_page("pages/masking.py").run()
    assert "bfloat16" in is_ready(at)["status"]


def test_where_it_is_not_offered_there_is_no_switch_and_a_link_changes_nothing(monkeypatch):
    monkeypatch.setenv("BOTH_WAYS_FAST", "off")
    at = visit("masking", text=TEXT, fast="true")
    assert "float32" in is_ready(at)["status"]
    assert not [toggle for toggle in at.sidebar.toggle if toggle.label == arithmetic.LABEL]


@pytest.mark.parametrize("has", [True, False])
def test_it_is_offered_where_the_hardware_has_it(monkeypatch, has):
    monkeypatch.delenv("BOTH_WAYS_FAST", raising=False)
    monkeypatch.setattr(settings, "has_bf16", lambda _device: has)
    settings._hardware_has_bf16.cache_clear()
    try:
        assert settings.fast_is_offered() is has
    finally:
        settings._hardware_has_bf16.cache_clear()


@pytest.mark.parametrize("page", state.FAST_PAGES)
def test_the_exact_views_are_views_of_their_page_and_not_its_first(page):
    first, *others = visit(page, text=TEXT).segmented_control(key="view").options
    assert first not in state.FAST_PAGES[page]
    assert set(state.FAST_PAGES[page]) <= set(others)


def test_a_model_that_runs_through_transformers_stays_exact(offered, monkeypatch):
    monkeypatch.setattr(state, "takes_fast", lambda _model: False)
    at = visit("masking", text=TEXT, fast="true")
    assert "float32" in is_ready(at)["status"]
    assert "runs through transformers and stays exact" in captions(at)


def test_the_words_are_the_measured_ones():
    said = arithmetic.line(FOUND)
    assert said.startswith("Takes 0.6 of the exact time, measured on 3 sentences.")
    assert "probability by 0.41 points, an attention by 2.3 points of 100, a hidden state by 0.058" in said
    slower = arithmetic.line(FOUND._replace(time=1.3, probability=None))
    assert slower.startswith("Saves no time on this computer: 1.3 times the exact one")
    assert "probability" not in slower
