"""A finger on a picture: a tap reads what a pointer reads, a scroll changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from playwright.sync_api import Browser, expect

from bert_core import TraceRequest, load_engine
from bert_core.figures.attention import heads_payload
from tests.browser.alone import Alone
from tests.cases import quick_are
from ui import components

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]


@pytest.fixture
def phone(browser: Browser) -> Iterator[Callable[[str], Alone]]:
    """phone(name): a component by itself on a phone."""
    opened: list[Alone] = []

    def make(name: str) -> Alone:
        opened.append(Alone(browser, name, viewport={"width": 390, "height": 500}, has_touch=True))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


def drag_up(alone: Alone, x: float, y: float) -> None:
    """Scroll the page with a finger put down there."""
    session = alone.page.context.new_cdp_session(alone.page)
    session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    for step in range(1, 11):
        session.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [{"x": x, "y": y - 10 * step}]})
        alone.page.wait_for_timeout(16)
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


@pytest.mark.parametrize("mode", ["act", "look"])
def test_a_scroll_that_starts_on_the_grid_switches_and_opens_nothing(phone, mode):
    trace = load_engine("twin-bert").run(TraceRequest("The dog slept.", parts=("attention_probs",)))
    alone = phone("attention")
    alone.draw(components.pack(*heads_payload(trace, 1, 4, mode=mode)))
    root, grid = alone.page.locator(".att-root"), alone.page.locator(".att-grid")
    box = grid.bounding_box()
    drag_up(alone, box["x"] + box["width"] / 4, box["y"] + box["height"] - 10)
    alone.page.wait_for_function("() => scrollY > 20")
    alone.page.wait_for_timeout(600)
    assert alone.sent() == []
    assert root.evaluate("root => [root.view.layer, root.view.head, root.view.off.size]") == [1, 4, 0]


def scatter() -> bytes:
    arrays = {"first": np.float32([-1, -5]), "second": np.float32([-1, -1]), "counts": np.zeros((4, 4), np.uint32)}
    return components.pack({"tokens": ["dog", "cat"], "up": [], "down": [], "low": -6, "first_name": "one",
                            "second_name": "other"}, arrays)


def test_a_tap_on_the_scatter_reads_that_piece(phone):
    alone = phone("vocabulary")
    alone.draw(scatter())
    readout = alone.page.locator(".bw-readout")
    expect(readout).to_contain_text("dog")
    alone.page.locator(".bw-plot").tap(position={"x": 120, "y": 60})
    expect(readout).to_contain_text("cat")


def test_the_piece_that_is_read_out_is_the_one_that_is_marked(phone):
    alone = phone("vocabulary")
    alone.draw(scatter())
    plot = alone.page.locator(".bw-plot")
    before = plot.evaluate("k => k.toDataURL()")
    plot.hover(position={"x": 120, "y": 60})
    expect(alone.page.locator(".bw-readout")).to_contain_text("cat")
    assert plot.evaluate("k => k.toDataURL()") != before


def test_a_tap_on_a_map_reads_that_row(phone):
    reader = {"reader": "both", "title": "BERT", "model": "m", "place": 0, "row": 0, "drawn": [0, 1], "layer": 0,
              "head": 0, "what": "layer 1, head 1", "accent": "both", "tokens": ["dog", "cat"], "in_table": True}
    alone = phone("compare_maps")
    alone.draw(components.pack({"readers": [reader], "hint": "", "caption": ""}, {
        "weights0": np.float32([[0.5, 0.5], [0.1, 0.9]]), "allowed0": np.ones((2, 2), np.uint8),
        "right0": np.zeros((1, 2), np.float32)}))
    said = alone.page.locator(".cmp-said")
    expect(said).to_contain_text("“dog” (0)")
    canvas = alone.page.locator(".cmp-map")
    box = canvas.bounding_box()
    canvas.tap(position={"x": box["width"] / 2, "y": box["height"] - 20})
    expect(said).to_contain_text("“cat” (1)")


SMALL = """() => {
  const all = (root) => [...root.querySelectorAll("*")].flatMap((e) => [e, ...e.shadowRoot ? all(e.shadowRoot) : []]);
  const fields = all(document).filter((e) => e.matches("input:not([type=range]), textarea, select") && e.offsetWidth);
  return [fields.length, fields.filter((e) => parseFloat(getComputedStyle(e).fontSize) < 16).map((e) => e.outerHTML)];
}"""


@pytest.mark.parametrize(("name", "view"), quick_are(1, [
    ("masking", "80/10/10"), ("class", "Room"), ("pretrain", None), ("attention", "All heads"),
    ("meaning", "Sentences"),
]))
def test_an_iphone_does_not_zoom_into_a_field(new_visitor, name, view):
    page = new_visitor(width=390).open(name, **({"view": view} if view else {}))
    count, small = page.evaluate(SMALL)
    assert count >= 3
    assert small == []
