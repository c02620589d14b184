"""One server, and windows of the engines that are not Chromium's: what only that is asked about is not known there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench._server import serve
from tests.engines.firefox import firefox
from tests.engines.webkit import webkit
from tests.engines.window import Window

ENGINES = {"webkit": webkit, "firefox": firefox}


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    with serve(seconds=240, BOTH_WAYS_TRAINER_NICE="0") as server:
        yield server.address


@pytest.fixture(scope="session", params=[pytest.param(name, marks=getattr(pytest.mark, name)) for name in ENGINES])
def browser(request) -> Iterator[Window]:
    with ENGINES[request.param]() as window:
        yield window


@pytest.fixture
def window(browser: Window, address: str) -> Window:
    browser.address = address
    browser.size(1440, 940)
    return browser
