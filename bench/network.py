"""A first visit and a key press over a slow network, against an empty Streamlit page over the same.

BENCH_NETWORK_KBIT bits (in thousands, 2000) pass a second and take
BENCH_NETWORK_DELAY ms (50) each way. Cases: first-visit of Masking and of
Attention with nothing kept from before, until the first picture is painted;
press/12 and press/64 tokens as in `keypress`. `kib` is what came from the server
meanwhile (`peer_kib` for the empty page). BENCH_NETWORK_REPEATS: how often (3,
presses four times as often).
"""

from __future__ import annotations

import os
import shutil
import statistics
import time

from playwright.sync_api import Browser, Page, sync_playwright

from bench._server import EMPTY_PAGE, serve
from bench._slow_network import Relay, slow
from bench.harness import compared, turns
from bench.keypress import ARGUMENTS, press, sentences

PAINTED = "() => new Promise(next => requestAnimationFrame(() => requestAnimationFrame(next)))"


def visit(browser: Browser, relay: Relay, path: str) -> tuple[Page, float, float]:
    """A window that has kept nothing opens a page: the page, milliseconds to its picture, KiB that came."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    start, before = time.perf_counter(), relay.down
    page.goto(f"{relay.address}/{path}", timeout=300_000)
    page.wait_for_selector("[data-ready]", state="attached", timeout=300_000)
    page.evaluate(PAINTED)
    taken = (time.perf_counter() - start) * 1e3
    page.wait_for_load_state("networkidle", timeout=300_000)  # what it still fetches belongs to the visit
    return page, taken, (relay.down - before) / 1024


def first_visits(browser: Browser, sides: dict[str, tuple[Relay, str]], repeats: int) -> dict[str, float]:
    """Both sides in turn; the first turn warms the servers up and doesn't count."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    sizes: dict[str, list[float]] = {name: [] for name in sides}
    for turn, name in turns(list(sides), repeats + 1):
        page, taken, kib = visit(browser, *sides[name])
        page.context.close()
        if turn:
            times[name].append(taken)
            sizes[name].append(kib)
    return {**compared(times["ours"], times["peer"]), "kib": round(statistics.median(sizes["ours"])),
            "peer_kib": round(statistics.median(sizes["peer"]))}


def presses(browser: Browser, sides: dict[str, tuple[Relay, str]], words: int, repeats: int) -> dict[str, float]:
    """Key presses on both in turn; the first five don't count."""
    pages = {name: visit(browser, *side)[0] for name, side in sides.items()}
    times: dict[str, list[float]] = {name: [] for name in sides}
    sizes: dict[str, list[float]] = {name: [] for name in sides}
    texts = sentences(words)
    for turn, name in turns(list(sides), repeats + 5):
        relay, before, taken = sides[name][0], sides[name][0].down, []
        pages[name].bring_to_front()
        press(pages[name], texts, taken)
        if turn >= 5:
            times[name] += taken
            sizes[name].append((relay.down - before) / 1024)
    for page in pages.values():
        page.context.close()
    return {**compared(times["ours"], times["peer"]), "kib": round(statistics.median(sizes["ours"]), 1),
            "peer_kib": round(statistics.median(sizes["peer"]), 1)}


def run() -> dict[str, dict[str, float]]:
    """All cases; see the module's first lines."""
    given = os.environ.get
    repeats = int(given("BENCH_NETWORK_REPEATS", "3"))
    network = {"bits_a_second": float(given("BENCH_NETWORK_KBIT", "2000")) * 1e3,
               "delay": float(given("BENCH_NETWORK_DELAY", "50")) / 1e3}
    results = {}
    with (serve(BOTH_WAYS_PAUSE="0ms") as app, serve(EMPTY_PAGE) as least, slow(app.address, **network) as ours,
          slow(least.address, **network) as peer, sync_playwright() as playwright):
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        for path in ("masking", "attention"):
            results[f"first-visit/{path}"] = first_visits(browser, {"ours": (ours, path), "peer": (peer, "")}, repeats)
        for case, path, words in (("press/12", "masking", 10), ("press/64", "attention", 62)):
            results[case] = presses(browser, {"ours": (ours, path), "peer": (peer, "")}, words, 4 * repeats)
        browser.close()
    return results
