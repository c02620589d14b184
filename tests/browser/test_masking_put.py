"""A guess that is clicked stands in its gap, and Back takes it out again."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]


def test_a_click_puts_a_guess_in_and_the_other_gap_is_guessed_anew(visitor):
    text = "The [MASK] sat on the [MASK] and drank its milk."
    page = visitor.open("masking", text=text)
    cards = page.locator(".bw-card")
    expect(cards).to_have_count(2)
    first, before = cards.first.locator("button.bw-piece").first, cards.nth(1).locator(".bw-guesses").inner_text()
    word = first.inner_text()
    run = visitor.run_number()
    first.focus()
    page.keyboard.press("Enter")
    visitor.after(run)
    filled = text.replace("[MASK]", word, 1)
    visitor.in_sentence(filled)
    expect(cards).to_have_count(1)
    assert cards.first.locator(".bw-guesses").inner_text() != before
    run = visitor.run_number()
    cards.first.locator("button.bw-piece").nth(1).click()
    visitor.after(run)
    expect(cards).to_have_count(0)
    page.go_back()
    visitor.in_sentence(filled)
    page.go_back()
    visitor.in_sentence(text)
    expect(cards).to_have_count(2)
    visitor.no_traceback()
