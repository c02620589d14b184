"""The Class page, presenter mode, the tour and the glossary, by keyboard where it matters."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.waiting import holds
from ui.views.class_lessons import lessons

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]


def test_answer_shows_after_a_prediction_and_progress_stays(new_visitor):
    visitor = new_visitor()
    page = visitor.open("class", lesson="3. What goes in the gap?")
    expect(page.locator(".bw-reveal")).to_have_count(0)
    lesson = next(one for one in lessons() if one.key == "gap")
    page.get_by_text(lesson.options[lesson.answer], exact=True).click()
    expect(page.locator(".bw-reveal")).to_contain_text("As you predicted.")
    page.get_by_role("button", name="I have done this lesson").click()
    expect(page.locator(".bw-progress")).to_have_text("1 of 14 done")
    holds(page, lambda: page.evaluate("localStorage.getItem('both-ways.lessons')") not in (None, "[]"))
    visitor.open("class")
    expect(page.locator(".bw-progress")).to_have_text("1 of 14 done")
    visitor.no_traceback()


def test_what_one_tab_forgets_another_does_not_bring_back(new_visitor):
    visitor = new_visitor()
    page = visitor.open("class")
    page.get_by_role("button", name="I have done this lesson").click()
    expect(page.locator(".bw-progress")).to_have_text("1 of 14 done")
    holds(page, lambda: page.evaluate("localStorage.getItem('both-ways.lessons')") == '[["tokens","done"]]')
    other = page.context.new_page()
    other.goto(f"{visitor.address}/class?view=Checklist")
    other.get_by_role("button", name="Start over").click()
    holds(other, lambda: other.evaluate("localStorage.getItem('both-ways.lessons')") == "[]")
    expect(page.locator(".bw-progress")).to_have_text("0 of 14 done")
    page.get_by_role("radio", name="Checklist").click()
    expect(page.locator(".bw-done")).to_have_count(0)
    assert page.evaluate("localStorage.getItem('both-ways.lessons')") == "[]"


def test_a_lesson_that_is_done_can_be_taken_back(visitor):
    page = visitor.open("class", lesson="3. What goes in the gap?")
    page.get_by_role("button", name="I have done this lesson").click()
    page.get_by_role("button", name="I have not done it").click()
    expect(page.get_by_role("button", name="I have done this lesson")).to_be_visible()
    expect(page.locator(".bw-progress")).to_have_text("0 of 14 done")
    holds(page, lambda: page.evaluate("localStorage.getItem('both-ways.lessons')") == "[]")


def test_a_step_to_masking_opens_the_page_of_that_name(visitor):
    page = visitor.open("class", lesson="3. What goes in the gap?")
    page.get_by_role("button", name="Open Masking").first.click()
    page.wait_for_url("**/masking*")
    expect(page.locator("[data-testid=stSidebarNavLink][aria-current=page]")).to_have_text("Masking")


def test_a_step_opens_its_page_with_its_sentence(visitor):
    step = next(lesson.steps[0] for lesson in lessons() if lesson.key == "both-ways")
    page = visitor.open("class", lesson="7. BERT against GPT", text="something else", pair="and more")
    page.get_by_role("button", name="Open One way, both ways").first.click()
    visitor.wait_ready(dict(step.link)["text"])
    page.wait_for_url("**/compare*")
    visitor.in_sentence("", "Second sentence")


def test_presenter_mode_turns_pages_by_keyboard(visitor):
    page = visitor.open("masking", present=1, text="the dog [MASK]")
    page.wait_for_function("parseFloat(getComputedStyle(document.documentElement).fontSize) > 20")
    expect(page.get_by_test_id("stSidebar")).to_be_hidden()
    run = visitor.run_number()
    page.keyboard.press("PageDown")
    visitor.after(run)
    page.wait_for_url("**/compare*")
    visitor.in_sentence("the dog [MASK]")
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("stSidebar")).to_be_visible()


def test_presenter_mode_on_a_phone_without_keys_has_the_sidebar(new_visitor):
    page = new_visitor(width=390, height=844).open("masking", present=1)
    expect(page.locator(".bw-presenter")).to_be_hidden()
    page.get_by_test_id("stExpandSidebarButton").click()
    page.get_by_test_id("stSidebarNavLink").filter(has_text="Tokens").click()
    page.wait_for_url("**/tokens*")


def test_a_teachers_link_hides_and_fixes(visitor):
    page = visitor.open("masking", hide="inputs,pages,nonsense", fix=1, text="the dog [MASK]")
    expect(page.get_by_label("Sentence", exact=True)).to_be_hidden()
    expect(page.get_by_test_id("stSidebar")).to_be_hidden()
    expect(page.locator("[data-testid=stButtonGroup][inert]")).not_to_have_count(0)
    expect(page.locator(".bw-status")).to_contain_text("nonsense")


def test_what_a_link_fixes_stays_fixed_after_escape(visitor):
    page = visitor.open("attention", fix=1, present=1, text="the dog slept")
    pictures = page.locator("[data-testid^=stBidiComponent][data-fixed]")
    expect(pictures).not_to_have_count(0)
    run = visitor.run_number()
    page.keyboard.press("Escape")
    visitor.after(run)
    expect(page.get_by_test_id("stSidebar")).to_be_visible()
    expect(page.locator("[data-testid=stButtonGroup][inert]")).not_to_have_count(0)
    expect(pictures).not_to_have_count(0)
    page = visitor.open("tasks", fix=1)
    expect(page.locator("[class*=st-key-try_] [data-testid=stButton][inert]")).not_to_have_count(0)


def test_a_fixed_map_is_read_by_pointer_and_keyboard_and_keeps_its_head(visitor):
    page = visitor.open("attention", fix=1, text="the dog slept", layer=2, head=3)
    root, grid, head = page.locator(".att-root"), page.locator(".att-grid"), page.locator(".att-head")
    expect(page.locator("[data-testid^=stBidiComponent][data-fixed]")).not_to_have_count(0)
    address, run = page.url, visitor.run_number()
    grid.hover(position={"x": 120, "y": 120})
    expect(grid).to_have_attribute("title", re.compile(r"Layer \d, head \d"))
    grid.click(position={"x": 120, "y": 120})
    grid.press("ArrowDown")
    details = page.locator(".att-details")
    unread = details.inner_text()
    head.hover()
    holds(page, lambda: details.inner_text() != unread)
    read = details.inner_text()
    head.press("ArrowDown")
    holds(page, lambda: details.inner_text() != read)
    assert_unmoved(visitor, address, run)
    expect(root).to_have_attribute("data-layer", "2")
    expect(root).to_have_attribute("data-head", "3")


def test_fixed_tokens_take_no_choice_but_the_focus_and_the_table_opens(visitor):
    page = visitor.open("masking", fix=1, text="the dog slept", mask=2)
    chips = page.get_by_role("option")
    expect(page.locator("[data-testid^=stBidiComponent][data-fixed]")).not_to_have_count(0)
    address, run = page.url, visitor.run_number()
    chips.nth(1).click()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(chips.nth(3)).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Space")
    expect(page.get_by_role("option", selected=True)).to_have_count(1)
    page.locator(".bw-numbers summary").first.click()
    expect(page.locator(".bw-numbers table").first).to_be_visible()
    assert_unmoved(visitor, address, run)


def test_pictures_take_choices_again_once_the_link_is_left(visitor):
    page = visitor.open("class", view="Present", fix=1, text="the dog slept")
    expect(page.locator("[data-testid=stButtonGroup][inert]")).not_to_have_count(0)
    page.get_by_role("button", name="Leave presenter mode").click()
    expect(page.locator("[data-fixed], [inert]")).to_have_count(0)
    run = visitor.run_number()
    page.get_by_test_id("stSidebarNavLink").filter(has_text="Masking").first.click()
    visitor.after(run)
    page.get_by_role("option").nth(1).click()
    expect(page.get_by_role("option", selected=True)).to_have_count(1)


def assert_unmoved(visitor, address: str, run: int) -> None:
    """Nothing was sent: the address is the same, and no run has followed for longer than a component waits."""
    visitor.page.wait_for_timeout(1000)
    assert visitor.page.url == address
    assert visitor.run_number() == run


def test_a_link_holds_the_view_one_comes_from(visitor):
    page = visitor.open("family", view="Cost", text="the [MASK]")
    page.get_by_role("radio", name="memory").click()
    page.get_by_text("if everything is kept that the pictures here show").wait_for()
    run = visitor.run_number()
    page.get_by_test_id("stSidebarNavLink").filter(has_text="Class").first.click()
    visitor.after(run)
    page.get_by_role("radio", name="Present").click()
    link = page.locator("[data-testid=stCode]")
    holds(page, lambda: "/family?" in link.inner_text())
    query = link.inner_text().replace("\n", "")
    assert "view=Cost" in query
    assert "cost=memory" in query


def test_tour_is_offered_once_and_walks_the_pages(new_visitor):
    visitor = new_visitor()
    page = visitor.open()
    page.get_by_role("link", name="Take the tour").click()
    expect(page.get_by_text("1 of 6")).to_be_visible()
    page.get_by_role("button", name="Next stop").click()
    page.wait_for_url("**/tokens*")
    page.get_by_role("button", name="End the tour").click()
    expect(page.get_by_text("2 of 6")).to_have_count(0)
    visitor.open("masking", text="x")
    expect(page.get_by_text("Take the tour")).to_have_count(0)


def test_a_term_tells_its_meaning_on_focus(new_visitor):
    visitor = new_visitor(width=390, scheme="dark")
    page = visitor.open("embeddings")
    term = page.locator("details[open] .bw-term").first
    expect(term).to_be_visible()
    expect(term.locator(".bw-tip")).to_be_hidden()
    term.focus()
    expect(term.locator(".bw-tip")).to_be_visible()


def test_links_are_built_for_the_class(visitor):
    page = visitor.open("class", view="Present", text="the [MASK]")
    page.get_by_text("Fix the controls").click()
    link = page.locator("[data-testid=stCode]")
    holds(page, lambda: "fix=1" in link.inner_text())
    holds(page, lambda: "/masking?text=the+%5BMASK%5D" in link.inner_text().replace("\n", ""))
    expect(page.get_by_role("img", name="This link")).to_have_count(1)


def test_paper_has_all_lessons_and_the_citation(visitor):
    page = visitor.open("class", view="Print and cite")
    expect(page.locator(".bw-sheet")).to_have_count(len(lessons()) + 1)  # and the answers
    page.get_by_text("How to cite").wait_for()
    visitor.no_traceback()


def test_what_to_notice_is_folded_until_its_step_was_opened_and_a_prediction_outlives_a_step(visitor):
    page = visitor.open("class", lesson="2. Three embeddings, one sum")
    first, second = page.locator(".bw-step .bw-notice-this").all()
    expect(first).to_be_hidden()
    page.get_by_text("What to notice").first.click()
    expect(first).to_be_visible()
    page.get_by_text("What to notice").first.click()
    run = visitor.run_number()
    page.get_by_text(lessons()[1].options[lessons()[1].answer]).click()
    visitor.after(run)
    expect(first).to_be_hidden()
    expect(second).to_be_hidden()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")  # paper has them all
    expect(first).to_be_visible()
    expect(second).to_be_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    expect(second).to_be_hidden()
    page.get_by_role("button", name="Open Embeddings").first.click()
    page.wait_for_url("**/embeddings*")
    visitor.wait_ready()
    page.get_by_test_id("stSidebarNavLink").filter(has_text="Class").first.click()
    page.wait_for_url("**/class*")
    visitor.wait_ready()
    expect(page.locator(".bw-reveal")).to_contain_text("As you predicted.")
    expect(first).to_be_visible()
    expect(second).to_be_hidden()
    expect(page.get_by_role("combobox", name="Lesson")).to_have_value("2. Three embeddings, one sum")


def test_the_page_of_a_step_says_what_to_do_there_until_one_goes_elsewhere(new_visitor):
    visitor = new_visitor(height=600)
    lesson = next(one for one in lessons() if one.key == "gap")
    page = visitor.open("class", view="Lessons", lesson="3. What goes in the gap?")
    page.locator(".st-key-_step_gap_2 button").click()
    page.wait_for_url("**/masking*doing=gap.2*")
    visitor.wait_ready()
    line = page.locator(".st-key-bw_lesson")
    expect(line).to_be_in_viewport(ratio=1)  # the page begins at its top, though the lesson was scrolled
    page.reload()
    visitor.wait_ready()
    expect(line).to_contain_text(f"Lesson 3, step 2 of 4: {lesson.steps[1].do}")
    page.get_by_role("button", name="Next step").click()
    page.wait_for_url("**/masking*doing=gap.3*")
    visitor.wait_ready()
    expect(line).to_contain_text("step 3 of 4")
    page.go_back()
    expect(line).to_contain_text("step 2 of 4")
    visitor.wait_ready()
    page.get_by_test_id("stSidebarNavLink").filter(has_text="Tokens").click()
    page.wait_for_url("**/tokens*")
    visitor.wait_ready()
    expect(line).to_have_count(0)
    assert "doing" not in page.url


def test_the_line_of_a_step_costs_a_phone_little_height(new_visitor):
    page = new_visitor(width=390, height=844).open("compare", doing="both-ways.3")
    expect(page.locator(".bw-lead")).to_be_hidden()
    assert page.locator(".st-key-bw_lesson").bounding_box()["height"] < 130  # it stands where the lead did


def test_the_address_after_a_step_opens_the_same_view_again(visitor):
    """The page of lessons has views of its own under the same name."""
    lesson = lessons()[6]
    assert dict(lesson.steps[2].link)["view"] == "Reveal"
    page = visitor.open("class", view="Lessons", lesson=f"7. {lesson.title}")
    for step, address in ((3, "**/compare?*view=Reveal*"), (1, "**/compare?*"), (3, "**/compare?*view=Reveal*")):
        page.locator(f".st-key-_step_{lesson.key}_{step} button").click()
        page.wait_for_url(address)
        visitor.wait_ready()
        if step == 3:
            page.get_by_role("button", name="Reveal", exact=True).wait_for()
        page.get_by_test_id("stSidebarNavLink").filter(has_text="Class").first.click()
        page.wait_for_url("**/class*")
        visitor.wait_ready()
    page.locator(f".st-key-_step_{lesson.key}_3 button").click()
    page.wait_for_url("**/compare?*view=Reveal*")
    visitor.wait_ready()
    page.reload()
    visitor.wait_ready()
    page.get_by_text("Which side of “sun” gives it away").wait_for()
