"""The focus stays where it was when a picture is drawn again."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from playwright.sync_api import Browser

from tests.browser.alone import Alone
from ui import components

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]


@pytest.fixture
def alone(browser: Browser) -> Iterator[Callable[[str], Alone]]:
    """alone(name): a component by itself."""
    opened: list[Alone] = []

    def make(name: str) -> Alone:
        opened.append(Alone(browser, name))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


def steps(layer: int) -> bytes:
    size, tokens = 2, ["[CLS]", "dog", "[SEP]"]
    rows = {name: np.full(3, 0.3, np.float32) for name in ("dots", "scores", "weights", "norms")}
    wide = {name: np.ones(size, np.float32) for name in ("query", "context", "contribution", "projected", "residual",
                                                         "output")}
    both = {name: np.ones((3, size), np.float32) for name in ("keys", "values")}
    return components.pack({"tokens": tokens, "chips": ["special", "word", "special"], "layer": layer, "head": 0,
                            "query": 1, "step": 0, "layers": 6, "heads": 3},
                           {**rows, **wide, **both, "blocked": np.zeros(3, np.uint8)})


def test_the_key_that_was_pressed_keeps_the_focus(alone):
    one = alone("attention_steps")
    one.draw(steps(0))
    one.page.locator(".steps-table button", has_text="dog").press("Enter")
    assert one.page.evaluate("window.parent_.activeElement.textContent") == "dog"
    one.draw(steps(1))
    assert one.page.evaluate("window.parent_.activeElement.textContent") == "dog"
