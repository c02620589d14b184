"""The stream through the layers in a real browser: read by keyboard and pointer, its token chosen."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

TEXT = "The unbelievably old dog chased my cat."


def test_the_stream_is_read_by_keyboard_and_pointer_and_adds_up(visitor):
    page = visitor.open("attention", text=TEXT, view="Through the layers")
    picture, line = page.locator("canvas.bw-flow"), page.locator("p.bw-readout")
    picture.focus()
    picture.press("ArrowRight")
    expect(line).to_contain_text("After layer 1")
    for _ in range(9):
        picture.press("ArrowRight")
    expect(line).to_contain_text("After layer 6")
    expect(line).to_contain_text("100 % of all")
    expect(line).to_contain_text("The head would answer")
    box = picture.bounding_box()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.2 * box["height"])
    expect(line).not_to_contain_text("After layer 6")
    page.get_by_text("The numbers as a table").click()
    rows = page.locator(".bw-numbers tbody tr")
    expect(rows).to_have_count(page.get_by_role("option").count())
    cells = [[float(cell) for cell in row.locator("td").all_inner_texts()] for row in rows.all()]
    assert [round(sum(column), 2) for column in zip(*cells, strict=True)] == [1.0] * 7


def test_another_token_of_the_stream_is_chosen_and_stays_chosen_when_it_is_clicked_again(visitor):
    page = visitor.open("attention", text=TEXT, view="Through the layers")
    first = page.get_by_role("option").nth(2)
    for _ in range(2):
        run = visitor.run_number()
        first.click()
        visitor.after(run)
        visitor.in_address("token=2")
        expect(first).to_have_attribute("aria-selected", "true")


def leftmost(page) -> str:
    """What the line says of the first column that is drawn."""
    picture = page.locator("canvas.bw-flow")
    picture.focus()
    for _ in range(8):
        picture.press("ArrowLeft")
    return page.locator("p.bw-readout").inner_text().split(",")[0]


def test_who_wants_no_motion_builds_the_stream_up_layer_by_layer(visitor):
    visitor.page.emulate_media(reduced_motion="reduce")
    page = visitor.open("attention", text=TEXT, view="Through the layers")
    assert leftmost(page) == "At the input"
    button = page.get_by_role("button", name="Next layer")
    for column in ("After layer 6", "After layer 5", "After layer 4"):
        button.click()
        assert leftmost(page) == column
    for _ in range(4):
        button.click()
    assert leftmost(page) == "At the input"


def test_the_stream_builds_itself_up_and_can_be_held(visitor):
    visitor.page.clock.install()
    page = visitor.open("attention", text=TEXT, view="Through the layers")
    button = page.locator(".bw-flow-play")
    button.click()
    expect(button).to_contain_text("Pause")
    button.click()
    expect(button).to_contain_text("Build up")
    held = leftmost(page)
    assert held.startswith("After layer")
    page.clock.run_for(1500)
    assert leftmost(page) == held
    button.click()
    expect(button).to_contain_text("Pause")
    page.clock.run_for(10_000)
    expect(button).to_contain_text("Build up")
    assert leftmost(page) == "At the input"
