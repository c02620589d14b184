"""The numbers in and beside a picture, read again until they say what they should."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from playwright.sync_api import Page

from tests.browser.waiting import becomes

CELLS = "table => [...table.rows].map(row => [...row.cells].map(cell => cell.textContent))"


def shown(page: Page, box: str) -> list[list[str | float]]:
    """The first table in `box`, the names of its columns first; after a row's first cell what is a number is one."""
    return [[name, *map(_cell, cells)] for name, *cells in page.locator(f"{box} table").first.evaluate(CELLS)]


def table_says(page: Page, columns: Sequence[str], rows: Sequence[Sequence[str | float]], box: str = "body") -> None:
    """Open the first table in `box`, and wait until it has exactly these rows, to the digits that it shows."""
    page.locator(f"{box} .bw-numbers summary").first.evaluate("node => { node.parentElement.open = true; }")
    becomes(page, lambda: shown(page, box), [list(columns), *([*map(_about, row)] for row in rows)])


def bar_shows(page: Page, label: str, value: float, side: int = 0, within: float = 1e-4) -> None:
    """Wait until the bar of a label shows this number; `side` counts where there are several pictures."""
    bar = page.locator(f'.bw-bar[data-label="{label}"]').nth(side)
    becomes(page, lambda: float(bar.get_attribute("data-value")), pytest.approx(value, abs=within))


def _cell(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


def _about(value: str | float) -> object:
    return value if isinstance(value, str) else pytest.approx(float(value), rel=1e-3, abs=1e-4)
