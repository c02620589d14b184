"""The next-sentence lab says how little an answer is worth, from the card's own figure."""

import pytest

from tests.payloads import said, visit
from ui import model_card
from ui.views.cls_nsp import TRUSTED, caution

PAIR = {"text": "The girl opened the old wooden box.", "pair": "Inside she found a letter."}


@pytest.mark.parametrize(("value", "percent"), [(0.5166, "51.7 %"), (0.699, "69.9 %")])
def test_a_poor_figure_is_said_with_its_number(value, percent):
    assert percent in caution({"value": value, "n": 359})
    assert "359 held-out pairs" in caution({"value": value, "n": 359})


@pytest.mark.parametrize("score", [None, {"value": TRUSTED, "n": 359}, {"value": 0.97, "n": 359}])
def test_a_good_figure_or_none_says_nothing(score):
    assert caution(score) == ""


@pytest.mark.parametrize("nsp", ["Your pair", "Ten pairs to predict first"])
@pytest.mark.parametrize("value", [0.52, 0.93])
def test_the_warning_follows_the_card(monkeypatch, nsp, value):
    real = model_card.card("twin-bert")
    scores = [{**score, "value": value, "n": 40} if score["task"] == "nsp" else score for score in real["scores"]]
    monkeypatch.setattr(model_card, "card", lambda name: {**real, "scores": scores})
    at = visit("cls", view="Next sentence", nsp=nsp, model="twin-bert", **PAIR)
    assert said(at).count("of 40 held-out pairs") == (value < TRUSTED)


def test_the_figure_is_that_of_the_shipped_card():
    found = model_card.score("twin-bert", "nsp", "accuracy")
    assert found["n"] > 100
    assert "evaluate --task nsp --model twin-bert" in found["command"]
    assert model_card.score("twin-bert", "nsp", "f1") is None
    assert model_card.score("some/model", "nsp", "accuracy") is None
