"""From a key press to the picture at rest in every view of every page, against an empty Streamlit page in the same run.

Case every-view/12 is over all of them: `ours_ms` the median of their medians,
`slowest_ms` that of the slowest, which `slowest` names; PAGE/VIEW is one. The
time runs from the input event until the page says that it has drawn for the
text, nothing on it is stale and its charts stand, two frames later; the pause
for typing is 0 (see `bench keypress`). BENCH_EVERY_VIEW_REPEATS sets the presses
that count (3, after one that warms up).
"""

from __future__ import annotations

import os
import shutil
import statistics
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Page, sync_playwright

from bench._server import EMPTY_PAGE, serve
from bench.harness import compared
from bench.keypress import ARGUMENTS, open_page, press, sentences
from ui import shell

WORDS = 10
PAGES = [name for pages in shell.PAGES.values() for name, _ in pages]
#: Names on the switch of an open page's views.
VIEWS = "[...document.querySelectorAll('.st-key-view button')].map(one => one.innerText.trim()).filter(one => one)"
#: Milliseconds from now until nothing runs or is stale and every chart stands, and that is painted.
REST = """async () => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const still = () => document.querySelector('[data-testid=stApp]').dataset.testScriptState === 'notRunning'
    && !all('[data-stale=true], [data-testid=stSkeleton]').length
    && all('[data-testid=stPlotlyChart]').every(chart => chart.querySelector('.main-svg'));
  const started = performance.now();
  while (!still()) {
    if (performance.now() > started + 60000) throw new Error('the page did not come to rest');
    await new Promise(next => setTimeout(next, 1));
  }
  const drawn = performance.now();
  await new Promise(next => requestAnimationFrame(() => requestAnimationFrame(next)));
  return drawn > started + 1 ? performance.now() - started : 0;
}"""


def press_to_rest(page: Page, texts: Iterator[str], times: list[float]) -> None:
    """Type once; what a page that said it was drawn still had to do counts too."""
    press(page, texts, times)
    times[-1] += page.evaluate(REST)


def views_of(page: Page, address: str, name: str) -> list[str]:
    """The views of a page, '' for the only one of a page without a switch."""
    page.goto(f"{address}/{name}")
    page.wait_for_selector("[data-ready]", state="attached", timeout=60_000)
    return page.evaluate(VIEWS) or [""]


def measure(page: Page, empty: Page, texts: Iterator[str], repeats: int) -> tuple[list[float], list[float]]:
    """Milliseconds of an open view and of the empty page, by turns; the first of each warms up."""
    ours: list[float] = []
    peer: list[float] = []
    for turn in range(repeats + 1):
        sides = [(page, ours), (empty, peer)]
        for where, times in sides if turn % 2 else sides[::-1]:
            where.bring_to_front()
            (press_to_rest if where is page else press)(where, texts, times)
    return ours[1:], peer[1:]


def run() -> dict[str, dict[str, Any]]:
    """All views together, and each; see the module's first lines."""
    repeats = int(os.environ.get("BENCH_EVERY_VIEW_REPEATS", "3"))
    texts, found = sentences(WORDS), {}
    with serve(BOTH_WAYS_PAUSE="0ms") as app, serve(EMPTY_PAGE) as least, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        empty, page = open_page(browser, least.address), open_page(browser, app.address)
        for name in PAGES:
            for view in views_of(page, app.address, name):
                page.goto(f"{app.address}/{name}?{urlencode({'view': view} if view else {})}")
                page.wait_for_selector("[data-ready]", state="attached", timeout=60_000)
                page.evaluate(REST)
                found[f"{name}/{view}".rstrip("/")] = measure(page, empty, texts, repeats)
        browser.close()
    return {f"every-view/{WORDS + 2}": over_all(found), **{case: compared(*times) for case, times in found.items()}}


def over_all(found: dict[str, tuple[list[float], list[float]]]) -> dict[str, Any]:
    """One case of all views.

    Args:
        found: view -> milliseconds of its presses, and of the empty page's between them.
    """
    medians = {case: statistics.median(ours) for case, (ours, _) in found.items()}
    peer = statistics.median(time for _, times in found.values() for time in times)
    middle, slowest = statistics.median(medians.values()), max(medians, key=medians.__getitem__)
    return {"ratio": round(middle / peer, 3), "ours_ms": round(middle, 1), "peer_ms": round(peer, 1),
            "slowest_ms": round(medians[slowest], 1), "slowest": slowest, "views": len(found)}
