"""Back and Forward: what an entry of the browser's history stood for comes back whole, never in parts."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.cases import quick_are
from ui.views.class_lessons import lessons

DOG, LINE = "The dog barked all night.", "A quite different line of words here."

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]


def hide(visitor, token: str) -> None:
    """Click a token to hide it."""
    run = visitor.run_number()
    visitor.page.get_by_role("option", name=token).click()
    visitor.after(run)


def shows(visitor, text: str, hidden: str | None) -> None:
    """Wait until the page has drawn for `text`, with this one token hidden and the address saying so too."""
    visitor.wait_ready(text)
    visitor.in_sentence(text)
    chosen = visitor.page.locator("[role=option][aria-selected=true]")
    expect(chosen).to_have_text([f"[MASK]{hidden}"] if hidden else [])
    visitor.in_address(f"text={text.replace(' ', '+')}")
    assert ("mask=" in visitor.page.url) == bool(hidden)


@pytest.mark.parametrize("slower", quick_are(1, [2, 1, 4, 8]))
def test_a_sentence_comes_back_with_its_own_masks(visitor, slower):
    """On a slow laptop too: there a run's beginning and its end reach the page as one."""
    visitor.page.context.new_cdp_session(visitor.page).send("Emulation.setCPUThrottlingRate", {"rate": slower})
    page = visitor.open("masking", text=DOG)
    hide(visitor, "barked")
    visitor.type(LINE)
    hide(visitor, "line")
    entries = [(DOG, None), (DOG, "barked"), (LINE, None), (LINE, "line")]
    shows(visitor, *entries[-1])
    for entry in reversed(entries[:-1]):
        page.go_back()
        shows(visitor, *entry)
    for entry in entries[1:]:
        page.go_forward()
        shows(visitor, *entry)


def test_a_sentence_comes_back_with_its_masks_after_a_reload_and_from_another_page(visitor):
    page = visitor.open("masking", text=DOG)
    hide(visitor, "barked")
    page.get_by_role("link", name="Tokens").click()
    page.wait_for_url("**/tokens**")
    visitor.type(LINE)
    page.reload()
    visitor.wait_ready(LINE)
    page.go_back()
    page.wait_for_url("**/masking**")
    shows(visitor, DOG, "barked")


def test_a_page_that_one_goes_back_to_has_what_its_entry_had(visitor):
    page = visitor.open("masking", text=DOG)
    hide(visitor, "barked")
    page.get_by_role("link", name="Tokens").click()
    page.wait_for_url("**/tokens**")
    visitor.wait_ready(DOG)
    page.evaluate("history.go(-2)")
    page.wait_for_url("**/masking**")
    shows(visitor, DOG, None)


def has_open(visitor, page: str, view: str) -> None:
    """Wait until a page is there with this view, and its address names the view if it isn't the first."""
    visitor.page.wait_for_url(f"**/{page}**")
    expect(visitor.page.get_by_role("radio", name=view, exact=True)).to_be_checked()
    visitor.wait_ready()


def open_view(visitor, page: str, view: str) -> None:
    """Choose a view of the page that is there."""
    run = visitor.run_number()
    visitor.page.get_by_role("radio", name=view, exact=True).click()
    visitor.after(run)
    has_open(visitor, page, view)


#: Pages, with their first view and another one.
VIEWED = [("family", "Anatomy", "Cost"), ("attention", "All heads", "Act"), ("cls", "Answer", "Layers")]


@pytest.mark.parametrize("viewed", quick_are(1, [VIEWED[:2], VIEWED]))
def test_back_and_forward_open_the_view_that_was_there(visitor, viewed):
    page = visitor.open("tokens", text=DOG)
    entries = [("tokens", "Step by step")]
    for name, first, view in viewed:
        page.locator(f'[data-testid=stSidebarNavLink][href$="/{name}"]').click()
        has_open(visitor, name, first)
        open_view(visitor, name, view)
        entries += [(name, first), (name, view)]
    page.locator('[data-testid=stSidebarNavLink][href$="/meaning"]').click()
    page.wait_for_url("**/meaning**")
    visitor.wait_ready()
    for step in ("back", "forward"):
        for name, view in entries[::-1] if step == "back" else entries[1:]:
            getattr(page, f"go_{step}")()
            has_open(visitor, name, view)
            assert (f"view={view}" in page.url) == (view in ("Cost", "Act", "Layers"))


def test_each_view_that_was_opened_on_a_page_is_an_entry_with_what_was_chosen_in_it(visitor):
    page = visitor.open("masking", text=DOG)
    hide(visitor, "barked")
    for view in ("Layer by layer", "Neurons"):
        open_view(visitor, "masking", view)
    page.go_back()
    has_open(visitor, "masking", "Layer by layer")
    page.go_back()
    has_open(visitor, "masking", "Fill the gap")
    shows(visitor, DOG, "barked")
    page.go_forward()
    page.go_forward()
    has_open(visitor, "masking", "Neurons")
    page.go_back()
    page.go_back()
    page.go_back()
    shows(visitor, DOG, None)


def test_what_was_chosen_in_a_view_comes_back_with_it(visitor):
    page = visitor.open("attention", text=DOG, view="Step by step")
    run = visitor.run_number()
    page.get_by_role("option", name="night").first.click()
    visitor.after(run)
    left = page.url
    for view in ("Roles", "Act"):
        open_view(visitor, "attention", view)
    page.go_back()
    has_open(visitor, "attention", "Roles")
    page.go_back()
    has_open(visitor, "attention", "Step by step")
    assert page.url == left


def test_an_example_is_one_entry(visitor):
    page = visitor.open("compare", text=DOG, at=3)
    page.get_by_label("Examples").click()
    run = visitor.run_number()
    page.get_by_role("option").nth(2).click()
    visitor.after(run)
    page.go_back()
    visitor.wait_ready(DOG)
    visitor.in_sentence(DOG)
    visitor.in_address("at=3")


def test_the_address_names_the_sentence_that_was_typed_over_a_masked_one(visitor):
    page = visitor.open("masking", text=DOG, mask=3)
    for text in (LINE, "The cat slept well."):
        visitor.type(text)
        visitor.in_address(f"text={text.replace(' ', '+')}")
        hide(visitor, text.split()[1])
        visitor.in_address(f"text={text.replace(' ', '+')}")
    page.reload()
    shows(visitor, "The cat slept well.", "cat")


def test_what_is_typed_while_no_run_has_begun_is_not_taken_for_what_is_on_screen(visitor):
    page = visitor.open("masking", text=DOG)
    hide(visitor, "barked")
    typed = page.url.replace("dog", "cat")
    page.evaluate("address => history.replaceState(history.state, '', address)", typed)
    page.wait_for_timeout(800)  # longer than a drawn page takes to be at rest
    assert "dog" in page.evaluate("window.__bwEntry.drawn")
    visitor.type(LINE)
    page.go_back()
    shows(visitor, DOG, "barked")


@pytest.mark.parametrize(("number", "step"), quick_are(1, [(9, 1), (7, 2), (2, 1), (5, 5), (10, 2), (13, 2)]))
def test_a_step_is_one_entry_after_its_lesson(visitor, number, step):
    lesson = lessons()[number - 1]
    page, name = visitor.open("class", model="twin-gpt"), f"{number}. {lesson.title}"
    page.get_by_role("combobox", name="Lesson").click()
    page.get_by_role("option", name=name).click()
    expect(page.locator(".bw-ask")).to_contain_text(lesson.question[:20])
    run = visitor.run_number()
    page.get_by_text(lesson.options[lesson.answer], exact=True).click()
    visitor.after(run)
    before, entries = page.url, page.evaluate("history.length")
    page.locator(f".st-key-_step_{lesson.key}_{step} button").click()
    page.wait_for_url(f"**/{lesson.steps[step - 1].page}*")
    visitor.wait_ready()
    assert page.evaluate("history.length") == entries + 1
    page.go_back()
    page.wait_for_url(before)
    expect(page.get_by_role("combobox", name="Lesson")).to_have_value(name)
    expect(page.locator(".bw-reveal")).to_contain_text("As you predicted.")
    expect(page.get_by_role("combobox", name="Model")).to_have_value("twin-gpt")


def test_a_link_pressed_while_a_picture_is_drawn_leaves_what_was_chosen_for_it(visitor):
    page = visitor.open("masking", text=DOG)
    page.get_by_role("option", name="barked").click()
    visitor.in_address("mask=")
    page.get_by_role("link", name="Tokens").click()
    page.wait_for_url("**/tokens**")
    visitor.wait_ready(DOG)
    page.go_back()
    shows(visitor, DOG, "barked")


def test_the_tour_goes_back_with_the_page(visitor):
    page = visitor.open("masking", tour=1)
    box = page.locator(".st-key-bw_tour")
    for n in (2, 3):
        page.get_by_role("button", name="Next stop").click()
        expect(box).to_contain_text(f"{n} of 6")
        visitor.wait_ready()
    for n in (2, 1):
        page.go_back()
        expect(box).to_contain_text(f"{n} of 6")
        visitor.wait_ready()
    page.get_by_role("link", name="Meaning").click()
    expect(box).to_contain_text("You were at 1 of 6: A gap.")
