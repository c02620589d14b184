"""What a component leaves behind when it runs again: no listener, no surplus picture, no table of another row."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.waiting import becomes, holds

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]


def cells(page: Page, column: int) -> list[str]:
    """One column of the open table."""
    return page.locator(f".bw-numbers table tbody tr > :nth-child({column})").all_inner_texts()


def test_after_escape_page_down_turns_no_page_and_nothing_is_fixed_again(visitor):
    page = visitor.open("masking", present=1, hide="reading", fix=1, text="the dog [MASK]")
    run = visitor.run_number()
    page.keyboard.press("Escape")
    visitor.after(run)
    expect(page.get_by_test_id("stSidebar")).to_be_visible()
    run = visitor.run_number()
    page.keyboard.press("PageDown")
    page.wait_for_timeout(1500)
    assert visitor.run_number() == run
    assert "/masking" in page.url
    expect(page.locator("[data-testid=stButtonGroup][inert]")).not_to_have_count(0)


def test_after_presenter_mode_new_elements_are_in_use(visitor):
    page = visitor.open("class", view="Present", present=1, fix=1)
    run = visitor.run_number()
    page.keyboard.press("Escape")  # the component runs again
    visitor.after(run)
    expect(page.locator("[data-testid=stMain] [inert]")).not_to_have_count(0)
    run = visitor.run_number()
    page.get_by_role("button", name="Leave presenter mode").click()
    visitor.after(run)
    page.evaluate("document.body.append(document.createElement('i'))")  # what an observer left behind would answer
    page.wait_for_timeout(300)
    expect(page.locator("[data-fixed], [data-testid=stMain] [inert]")).to_have_count(0)


def test_step_one_has_three_strips_after_a_start_at_step_six(visitor):
    page = visitor.open("attention", view="Step by step", step=6, text="The dog slept.")
    strips, norms = page.locator(".steps-strip"), page.locator(".steps-norms")
    expect(strips).to_have_count(5)
    expect(norms).to_be_visible()
    page.get_by_role("button", name="1 q · k").click()
    expect(strips).to_have_count(3)
    expect(norms).to_be_hidden()
    page.get_by_role("button", name="6 project").click()
    expect(strips).to_have_count(5)
    assert page.locator(".steps-operands > :last-child").get_attribute("class") == "steps-norms"


def test_an_open_table_holds_the_row_that_is_framed(visitor):
    page = visitor.open("compare", view="Masks and heads", text="The dog barked all night.", at=2)
    page.locator(".bw-numbers summary").click()
    expect(page.locator(".bw-numbers table")).to_be_visible()
    before = cells(page, 2)
    page.locator(".cmp-map").first.press("ArrowDown")
    holds(page, lambda: len(cells(page, 2)) == len(before) and cells(page, 2) != before)


def test_an_open_table_follows_the_cursor(visitor):
    page = visitor.open("embeddings", view="Positions")
    page.locator(".bw-numbers summary").click()
    becomes(page, lambda: cells(page, 2), ["5"])
    page.locator(".bw-map").press("ArrowDown")
    becomes(page, lambda: cells(page, 2), ["6"])


def test_the_table_of_a_token_is_named_after_it(visitor):
    page = visitor.open("embeddings", text="The dog slept.")
    page.locator(".bw-numbers summary").click()
    expect(page.get_by_role("region", name="All dimensions of the", exact=True)).to_be_visible()
    page.locator(".bw-strips").press("ArrowDown")
    expect(page.get_by_role("region", name="All dimensions of dog", exact=True)).to_be_visible()
    expect(page.locator(".bw-numbers caption")).to_have_text("All dimensions of dog")
