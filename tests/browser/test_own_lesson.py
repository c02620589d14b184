"""A lesson of a teacher's own in two browsers: put together in one, which keeps it, and gone through in the other."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_rooms import go_to
from tests.browser.waiting import settle

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]


def add(page: Page, do: str, notice: str) -> None:
    """The view that was on screen last, as the next step."""
    page.get_by_role("radio", name="Your lesson").click()
    page.get_by_label("To do", exact=True).fill(do)
    page.get_by_label("To notice", exact=True).fill(notice)
    page.get_by_role("button", name="Add as step").dblclick()  # one step, whoever is in a hurry
    expect(page.locator(".bw-step").filter(has_text=do)).to_be_visible()
    settle(page)  # what stands below the steps, the link to them, comes later than they do


def test_a_teacher_puts_a_lesson_together_and_a_student_goes_through_it(new_visitor):
    teacher, student = new_visitor(), new_visitor(width=390, scheme="dark")
    page = teacher.open("masking", text="The dog [MASK] all night.")
    go_to(teacher, "Class")
    add(page, "Read the guesses.", "It *barks*.")
    page.get_by_label("Title", exact=True).fill("Dogs at night")
    page.get_by_label("Title", exact=True).press("Enter")
    expect(page.get_by_role("heading", name="Dogs at night")).to_be_visible()
    go_to(teacher, "Tokens")
    teacher.type("Unbelievable kittens.")
    go_to(teacher, "Class")
    add(page, "Count the pieces.", "Eight.")
    link = page.get_by_test_id("stCode").inner_text().strip()

    student.page.goto(link)
    student.wait_ready()
    expect(student.page.get_by_role("heading", name="Dogs at night")).to_be_visible()
    expect(student.page.get_by_label("To do", exact=True)).to_have_count(0)  # the steps alone
    student.fits()
    student.page.get_by_role("button", name="Open Masking").click()
    expect(student.page.locator(".bw-doing")).to_have_text("Dogs at night, step 1 of 2: Read the guesses.")
    student.wait_ready("The dog [MASK] all night.")
    student.page.get_by_role("button", name="Next step").click()
    student.wait_ready("Unbelievable kittens.")
    student.page.reload()
    student.wait_ready("Unbelievable kittens.")
    expect(student.page.locator(".bw-doing")).to_have_text("Dogs at night, step 2 of 2: Count the pieces.")
    student.page.get_by_role("button", name="Back to the lesson").click()
    expect(student.page.locator("details[open] > .bw-notice-this")).to_have_text(["Eight."])  # the step of this visit
    student.no_traceback()

    page.evaluate("""name => localStorage.setItem(name, JSON.stringify([
        ["x", "no lesson"], ...JSON.parse(localStorage.getItem(name))]))""", "both-ways.own_lessons")
    teacher.open("class", view="Your lesson")  # another day: the address says nothing of it
    beside = page.context.new_page()
    beside.goto(f"{teacher.address}/class?view=Your lesson")
    page.get_by_role("button", name="Open “Dogs at night”").click()
    expect(page.locator(".bw-step")).to_have_count(2)
    expect(page.get_by_role("button", name="Change")).to_have_count(2)
    beside.get_by_role("button", name="Open “Dogs at night”").click()
    expect(beside.get_by_label("Title", exact=True)).to_have_value("Dogs at night")  # not the empty one's field
    beside.get_by_label("Title", exact=True).fill("Dogs by day")
    beside.get_by_label("Title", exact=True).press("Enter")
    expect(page.get_by_role("heading", name="Dogs by day")).to_be_visible()  # the same lesson in another tab
    expect(page.get_by_label("Title", exact=True)).to_have_value("Dogs by day")
    beside.get_by_role("button", name="Begin another").click()
    page.get_by_role("button", name="Begin another").click()
    expect(page.locator(".bw-step")).to_have_count(0)
    expect(beside.get_by_role("button", name="Forget it")).to_have_count(1)
    page.get_by_role("button", name="Forget it").click()
    expect(page.get_by_text("Kept in this browser")).to_have_count(0)
    expect(beside.get_by_role("button", name="Forget it")).to_have_count(0)  # it has heard of it
    beside.close()
    teacher.open("class", view="Your lesson")
    expect(page.get_by_role("button", name="Forget it")).to_have_count(0)
    teacher.no_traceback()
