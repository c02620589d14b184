"""Pictures follow the window: another width, and a screen of another sharpness, while the page stands open."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.waiting import holds

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

#: Width and height as drawn, over width and height as shown: a canvas that is squeezed shows other proportions.
SQUEEZED = "k => (k.width / k.clientWidth) / (k.height / k.clientHeight)"
#: How many pixels of ink the left column of words has in the lowest third of the picture.
WORDS_BELOW = """k => [...new Uint32Array(k.getContext("2d").getImageData(
  0, Math.round(k.height * 2 / 3), Math.round(k.width / 4), Math.floor(k.height / 3)).data.buffer)]
  .filter((pixel) => pixel >>> 24 > 200 && ((pixel >> 16) & 255) < 90).length"""
#: Where an element's text starts, in pixels from the left.
TEXT_STARTS = """e => {
  const range = document.createRange();
  range.selectNodeContents(e);
  return range.getBoundingClientRect().left;
}"""
TEXT = "The dog slept by the fire."


def sharpen(page: Page, ratio: int) -> None:
    """Go on with a screen of this many pixels to a CSS pixel, as a browser's zoom does."""
    page.context.new_cdp_session(page).send("Emulation.setDeviceMetricsOverride", {
        "width": 1440, "height": 900, "deviceScaleFactor": ratio, "mobile": False})


@pytest.mark.parametrize(("name", "picture", "parameters"), [
    ("embeddings", ".bw-strips", {"text": TEXT}),
    ("masking", ".bw-plot", {"view": "Other sentence"}),
    ("attention", ".steps-canvas", {"view": "Step by step", "step": 1, "text": TEXT})])
def test_no_picture_is_squeezed_in_a_narrower_window(visitor, name, picture, parameters):
    page = visitor.open(name, **parameters)
    canvas = page.locator(picture).first
    wide = canvas.evaluate("k => k.width")
    page.set_viewport_size({"width": 390, "height": 900})
    holds(page, lambda: canvas.evaluate("k => k.width") < wide and 0.98 < canvas.evaluate(SQUEEZED) < 1.02)


def test_the_numbers_of_one_head_stand_side_by_side_as_soon_as_there_is_room(new_visitor):
    visitor = new_visitor(width=390)
    page = visitor.open("attention", view="Step by step", step=1, text=TEXT)
    page.set_viewport_size({"width": 1440, "height": 900})
    expect(page.locator(".steps-root.steps-wide")).to_be_visible()


def test_after_a_zoom_the_last_word_stands_beside_its_line(visitor):
    page = visitor.open("attention", text=TEXT, look="lines")
    head = page.locator(".att-head")
    expect(head).to_be_visible()
    assert head.evaluate(WORDS_BELOW) > 0
    sharpen(page, 2)
    holds(page, lambda: head.evaluate("k => k.width / k.clientWidth") > 1.9)
    assert head.evaluate(WORDS_BELOW) > 0


def test_a_phone_on_its_side_has_the_whole_width_for_the_page(new_visitor):
    page = new_visitor(width=844, height=390).open("masking", text=TEXT)
    sidebar, main = page.get_by_test_id("stSidebar"), page.get_by_test_id("stMain")
    holds(page, lambda: main.bounding_box()["width"] == 844)
    page.get_by_test_id("stExpandSidebarButton").click()
    expect(sidebar).to_have_attribute("data-collapsed", "false")
    sidebar.get_by_role("link", name="Tokens").click()
    page.wait_for_url("**/tokens**")
    holds(page, lambda: main.bounding_box()["width"] == 844)
    arrow, title = page.get_by_test_id("stExpandSidebarButton"), page.locator(".bw-eyebrow")
    holds(page, lambda: arrow.bounding_box()["x"] + arrow.bounding_box()["width"] <= title.evaluate(TEXT_STARTS))
    low = new_visitor(width=1440, height=480).open("masking")
    assert low.get_by_test_id("stMain").bounding_box()["width"] < 1440


def test_the_controls_of_one_head_s_steps_stand_in_one_row_on_a_laptop_and_its_sliders_on_a_phone(new_visitor):
    def middles(width: int, *wanted: str) -> set[int]:
        page = new_visitor(width=width).open("attention", view="Step by step", text=TEXT)
        boxes = [page.locator(one).bounding_box() for one in wanted]
        return {round((box["y"] + box["height"] / 2) / 20) for box in boxes}

    sliders = ".steps-layer input", ".steps-head input"
    assert len(middles(390, *sliders)) == 1
    assert len(middles(1440, ".steps-layer", ".steps-head", ".steps-stepper")) == 1


def test_a_phone_that_is_turned_on_its_side_opens_no_sidebar(new_visitor):
    page = new_visitor(width=390, height=844).open("tokens")
    page.set_viewport_size({"width": 844, "height": 390})
    page.wait_for_timeout(1000)
    expect(page.get_by_test_id("stSidebar")).not_to_be_in_viewport()


def test_on_a_tablet_the_status_line_begins_beside_the_sidebar(new_visitor):
    page = new_visitor(width=820, height=1180).open("compare", view="Surprise")
    edge = page.get_by_test_id("stSidebar").bounding_box()["width"]
    assert edge > 200
    assert page.locator(".bw-status > span").evaluate("line => line.getBoundingClientRect().left") >= edge
