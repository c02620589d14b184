"""What the eye meets on each screen: no half of a page empty, no picture far down, nothing cut, in few openings."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.waiting import becomes, holds

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

TEXT = "The old teacher opened the [MASK] and read it to the children."
#: Contrast of a colour of each element that the selector finds with the page behind it (WCAG 2.2).
CONTRASTS = """([selector, property]) => {
  const parts = (colour) => {
    const scale = colour.startsWith("color(") ? 1 : 255;
    const [r, g, b, alpha = 1] = colour.replace(/^color\\(srgb/, "").match(/[\\d.]+/g).map(Number);
    return [[r, g, b].map((part) => part / scale), alpha];
  };
  const light = (colour) => {
    const [r, g, b] = colour.map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  };
  const [paper] = parts(getComputedStyle(document.querySelector(".stApp")).backgroundColor);
  return [...document.querySelectorAll(selector)].map((one) => {
    const [colour, alpha] = parts(getComputedStyle(one)[property]);
    const over = colour.map((part, n) => alpha * part + (1 - alpha) * paper[n]);
    return Math.max(light(over), light(paper)) / Math.min(light(over), light(paper));
  });
}"""


def box(one: Locator) -> dict[str, float]:
    """Place of an element: left, top, right, bottom."""
    return one.evaluate("one => { const { left, top, right, bottom } = one.getBoundingClientRect();"
                        " return { left, top, right, bottom }; }")


def test_beside_the_map_of_positions_stands_its_row(new_visitor):
    page = new_visitor(width=1280, height=720).open("embeddings", view="Positions", present=1)
    line, readout, card = page.locator(".bw-profile svg"), page.locator(".bw-readout"), page.locator("canvas.bw-map")
    expect(page.locator(".bw-profile-row")).to_have_text("position 5")
    holds(page, lambda: box(line)["right"] > 0.9 * 1280 and box(line)["left"] > box(card)["right"])
    end = box(page.locator(".bw-status"))["top"]
    assert max(box(readout)["bottom"], box(card)["bottom"]) <= end
    assert box(line)["bottom"] - box(line)["top"] > 0.6 * (box(card)["bottom"] - box(card)["top"])
    drawn = page.locator(".bw-profile-line").get_attribute("d")
    assert drawn.count("L") == 511
    card.press("ArrowDown")
    expect(page.locator(".bw-profile-row")).to_have_text("position 6")
    expect(page.locator(".bw-profile-line")).not_to_have_attribute("d", drawn)
    expect(readout).to_have_text("position 6, position 6: cosine 1")
    line.hover(position={"x": 2, "y": 20})  # along the line another column is read, and the row stays
    expect(readout).to_contain_text("position 6, position ")
    expect(readout).not_to_contain_text("position 6:")


def test_the_chart_of_surprise_is_on_a_low_projectors_first_screen(new_visitor):
    page = new_visitor(width=1280, height=720).open("compare", view="Surprise", text="The dog [MASK] all night.",
                                                           present=1)
    plot = page.locator(".st-key-f_surprise .js-plotly-plot")
    holds(page, lambda: plot.bounding_box()["y"] < 0.5 * 720)


def test_the_status_bar_keeps_clear_of_the_sidebar_and_of_large_letters(new_visitor):
    page = new_visitor(width=1440).open("masking", text=TEXT)
    bar, side = page.locator(".bw-status"), page.get_by_test_id("stSidebar")
    for width in (264, 420):  # as it comes, and drawn wider
        side.evaluate("(side, width) => { side.style.setProperty('width', `${width}px`, 'important');"
                      " side.style.setProperty('min-width', `${width}px`, 'important'); }", width)
        holds(page, lambda: abs(box(bar)["left"] - box(side)["right"]) < 2)
    page.set_viewport_size({"width": 390, "height": 844})
    line = bar.locator("> span")
    one = line.evaluate("line => line.clientHeight")
    page.add_style_tag(content="html { font-size: 36px !important; }")  # text alone twice as large
    holds(page, lambda: line.evaluate("line => line.clientHeight") > 3.5 * one)  # two lines of twice the height


def test_a_phone_begins_the_picture_sooner_and_breaks_no_sum(new_visitor):
    visitor = new_visitor(width=390, height=844)
    page = visitor.open("attention", text=TEXT)
    scrub = page.locator(".att-scrub > *").locator("visible=true")
    holds(page, lambda: scrub.count() == 3 and len({round(box(one)["bottom"] / 30) for one in scrub.all()}) == 1)
    page = visitor.open("embeddings", text=TEXT)
    terms = page.locator(".bw-sum .bw-term")
    expect(terms).to_have_count(5)
    holds(page, lambda: [box(one)["top"] == box(terms.first)["top"] for one in terms.all()] == [True] * 3 + [False] * 2)
    equals = page.locator(".bw-sign", has_text="=")
    assert box(equals)["top"] > box(terms.first)["bottom"]
    assert box(equals)["right"] < box(terms.nth(3))["left"]
    visitor.fits()


def test_nothing_empty_stands_above_a_picture(visitor):
    page = visitor.open("masking", text=TEXT, view="Layer by layer")
    chips, next_one = page.locator(".bw-row"), page.locator(".bw-result").first
    holds(page, lambda: box(next_one)["top"] - box(chips)["bottom"] < 40)
    page = visitor.open("pretrain")
    lead, first = page.locator(".bw-lead"), page.locator(".st-key-experiment")
    holds(page, lambda: box(first)["top"] - box(lead)["bottom"] < 30)
    line, bar = page.locator(".bw-result[data-state]"), page.get_by_test_id("stProgress")
    holds(page, lambda: box(bar)["bottom"] - box(line)["bottom"] < 20)
    page.set_viewport_size({"width": 390, "height": 844})
    buttons = [page.locator(f".st-key-{key} button") for key in ("play", "step", "reset")]
    holds(page, lambda: len({round(box(one)["top"]) for one in buttons}) == 1)
    visitor.fits()


def test_three_maps_stand_whole_on_a_laptops_first_screen_and_names_of_lists_in_one_line(visitor):
    page = visitor.open("masking", text=TEXT, view="Before and after")
    end = box(page.locator(".bw-status"))["top"]
    expect(page.locator("canvas.bw-map")).to_have_count(3)
    holds(page, lambda: max(box(one)["bottom"] for one in page.locator("canvas.bw-map").all()) < end)
    page = visitor.open("attention", text=TEXT)
    names = page.locator(".att-controls .att-label").locator("visible=true")
    holds(page, lambda: names.count() == 4 and len({round(box(one)["top"]) for one in names.all()}) == 1)


def test_a_low_projector_shows_the_film_and_lists_beside_fields_in_one_line(new_visitor):
    visitor = new_visitor(width=1280, height=720)
    page = visitor.open("pretrain", present=1)
    holds(page, lambda: box(page.locator(".film-grid"))["top"] < 0.65 * 720)
    page = visitor.open("compare", text=TEXT, view="Masks and heads", present=1)
    fields = [page.locator(f".st-key-{key} label") for key in ("_compare_example", "behind")]
    holds(page, lambda: abs(box(fields[0])["top"] - box(fields[1])["top"]) < 4)


def test_a_phone_breaks_no_piece_of_a_layers_guesses(new_visitor):
    page = new_visitor(width=390, height=844).open("masking", text=TEXT, view="Layer by layer")
    pieces = page.locator(".bw-lens-guess > span").locator("visible=true")
    holds(page, lambda: pieces.count() == 14 and all(
        one.evaluate("one => one.getClientRects().length") == 1 for one in pieces.all()))


def test_all_guesses_of_the_readers_are_one_line_each(visitor):
    page = visitor.open("compare", text=TEXT)
    guess = page.locator(".cmp-guess").first
    piece, track = guess.locator(".cmp-piece"), guess.locator(".cmp-track")
    holds(page, lambda: box(piece)["top"] < box(track)["top"] and box(track)["bottom"] < box(piece)["bottom"])
    assert box(piece)["right"] <= box(track)["left"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_can_be_chosen_is_seen(new_visitor, scheme):
    page = new_visitor(scheme=scheme).open("class")
    rings = ["[data-testid=stRadioOption] > div > div:first-child", "borderTopColor"]
    becomes(page, lambda: [contrast >= 3 for contrast in page.evaluate(CONTRASTS, rings)], [True] * 3)
    page.get_by_role("radio", name="Present", exact=True).click()
    switch = ["label:has(input[role=switch]) > div:first-of-type", "backgroundColor"]
    becomes(page, lambda: {contrast >= 3 for contrast in page.evaluate(CONTRASTS, switch)}, {True})
    page.get_by_role("radio", name="Lessons", exact=True).click()
    view, lesson = page.locator(".st-key-view"), page.locator(".st-key-lesson")
    holds(page, lambda: box(lesson)["top"] - box(view)["bottom"] < 30)
