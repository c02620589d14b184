"""A window of a browser that is not Chromium: what a person does in it, whatever drives the browser."""

from __future__ import annotations

import time
import urllib.parse
from abc import ABC, abstractmethod
from typing import Any

from tests.browser.waiting import AT_REST

PATIENCE = 60.0
#: deep(selector): elements of the page and of every component.
DEEP = """const deep = (selector, root = document) => [...root.querySelectorAll("*")].flatMap((one) =>
  [...one.matches(selector) ? [one] : [], ...one.shadowRoot ? deep(selector, one.shadowRoot) : []]);
"""
#: What no visitor should see: an error of Streamlit's or of a component's, or a page that sticks out sideways.
FAULTS = """const faults = deep("[data-testid=stException], [data-testid=stAlertContentError]").map((e) => e.innerText);
const broken = document.body.innerText.match(/BidiComponent Error[^]{0,80}/g) ?? [];
const wide = document.documentElement.scrollWidth - innerWidth;
return [...faults, ...broken, ...wide > 0 ? [`${wide} pixels too wide`] : []];"""
SENTENCE = "input[aria-label=Sentence]"


class Window(ABC):
    """A window on the explorer.

    Attributes:
        address: 'http://127.0.0.1:8501'; given by the tests.
        told: errors that the page's scripts left in the console, where its driver tells them.
    """

    def __init__(self) -> None:
        self.address = ""
        self.told: list[str] = []

    @abstractmethod
    def size(self, width: int, height: int) -> None:
        """Make the window so large."""

    @abstractmethod
    def go(self, url: str) -> None:
        """Begin to go to an address."""

    @abstractmethod
    def back(self) -> None:
        """As the browser's button does."""

    @abstractmethod
    def run(self, code: str, *arguments: Any) -> Any:
        """What the body of a function returns; None while the page goes away under it."""

    @abstractmethod
    def click(self, selector: str, text: str = "") -> None:
        """Click the first element of that kind that says `text`, once there is one."""

    @abstractmethod
    def write(self, text: str) -> None:
        """Type a sentence over the one that is there."""

    def ask(self, code: str, *arguments: Any) -> Any:
        """What a script returns that may look into the components."""
        return self.run(DEEP + code, *arguments)

    def wait(self, code: str, *arguments: Any) -> Any:
        """Ask until the answer is true.

        Raises:
            AssertionError: it is not after PATIENCE.
        """
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if answer := self.ask(code, *arguments):
                return answer
            time.sleep(0.05)
        raise AssertionError(f"never true: {code}")

    def open(self, name: str, **parameters: str) -> None:
        """Go to a page and wait until it is drawn and at rest."""
        self.go("about:blank")
        self.wait("return location.href === 'about:blank'")
        self.told.clear()
        given = {key: value for key, value in parameters.items() if value}
        self.go(f"{self.address}/{name}?{urllib.parse.urlencode(given)}")
        self.wait("return document.readyState === 'complete' && document.querySelector('[data-ready]') !== null")
        self.wait(f"return ({AT_REST})()")

    def has_no_fault(self) -> None:
        assert [*self.ask(FAULTS), *self.told] == []
