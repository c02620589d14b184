"""One server and WebKitGTK, whose engine is Safari's: what only Chromium is asked about is not known there."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.common.exceptions import NoSuchFrameException
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.webkitgtk.service import Service

from bench._server import serve
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


class Window:
    """A window on the explorer."""

    def __init__(self, driver: webdriver.WebKitGTK, address: str) -> None:
        self.driver, self.address = driver, address

    def ask(self, code: str, *arguments: object) -> Any:
        """What a script returns."""
        return self.driver.execute_script(DEEP + code, *arguments)

    def wait(self, code: str, *arguments: object) -> Any:
        """Ask until the answer is true.

        Raises:
            AssertionError: it is not after PATIENCE.
        """
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(NoSuchFrameException):  # the page went while it was asked
                if answer := self.ask(code, *arguments):
                    return answer
            time.sleep(0.05)
        raise AssertionError(f"never true: {code}")

    def open(self, name: str, **parameters: str) -> None:
        """Go to a page and wait until it is drawn and at rest."""
        self.driver.get("about:blank")
        self.wait("return location.href === 'about:blank'")
        given = {key: value for key, value in parameters.items() if value}
        self.driver.get(f"{self.address}/{name}?{urllib.parse.urlencode(given)}")
        self.wait("return document.readyState === 'complete' && document.querySelector('[data-ready]') !== null")
        self.wait(f"return ({AT_REST})()")

    def find(self, selector: str, text: str = "") -> WebElement:
        """The first element of that kind that says `text`, once there is one."""
        return self.wait("return deep(arguments[0]).find((one) => one.innerText.includes(arguments[1]))",
                         selector, text)

    def sentence(self) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, "input[aria-label=Sentence]")

    def has_no_fault(self) -> None:
        assert self.ask(FAULTS) == []


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    with serve(seconds=240, BOTH_WAYS_TRAINER_NICE="0") as server:
        yield server.address


@pytest.fixture(scope="session")
def driver() -> Iterator[webdriver.WebKitGTK]:
    settings = {**os.environ, "LIBGL_ALWAYS_SOFTWARE": "1"}
    if os.geteuid() == 0:  # its sandbox is for ordinary users
        settings["WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS"] = "1"
    options = webdriver.WebKitGTKOptions()
    (options.binary_location,) = map(str, Path("/usr/lib").glob("*/webkit2gtk-4.1/MiniBrowser"))
    options.add_argument("--automation")
    options.page_load_strategy = "none"  # the driver's own waiting sometimes never ends
    service = Service(executable_path=shutil.which("WebKitWebDriver"), env=settings)
    started = webdriver.WebKitGTK(options=options, service=service)
    yield started
    started.quit()


@pytest.fixture
def window(driver: webdriver.WebKitGTK, address: str) -> Window:
    driver.set_window_size(1440, 940)
    return Window(driver, address)
