"""Waiting for a page to hold still, and reading again until what is there is what should be."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page
from playwright.sync_api import TimeoutError as Late

#: Milliseconds that a page may take on a busy two-core machine.
PATIENCE = 120_000
#: Milliseconds in which a page that keeps running by itself (a room, a training run) need not come to rest.
REST = 20_000
#: Nothing runs, nothing is stale or still being fetched, every component and chart has drawn, for three frames on
#: end; "store" only keeps things and draws nothing.
AT_REST = """() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const still = document.querySelector('[data-testid=stApp]')?.getAttribute('data-test-script-state') === 'notRunning'
    && all('[data-stale=true], [data-testid=stSkeleton]').length === 0
    && all('[data-testid^=stBidiComponent]').every((one) => one.closest('[class*=st-key-c_store]')
                                                            || (one.shadowRoot ?? one).childElementCount > 1)
    && all('[data-testid=stPlotlyChart]').every((one) => one.querySelector('.main-svg'));
  window.framesAtRest = still ? (window.framesAtRest ?? 0) + 1 : 0;
  return window.framesAtRest > 2;
}"""


def settle(page: Page) -> None:
    """Wait until the page is at rest; one that never rests is let go after REST."""
    page.evaluate("window.framesAtRest = 0")
    try:
        page.wait_for_function(AT_REST, timeout=REST)
    except Late:
        return


def becomes(page: Page, read: Callable[[], Any], expected: Any) -> None:
    """Read again until it equals `expected`; what is read may be missing or half drawn meanwhile.

    Raises:
        AssertionError: if it is still something else after PATIENCE.
    """
    end = time.monotonic() + PATIENCE / 1000
    while time.monotonic() < end:
        try:
            if read() == expected:
                return
        except (IndexError, KeyError, TypeError, ValueError, AttributeError):
            pass  # not all of it is there yet
        page.wait_for_timeout(50)
    assert read() == expected


def holds(page: Page, check: Callable[[], Any]) -> None:
    """Check again until it is true.

    Raises:
        AssertionError: if it is not after PATIENCE.
    """
    becomes(page, lambda: bool(check()), True)
