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
