"""A training run on its page: its state, its id, and the way away from it and back."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page

from tests.browser.conftest import Visitor
from tests.browser.waiting import becomes

#: Milliseconds for the trainer to start and to train on a busy machine.
TRAINER = 600_000


def wait_state(page: Page, *states: str) -> None:
    """Until the run on the page is in one of these states."""
    page.wait_for_selector(", ".join(f"[data-state={state}]" for state in states), timeout=TRAINER)


def run_line(page: Page) -> Locator:
    """The line that says where the run is; what is heard of it is another one."""
    return page.locator(".bw-result[data-state]")


def run_id(page: Page, parameter: str) -> str:
    """The run that the address names."""
    page.wait_for_url(re.compile(rf"[?&]{parameter}=[0-9a-f]{{32}}"))
    return re.search(rf"{parameter}=([0-9a-f]{{32}})", page.url)[1]


def leave_and_return(visitor: Visitor, link: str, parameter: str, states: tuple[str, ...]) -> Page:
    """Go to another page, reload there, come back, then open a tab without the run's id; all find the same run.

    Returns:
        The new tab.
    """
    page = visitor.page
    first, path = run_id(page, parameter), re.search(r"//[^/]+(/\w+)", page.url)[1]
    page.get_by_role("link", name="Tokens").click()
    page.wait_for_url(re.compile("/tokens"))
    visitor.wait_ready()
    page.reload()
    visitor.wait_ready()
    page.get_by_role("link", name=link).click()
    tab = page.context.new_page()
    tab.goto(visitor.address + path)
    for one in (page, tab):
        wait_state(one, *states)
        becomes(one, lambda one=one: run_id(one, parameter), first)
    return tab
