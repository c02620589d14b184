"""Pictures follow the window, made wider or narrower while the page stands open."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.waiting import holds

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

#: Width and height as drawn, over width and height as shown: a canvas that is squeezed shows other proportions.
SQUEEZED = "k => (k.width / k.clientWidth) / (k.height / k.clientHeight)"
TEXT = "The dog slept by the fire."


@pytest.mark.parametrize(("name", "picture", "parameters"), [
    ("embeddings", ".bw-strips", {"text": TEXT}),
    ("masking", ".bw-plot", {"view": "Two sentences"}),
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
