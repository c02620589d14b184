"""A term of the glossary tells its meaning above all else, in sight, until Escape."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.waiting import holds

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

#: Whether a meaning is what one sees along its middle line.
ON_TOP = """tip => {
  const { x, y, width, height } = tip.getBoundingClientRect();
  return [0.02, 0.5, 0.98].every((part) => tip.contains(document.elementFromPoint(x + width / 2, y + part * height)));
}"""


def with_meaning(page: Page, within: str) -> tuple[Locator, Locator]:
    """The first term within a part of the page, and its meaning."""
    term = page.locator(f"{within} .bw-term").first
    return term, term.locator(".bw-tip")


@pytest.mark.parametrize(("name", "query", "within"), [
    ("masking", {}, ".bw-lead"), ("family", {"view": "Wrong claims"}, ".bw-evidence:has(.bw-term)"),
])
def test_a_meaning_lies_above_what_comes_after_it(visitor, name, query, within):
    page = visitor.open(name, **query)
    term, tip = with_meaning(page, within)
    term.scroll_into_view_if_needed()
    term.hover()
    expect(tip).to_be_visible()
    holds(page, lambda: tip.evaluate(ON_TOP))


def test_escape_takes_a_meaning_away_until_one_comes_again(visitor):
    page = visitor.open("masking")
    term, tip = with_meaning(page, ".bw-lead")
    term.hover()
    expect(tip).to_be_visible()
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    page.mouse.move(900, 700)
    term.hover()
    expect(tip).to_be_visible()
    page.mouse.move(900, 700)
    term.focus()
    expect(tip).to_be_visible()
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    term.evaluate("one => one.blur()")
    term.focus()
    expect(tip).to_be_visible()


def test_a_presenters_escape_takes_a_meaning_away_before_it_leaves(new_visitor):
    visitor = new_visitor(height=1100)  # a lower screen leaves the lead out
    page = visitor.open("masking", present=1)
    term, tip = with_meaning(page, ".bw-lead")
    term.focus()
    expect(tip).to_be_visible()
    run = visitor.run_number()
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    page.wait_for_timeout(1000)
    assert visitor.run_number() == run
    expect(page.locator(".bw-presenter")).to_contain_text("Esc")
    page.keyboard.press("Escape")
    visitor.after(run)
    expect(page.locator(".bw-presenter")).to_have_count(0)


def test_what_has_the_focus_and_its_meaning_stand_above_the_status_bar(new_visitor):
    page = new_visitor(width=1280, height=720).open("cls", view="Layers")
    top = page.locator(".bw-status").bounding_box()["y"]
    term, tip = with_meaning(page, ".bw-below")
    term.evaluate("""(one, top) => {
      document.querySelector("[data-testid=stMain]").scrollTop += one.getBoundingClientRect().top - top;
      one.focus();
    }""", top + 5)
    holds(page, lambda: bottom(term) <= top)
    expect(tip).to_be_visible()
    holds(page, lambda: bottom(tip) <= top)


def bottom(one: Locator) -> float:
    box = one.bounding_box()
    return box["y"] + box["height"]
