"""What a screen reader is given: pictures that keys lead through, what a run changed in words, and the focus kept.

Tried with Orca in Chromium: it keeps the arrow keys of an image to itself, and says nothing of a picture that is an
application; a slider it tells by its name, passes on its keys and says its value.
"""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_keyboard import FOCUSED, first_guess, focused
from tests.browser.waiting import becomes, holds, settle
from tests.cases import quick_are

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

TEXT = "The old dog chased my cat."
GAP = "My dog is [MASK]."
#: (page, parameters, picture, a key that leads on in it).
PICTURES = [
    ("attention", {"text": TEXT}, "canvas.att-grid", "ArrowLeft"),
    ("attention", {"text": TEXT}, "canvas.att-head", "ArrowDown"),
    ("attention", {"text": TEXT, "view": "Act"}, "canvas.att-grid", "ArrowLeft"),
    ("attention", {"text": TEXT, "view": "Through the layers"}, "canvas.bw-flow", "ArrowRight"),
    ("attention", {"text": TEXT, "view": "Step by step"}, "canvas.steps-canvas", "ArrowRight"),
    ("compare", {"text": TEXT, "view": "Masks and heads"}, "canvas.cmp-map", "ArrowDown"),
    ("embeddings", {"text": TEXT}, "canvas.bw-strips", "ArrowRight"),
    ("embeddings", {"text": TEXT, "view": "Positions"}, "canvas.bw-map", "ArrowRight"),
    ("cls", {"text": TEXT, "view": "The head"}, "canvas.bw-strips", "ArrowLeft"),
    ("tasks", {"view": "Answers"}, "canvas.bw-grid", "ArrowRight"),
]


def heard(page: Page) -> str:
    """What the page itself says of the last run."""
    return page.locator(".st-key-c_ready :not(.bw-run-heard) > .bw-heard").text_content()


@pytest.mark.parametrize(("page", "query", "picture", "key"), quick_are(2, PICTURES))
def test_a_picture_that_keys_lead_through_tells_its_place(visitor, page, query, picture, key):
    visitor.open(page, **query)
    one = visitor.page.locator(picture).first
    expect(one).to_have_attribute("role", "slider")
    expect(one).to_have_attribute("aria-label", re.compile("."))
    one.focus()
    before = [one.get_attribute(f"aria-value{part}") for part in ("now", "text")]
    one.press(key)
    holds(visitor.page, lambda: all(one.get_attribute(f"aria-value{part}") not in (was, "", None)
                                    for part, was in zip(("now", "text"), before)))
    low, now, high = (float(one.get_attribute(f"aria-value{part}")) for part in ("min", "now", "max"))
    assert low <= now <= high
    expect(one).to_be_focused()


def test_other_words_of_the_same_place_come_with_another_number(visitor):
    grid = visitor.open("attention", text=TEXT, view="Act").locator("canvas.att-grid")
    grid.focus()
    before = grid.get_attribute("aria-valuenow")
    grid.press(" ")
    expect(grid).to_have_attribute("aria-valuetext", re.compile("switched off$"))
    assert 0 < float(grid.get_attribute("aria-valuenow")) - float(before) < 1
    grid.press(" ")
    expect(grid).to_have_attribute("aria-valuenow", before)


def test_a_token_that_is_looked_at_is_told_by_who_looks(visitor):
    page = visitor.open("attention", text=TEXT, layer=2, head=5)
    head, says = page.locator("canvas.att-head"), page.locator(".att-says")
    head.focus()
    head.press("ArrowDown")
    head.press("ArrowDown")
    expect(says).to_contain_text("Most at “")
    head.press("ArrowRight")
    strongest = page.locator(".att-to .att-token").first.text_content()
    expect(says).to_contain_text(f"Most from “{strongest}”")
    assert head.get_attribute("aria-valuetext") == says.text_content()


def test_columns_and_words_have_roles_whose_arrow_keys_come_through(visitor):
    page = visitor.open("cls", text=TEXT)
    page.locator(".bw-column[tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    assert focused(page).evaluate("one => one.getAttribute('role')") == "option"
    expect(page.locator(".bw-column[aria-selected=true]")).to_have_count(1)
    expect(page.locator(".bw-column[aria-selected=true]")).to_be_focused()
    page = visitor.open("tasks", view="Entities")
    expect(page.get_by_role("toolbar", name="Text with its entities")).to_be_visible()
    word = page.locator(".bw-word[tabindex='0']")
    expect(word).to_have_attribute("aria-label", re.compile(r"^\w+, \S+ [<>\d.]+ %$"))


def test_after_typing_the_guesses_are_heard_and_of_the_status_only_what_changed(visitor):
    page = visitor.open("masking", text=GAP)
    expect(page.locator(".bw-status[role=status], .bw-status [role=status]")).to_have_count(0)
    visitor.type("My old dog is [MASK].")
    guesses = page.locator(".st-key-c_gaps .bw-heard")
    expect(guesses).to_have_attribute("role", "status")
    expect(guesses).to_have_text(re.compile("^The gap at position 5: " + re.escape(
        first_guess("My old dog is [MASK].", 5)) + r" [<\d.]+ %, \S+ [<\d.]+ %, \S+ [<\d.]+ %$"))
    becomes(page, lambda: heard(page), "8 tokens")


def test_another_view_or_page_is_heard_by_its_words(visitor):
    page = visitor.open("masking", text=GAP)
    run = visitor.run_number()
    page.get_by_role("radio", name="The head").click()
    visitor.after(run)
    lead = page.locator(".bw-lead").evaluate(
        "one => { const copy = one.cloneNode(true); copy.querySelectorAll('.bw-tip').forEach((tip) => tip.remove());"
        " return copy.textContent; }")
    becomes(page, lambda: heard(page), lead)
    run = visitor.run_number()
    page.locator("[data-testid=stSidebarNav] a", has_text="Tokens").click()
    visitor.after(run)
    holds(page, lambda: heard(page).startswith(page.locator("h1").inner_text().strip()))


def press_by_keyboard(visitor, name: str) -> float:
    """Focus a button and press it; the page has drawn when this returns how far it was scrolled before."""
    page = visitor.page
    button = page.get_by_role("button", name=name, exact=True)
    expect(button).to_be_enabled()
    button.focus()
    run, top = visitor.run_number(), page.locator("[data-testid=stMain]").evaluate("one => one.scrollTop")
    page.keyboard.press("Enter")
    visitor.after(run)
    return top


def focused_name(page: Page) -> str:
    return page.evaluate(f"""() => {{ const one = ({FOCUSED})();
      return one.getAttribute('aria-label') ?? (one.querySelector('p') ?? one).textContent.trim(); }}""")


def test_a_button_that_went_hands_the_focus_to_what_stands_there(visitor):
    page = visitor.open("class", view="Room")
    press_by_keyboard(visitor, "Open a room")
    end = page.get_by_role("button", name="End the room", exact=True)
    expect(end).to_be_visible()
    becomes(page, lambda: focused(page).evaluate("one => one.closest('[data-testid=stColumn]') !== null"), True)
    press_by_keyboard(visitor, "End the room")
    expect(end).to_have_count(0)
    becomes(page, lambda: focused_name(page), "Open a room")


def test_a_button_that_was_switched_off_hands_the_focus_to_its_neighbour_and_nothing_scrolls(visitor):
    page = visitor.open("attention", text=TEXT, view="Act", off="1-1")
    top = press_by_keyboard(visitor, "Undo all changes")
    expect(page.get_by_role("button", name="Undo all changes")).to_be_disabled()
    row = "one => one.closest('[data-testid=stHorizontalBlock]')?.textContent ?? ''"
    holds(page, lambda: "Undo all changes" in focused(page).evaluate(row))
    assert abs(page.locator("[data-testid=stMain]").evaluate("one => one.scrollTop") - top) <= 1


def test_whoever_went_on_keeps_the_focus(visitor):
    page = visitor.open("attention", text=TEXT, view="Act", off="1-1")
    undo = page.get_by_role("button", name="Undo all changes")
    undo.focus()
    page.evaluate("document.querySelector('[data-testid=stMain]').scrollTo(0, 0)")
    page.keyboard.press("Enter")
    page.locator("h1").click(position={"x": 2, "y": 2})
    expect(undo).to_be_disabled()
    settle(page)
    page.wait_for_timeout(2500)  # longer than one that is only switched off is waited for
    assert focused(page).evaluate("one => one.closest('[data-testid=stHorizontalBlock]')") is None


def test_train_hands_the_focus_to_cancel_and_its_line_is_not_read_at_every_change(visitor):
    page = visitor.open("finetune")
    train = page.get_by_role("button", name="Train", exact=True)
    train.focus()
    page.keyboard.press("Enter")
    becomes(page, lambda: focused_name(page), "Cancel")
    line, said = page.locator(".bw-result[data-state]"), page.locator(".bw-run-heard .bw-heard")
    expect(line).not_to_have_attribute("role", "status")  # every report of it would be read out
    expect(said).to_have_attribute("role", "status")
    expect(said).not_to_be_empty()
    page.keyboard.press("Enter")
    becomes(page, lambda: focused_name(page), "Train")
    expect(said).to_contain_text(re.compile("Stopped|Cancelled|before it began"))
    holds(page, lambda: said.text_content() == line.text_content())
