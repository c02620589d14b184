"""What a click changes, and what a picture speaks of, is in sight: nobody has to look for it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.waiting import holds
from tests.cases import quick_are


def is_in_sight(page: Page, what: Locator) -> bool:
    """Whether an element stands whole between the window's top and the status bar."""
    return what.evaluate("""(element) => {
      const box = element.getBoundingClientRect(), bar = document.querySelector(".bw-status").getBoundingClientRect();
      return box.top >= 0 && box.bottom <= bar.top + 1;
    }""")


def test_the_answers_stay_above_the_grid_that_changes_them(new_visitor):
    page = new_visitor().open("attention", view="Act")
    holds(page, lambda: page.locator("canvas.att-grid").bounding_box()["y"] < 0.85 * 900)
    page.locator("canvas.att-grid").hover()
    page.mouse.wheel(0, 420)
    holds(page, lambda: page.locator("canvas.att-grid").bounding_box()["y"] < 450)
    assert is_in_sight(page, page.locator(".effect-root"))
    assert is_in_sight(page, page.locator("canvas.att-grid"))


@pytest.mark.parametrize(("size", "present"), quick_are(1, [((1280, 720), {"present": 1}), ((1366, 768), {})]))
def test_many_answers_leave_the_grid_its_room(new_visitor, size, present):
    visitor = new_visitor(width=size[0], height=size[1])
    page = visitor.open("attention", view="Act", text="The [MASK] slept. " * 7, **present)
    grid = page.locator("canvas.att-grid")
    grid.evaluate("grid => grid.scrollIntoView({ block: 'end' })")
    room = grid.evaluate("""(grid) => {
      const [bar, answers] = [".bw-status", ".st-key-c_effect"].map(
        (one) => document.querySelector(one).getBoundingClientRect());
      const place = grid.getBoundingClientRect();
      return Math.min(place.bottom, bar.top) - Math.max(place.top, answers.bottom);
    }""")
    assert room > 150
    page.locator(".st-key-c_effect").evaluate("box => { box.scrollTop = box.scrollHeight; }")
    assert is_in_sight(page, page.locator(".effect-block").last)


def test_a_row_of_roles_brings_its_head_up(new_visitor):
    page = new_visitor().open("attention", view="Roles")
    assert not is_in_sight(page, page.locator("canvas.att-grid"))
    page.locator(".roles-scroll button").first.click()
    holds(page, lambda: is_in_sight(page, page.locator("canvas.att-grid")))


def test_a_low_projector_shows_what_each_reader_gives_the_word(new_visitor):
    page = new_visitor().open("compare", present=1)
    assert page.locator(".cmp-truth").count() == 3
    assert all(is_in_sight(page, one) for one in page.locator(".cmp-truth").all())


def test_the_row_whose_operands_are_shown_is_in_sight_in_its_table(new_visitor):
    text = " ".join(["the dog saw a cat in the garden and"] * 4)
    page = new_visitor().open("attention", view="Step by step", text=text, layer=1, head=3, token=35)  # looks at itself
    holds(page, lambda: page.locator(".steps-table").evaluate("""(box) => {
      const row = box.querySelector("tr.on"), frame = box.getBoundingClientRect(), place = row.getBoundingClientRect();
      return place.top >= frame.top && place.bottom <= frame.bottom && box.scrollTop > 0;
    }"""))


def test_numbers_beside_a_right_to_left_word_stay_where_they_belong(new_visitor):
    visitor = new_visitor()
    page = visitor.open("compare", text="שלום [MASK] ends.", behind="עולם")
    assert page.locator(".cmp-of").first.text_content().startswith("for \u2068“עולם”\u2069, 4 pieces")
    page = visitor.open("tasks", view="Entities", text="ذهب Barack Obama إلى Paris في يوم جميل")
    tag = page.locator(".bw-tag").first
    assert tag.evaluate("tag => getComputedStyle(tag).direction + getComputedStyle(tag).unicodeBidi") == "ltrisolate"


@pytest.mark.parametrize(("size", "words"), [((390, 844), 50), ((1366, 768), 200)])
def test_the_answer_to_a_click_on_a_chip_of_a_long_text_is_in_sight(new_visitor, size, words):
    text = " ".join(["the dog saw a cat in the garden and"] * (words // 9))
    visitor = new_visitor(width=size[0], height=size[1])
    page = visitor.open("masking", text=text, mask=30)
    chips, guess = page.locator(".bw-row"), page.locator(".bw-guess").first
    chip = chips.get_by_role("option").nth(30)
    assert is_whole(chips, chip)  # a link's gap is brought up among the others
    assert is_in_sight(page, guess)
    chip.press("End")
    assert is_whole(chips, chips.locator(":focus"))
    run = visitor.run_number()
    chips.get_by_role("option").nth(24).click()
    visitor.after(run)
    visitor.in_address("mask=24%2C30")
    assert is_in_sight(page, guess)


TOKENS = " ".join(["the dog saw a cat in the garden and"] * 20)


LONG_ROWS = [("attention", "Step by step", "token"), ("attention", "Through the layers", "token"),
             ("compare", "Side by side", "at"), ("embeddings", "Neighbours", "token")]
SIZES = [(390, 844), (1440, 900)]


@pytest.mark.parametrize(("page", "view", "key", "size"), quick_are(2, [
    *((*row, SIZES[n % 2]) for n, row in enumerate(LONG_ROWS)),
    *((*row, SIZES[1 - n % 2]) for n, row in enumerate(LONG_ROWS))]))
def test_what_a_long_row_of_chips_chooses_stays_near_it(new_visitor, size, page, view, key):
    visitor = new_visitor(width=size[0], height=size[1])
    row = visitor.open(page, view=view, text=TOKENS, **{key: 150}).locator(".bw-chips").first
    assert row.bounding_box()["height"] < 0.3 * size[1]
    assert is_whole(row, row.get_by_role("option").nth(150))
    row.evaluate("row => { row.scrollTop = 40; }")
    visitor.type(TOKENS.replace("garden", "house"))  # as many tokens, drawn again: who scrolls stays there
    assert row.evaluate("row => row.scrollTop") == 40
    visitor.page.emulate_media(media="print")
    assert row.evaluate("row => row.scrollHeight <= row.clientHeight + 8")


def test_no_count_stands_on_the_words_while_one_types(new_visitor):
    field = new_visitor(width=390).open("tokens").get_by_label("Sentence", exact=True)
    field.press_sequentially("ab")
    expect(field).to_be_focused()
    expect(field.page.get_by_test_id("InputInstructions").locator("visible=true")).to_have_count(0)


def test_a_short_row_of_chips_has_no_frame(new_visitor):
    page = new_visitor(width=390).open("embeddings", view="Neighbours", text="dog " * 40)
    expect(page.locator(".bw-chips")).to_have_count(1)
    expect(page.locator(".bw-bounded")).to_have_count(0)


def test_the_strips_of_a_long_text_open_at_what_they_explain(visitor):
    text = f"{TOKENS} the [MASK] barked"
    page = visitor.open("attention", view="Attribution", text=text)
    strips = page.locator(".strips-tokens")
    for n in range(strips.count()):
        assert strips.nth(n).evaluate("list => list.scrollTop") > 0
        assert is_whole(strips.nth(n), strips.nth(n).locator(".strips-explained"))
    strips.nth(1).evaluate("list => { list.scrollTop = 10; }")
    page.emulate_media(color_scheme="dark")
    expect(page.locator("[data-theme=dark]").first).to_be_attached()
    holds(page, lambda: strips.nth(1).evaluate("list => list.scrollTop") == 10)


def test_the_open_key_belongs_to_its_sentence(visitor):
    first, second = "The dog barked all night long.", "A small grey cat sat there and looked at the moon."
    page = visitor.open("attention", view="Step by step", text=first)
    on = page.locator(".steps-table tr.on button")
    strongest = on.inner_text()
    page.locator(".steps-table tbody tr:not(.on) button").first.click()  # a place that the longer one has too
    assert on.inner_text() != strongest
    visitor.type(second)
    visitor.type(first)
    expect(on).to_have_text(strongest)


def is_whole(row: Locator, chip: Locator) -> bool:
    """Whether a row that scrolls shows the whole of a chip."""
    frame, place = row.bounding_box(), chip.bounding_box()
    return frame["y"] <= place["y"] and place["y"] + place["height"] <= frame["y"] + frame["height"]
