"""A finger on a picture: when it scrolls the page it changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser

from bert_core import TraceRequest, load_engine
from bert_core.figures.attention import heads_payload
from tests.browser.alone import Alone
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
