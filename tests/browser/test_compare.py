"""One way, both ways, in a real browser: three predictions of one place, and a link that restores them."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from bert_core import load_engine
from bert_core.measures import compare
from bert_core.measures.compare import Readers
from tests.browser.waiting import becomes

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

TEXT = "A cat slept in the garden."


def told(page: Page) -> dict[str, float]:
    """Reader -> the probability of the true word that its card shows."""
    cards = page.locator(".cmp-card")
    return {cards.nth(n).get_attribute("data-reader"): float(cards.nth(n).locator(".cmp-p").get_attribute("data-p"))
            for n in range(cards.count())}


def test_type_choose_read_and_restore(visitor, new_visitor):
    page = visitor.open("compare")
    visitor.type(TEXT)
    run = visitor.run_number()
    page.get_by_role("listbox", name="Choose the word to hide").get_by_role("option", name="slept").click()
    visitor.after(run)
    expect(page.locator(".cmp-card")).to_have_count(3)
    expect(page.locator(".cmp-of").first).to_contain_text("“slept”")
    expect(page.get_by_text("Not a GPT: the BERT beside it")).to_be_visible()
    expect(page.locator(".cmp-guess")).to_have_count(18)
    engine = load_engine()
    question = compare.question_at(engine.loaded().tokenizer.encode(TEXT), 3)
    readings, _ = compare.read(engine, question, Readers("twin-bert", "twin-gpt"), ("both", "left", "hidden"))
    expected = {reader: pytest.approx(reading.probability, rel=1e-3) for reader, reading in readings.items()}
    becomes(page, lambda: told(page), expected)
    visitor.no_traceback()

    other = new_visitor(width=390, height=844, scheme="dark")
    other.page.goto(page.url)
    other.wait_ready(TEXT)
    expect(other.page.locator(".cmp-card")).to_have_count(3)
    becomes(other.page, lambda: told(other.page), expected)
    other.fits()


def test_a_click_on_a_head_opens_it_in_every_map(visitor):
    page = visitor.open("compare", text=TEXT, at=2, view="Masks and heads", layer=1, head=1)
    panels = page.locator(".cmp-panel")
    expect(panels.first).to_contain_text("layer 1, head 1")
    run = visitor.run_number()
    page.locator(".cmp-heads").first.press("ArrowRight")
    visitor.after(run)
    expect(panels.first).to_contain_text("layer 1, head 2")
    page.locator(".bw-numbers summary").first.click()
    table = page.locator(".bw-numbers table").first
    expect(table).to_contain_text("not allowed")
    visitor.no_traceback()


def test_a_long_input_is_drawn_in_part_and_counted_whole(visitor):
    page = visitor.open("compare", text="dog " * 60, at=30, view="Masks and heads", show="mask")
    panels = page.locator(".cmp-panel")
    expect(panels.first).to_contain_text("34 of 62 tokens are drawn")
    expect(panels.first.locator(".cmp-said")).to_have_text("“[MASK]” (30) may see 62 of 62 tokens.")
    expect(panels.nth(1).locator(".cmp-said")).to_have_text("“dog” (29) may see 30 of 62 tokens.")
    panels.first.locator(".cmp-map").press("ArrowDown")
    expect(panels.nth(1).locator(".cmp-said")).to_have_text("“dog” (31) may see 32 of 62 tokens.")
    visitor.no_traceback()


def test_predict_then_reveal(visitor):
    page = visitor.open("compare", text=TEXT, at=2, view="Reveal")
    expect(page.locator(".js-plotly-plot")).to_have_count(0)
    expect(page.get_by_role("button", name="Reveal", exact=True).last).to_be_disabled()
    run = visitor.run_number()
    page.get_by_role("button", name="the right", exact=True).or_(
        page.get_by_role("radio", name="the right", exact=True)).first.click()
    visitor.after(run)
    run = visitor.run_number()
    page.get_by_role("button", name="Reveal", exact=True).last.click()
    visitor.after(run)
    expect(page.get_by_text("The numbers say")).to_be_visible()
    expect(page.locator(".js-plotly-plot").first).to_be_visible()
    visitor.in_address("shown=")
    visitor.no_traceback()
