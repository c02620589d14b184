"""From a key press to the new picture on the Masking page while the trainer works, against the same page alone.

One visitor trains on the Pre-train page in a window of their own; another types,
no sentence twice, so that the Traces that the server keeps answer none of them.
The pause for typing is set to 0. The bar is a median of 300 ms while training.
"""

from __future__ import annotations

import os
import shutil
import statistics
from collections.abc import Iterator
from typing import Any

from playwright.sync_api import Page, sync_playwright

from bench._server import serve
from bench.crowd import percentile
from bench.keypress import ARGUMENTS, open_page, press, sentences

WORDS, WARM_UP = 10, 5


def run() -> dict[str, dict[str, Any]]:
    """Type alone, then while a run goes on."""
    repeats = int(os.environ.get("BENCH_KEYPRESS_REPEATS", "40"))
    texts = sentences(WORDS)
    with serve(BOTH_WAYS_PAUSE="0ms") as app, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        typing = open_page(browser, f"{app.address}/masking")
        alone = presses(typing, texts, repeats)
        training = open_page(browser, f"{app.address}/pretrain")
        training.get_by_role("button", name="Play", exact=True).click()
        training.wait_for_selector("[data-state=running]", timeout=120_000)
        training.wait_for_selector("[data-frames='3']", timeout=300_000)
        meanwhile = presses(typing, texts, repeats)
        state = training.locator("[data-state]").first.get_attribute("data-state")
        browser.close()
    ours, peer = statistics.median(meanwhile), statistics.median(alone)
    return {"masking/12": {
        "ratio": round(ours / peer, 3), "ours_ms": round(ours, 1), "peer_ms": round(peer, 1),
        "p95_ms": round(percentile(meanwhile, 0.95), 1), "trainer": state, "presses": repeats,
    }}


def presses(page: Page, texts: Iterator[str], repeats: int) -> list[float]:
    """Milliseconds of each key press, the first few left out."""
    page.bring_to_front()
    times: list[float] = []
    for _ in range(repeats + WARM_UP):
        press(page, texts, times)
    return times[WARM_UP:]
