"""What whoever runs the explorer sets wrongly is safe, and said."""

from __future__ import annotations

import html

import pytest

from bert_core import hub
from tests.payloads import page, said, visit
from ui import settings, state


@pytest.mark.parametrize(("word", "on"), [
    ("on", True), ("ON", True), ("1", True), ("", True), (None, True),
    ("off", False), ("OFF", False), ("0", False), ("false", False), ("of", False), ("nein", False)])
def test_only_a_word_that_says_on_lets_models_be_fetched(monkeypatch, word, on):
    monkeypatch.delenv("BOTH_WAYS_HUB", raising=False)
    if word is not None:
        monkeypatch.setenv("BOTH_WAYS_HUB", word)
    assert hub.is_on() == on


@pytest.mark.parametrize(("asked", "pause"), [
    ("120ms", "120ms"), ("0ms", "0ms"), ("60000ms", "60000ms"), ("60001ms", "120ms"), ("99999ms", "120ms"),
    ("banana", "120ms"), ("", "120ms")])
def test_a_pause_is_one_that_a_field_takes(monkeypatch, asked, pause):
    monkeypatch.setenv("BOTH_WAYS_PAUSE", asked)
    assert settings.typing_pause() == pause
    at = page("tokens").run()
    assert not at.exception


@pytest.mark.parametrize(("asked", "name"), [("", "twin-bert"), ("twin-gpt", "twin-gpt")])
def test_a_setting_that_is_empty_is_not_set(monkeypatch, asked, name):
    """As compose files pass on what nobody gave."""
    monkeypatch.setenv("BOTH_WAYS_MODEL", asked)
    assert settings.default_model() == name


def test_what_is_misread_is_said(monkeypatch):
    for name in settings._FORMS:
        monkeypatch.delenv(name, raising=False)
    assert settings.misread() == []
    monkeypatch.setenv("BOTH_WAYS_HUB", "False")
    monkeypatch.setenv("BOTH_WAYS_TRAINER_NICE", "19")
    monkeypatch.setenv("BOTH_WAYS_RUN_KEEP", "60")
    assert settings.misread() == []
    monkeypatch.setenv("BOTH_WAYS_HUB", "nein")
    monkeypatch.setenv("BOTH_WAYS_CACHE_MB", "-1")
    hub_line, cache_line = settings.misread()
    assert hub_line.startswith("BOTH_WAYS_HUB is 'nein', which is not allowed, and counts as off")
    assert cache_line.startswith("BOTH_WAYS_CACHE_MB is '-1', which is not allowed, and counts as not set")


def test_an_engine_that_is_none_is_one_line_on_the_page(monkeypatch):
    def wrong():
        raise ValueError("BOTH_WAYS_ENGINE is 'Ray'; choose 'local' or 'ray'")

    monkeypatch.setattr(state, "_engine", wrong)
    assert "choose 'local' or 'ray'" in html.unescape(said(visit("masking")))
