"""The Family page: counts that add up, cost measured here, several models, all in the address."""

from __future__ import annotations

import threading

import pytest
from playwright.sync_api import expect

from tests.payloads import said, table_rows
from tests.payloads import visit as run_page
from ui.views import family_cost

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]


def test_counts_follow_the_sizes_one_types(visitor):
    page = visitor.open("family")
    expect(page.locator(".bw-figure-number")).to_contain_text("109,482,240")
    page.get_by_role("radio", name="large", exact=True).click()
    page.get_by_text("335,141,888").first.wait_for()
    visitor.open("family", size="my own", layers=2, hidden=128, heads=2)
    page.get_by_text("4,385,920").first.wait_for()
    visitor.open("family", size="my own", hidden=784, heads=12)
    page.get_by_text("is not a multiple").wait_for()
    visitor.no_traceback()


def test_claims_and_tables_carry_their_sources(new_visitor):
    phone = new_visitor(width=390, scheme="dark")
    page = phone.open("family", view="Wrong claims", text="the dog slept")
    expect(page.locator(".bw-claim")).to_have_count(12)
    expect(page.locator("body")).to_contain_text("correlation with the sinusoids")
    page = phone.open("family", view="Paper tables")
    expect(page.get_by_test_id("stMainBlockContainer")).to_contain_text("arXiv 1810.04805")
    page = phone.open("family", view="Relatives")
    page.get_by_text("arXiv 2006.03654").wait_for()
    phone.fits()


def test_one_sentence_through_two_models(visitor):
    page = visitor.open("family", view="Side by side", text="Paris is the [MASK] of France.")
    page.get_by_role("heading", name="twin-bert", exact=True).wait_for()
    page.get_by_role("heading", name="twin-gpt", exact=True).wait_for()
    page.get_by_text("In the gap at position 4").wait_for()
    page.get_by_text("Next after the sentence").wait_for()
    visitor.no_traceback()


def test_cost_is_measured_when_asked(monkeypatch):
    """The page without a browser, and at few lengths; with all that a visitor gets below."""
    monkeypatch.setattr(family_cost, "LENGTHS", (8, 16, 32))
    monkeypatch.setattr(family_cost, "BATCHES", (1, 2))
    nothing = family_cost._Kept({}, threading.Lock())
    monkeypatch.setattr(family_cost, "_kept", lambda: nothing)
    at = run_page("family", view="Cost", cost="time, measured here")
    assert "b n² overtakes a n at" not in said(at)
    next(one for one in at.button if one.label == "Measure now").click().run()
    assert "b n² overtakes a n at" in said(at)
    assert [row[0] for row in table_rows(at, "Time against length")] == ["8", "16", "32"]
    assert [one.label for one in at.button if one.label == "Measure now"] == []


@pytest.mark.full  # twelve seconds of all that the machine can do
def test_cost_is_measured_when_asked_in_the_browser(visitor):
    page = visitor.open("family", view="Cost", cost="time, measured here")
    page.get_by_role("button", name="Measure now").click()
    page.get_by_text("b n² overtakes a n at").wait_for()
