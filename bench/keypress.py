"""From a key press to the new picture in Chromium, against an empty Streamlit page in the same run.

Cases: masking/12, attention/64 and stream/12 tokens (Attention, through the
layers) on the shipped model. The time runs from the input event to the first
painted frame after the page's sign that it has drawn; the pause for typing is
set to 0 and reported as `pause_ms` (what people get). Sides alternate;
BENCH_KEYPRESS_REPEATS sets how often (40).
"""

from __future__ import annotations

import itertools
import os
import shutil
import statistics
from collections.abc import Iterator

from playwright.sync_api import Page, sync_playwright

from bench._server import EMPTY_PAGE, serve
from bench.crowd import percentile
from bench.harness import compared

ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync"]
#: Milliseconds of pause that the app itself waits for while one types (ui/settings.py).
PAUSE_MS = 120

#: Type one character and wait until the page says it has drawn for that text, and that is painted.
PRESS = """async (text) => {
  const input = [...document.querySelectorAll('input')].find(i => i.getAttribute('aria-label') === 'Sentence');
  const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set;
  const drawn = () => [...document.querySelectorAll('[data-ready]')]
    .some(e => e.getAttribute('data-text') === text);
  const started = performance.now();
  set.call(input, text);
  input.dispatchEvent(new Event('input', {bubbles: true}));
  const end = started + 30000;
  while (!drawn()) {
    if (performance.now() > end) throw new Error('no picture for ' + text);
    await new Promise(next => setTimeout(next, 1));
  }
  await new Promise(next => requestAnimationFrame(() => requestAnimationFrame(next)));
  return performance.now() - started;
}"""

_WORDS = ("the old dog slept by the [MASK] all day and the cat sat near the stone wall of the garden while people sang "
          "and").split()
_ENDINGS = "house river garden street window table mountain village school market bridge road".split()


def sentences(words: int) -> Iterator[str]:
    """1,728 sentences of that many words, each another."""
    for ending in itertools.product(_ENDINGS, repeat=3):
        yield " ".join([*(_WORDS * 8)[:words - 3], *ending])


def press(page: Page, texts: Iterator[str], times: list[float]) -> None:
    times.append(page.evaluate(PRESS, next(texts)))


def measure(page: Page, empty: Page, words: int, repeats: int) -> dict[str, float]:
    """Alternate the two pages; the first five presses warm up and don't count."""
    ours: list[float] = []
    peer: list[float] = []
    texts = sentences(words)
    for turn in range(repeats + 5):
        sides = [(page, ours), (empty, peer)]
        for where, times in sides if turn % 2 else sides[::-1]:
            where.bring_to_front()
            press(where, texts, times)
    ours, peer = ours[5:], peer[5:]
    figures = compared(ours, peer)
    figures["ratio"] = round(statistics.median(ours) / statistics.median(peer), 3)
    return {**figures, "p95_ms": round(percentile(ours, 0.95), 1), "peer_p95_ms": round(percentile(peer, 0.95), 1),
            "pause_ms": PAUSE_MS}


def open_page(browser, url: str) -> Page:
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.goto(url)
    page.wait_for_selector("[data-ready]", state="attached", timeout=60_000)
    return page


def run() -> dict[str, dict[str, float]]:
    """Both pages; see the module's first lines."""
    repeats = int(os.environ.get("BENCH_KEYPRESS_REPEATS", "40"))
    results = {}
    with serve(BOTH_WAYS_PAUSE="0ms") as app, serve(EMPTY_PAGE) as least, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        empty = open_page(browser, least.address)
        for case, name, words in (("masking/12", "masking", 10), ("attention/64", "attention", 62),
                                  ("stream/12", "attention?view=Through+the+layers", 10)):
            page = open_page(browser, f"{app.address}/{name}")
            results[case] = measure(page, empty, words, repeats)
            page.context.close()
        browser.close()
    return results
