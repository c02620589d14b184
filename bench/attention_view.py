"""Our attention view against stock bertviz 1.4.1: bytes to the browser and time until it is painted.

12 layers x 12 heads at base size. One view of ours shows what bertviz needs two
for (every head, and one layer large), so `both` compares it with head view and
model view together. The three take turns, the order rotated, after a round that
isn't counted; a view that takes longer than half a minute is drawn once a length
(`peer_repeats`). Time is making the page from the Trace in Python plus the
browser's time from navigation to the first frame painted with it; bertviz's
scripts come from a local server and each view has 120 s at most (then the peer
is a lower bound and `capped` 1). `hover` is the time that one pointer move takes
until its picture is drawn.
"""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

from playwright.sync_api import Browser, Error, sync_playwright

from bench import _base_model
from bench._attention_pages import Site, our_page, peer_page, serving
from bench.harness import turns
from bench.keypress import ARGUMENTS
from bert_core.trace import Trace, TraceRequest, run_batch

LENGTHS, OURS_ONLY = (16, 32, 64, 128), (256, 512)
CAP_MS = 120_000
#: A view that took longer is not drawn again at that length: 128 tokens are 2.4 million lines to bertviz's model view.
SLOW_MS = 30_000
LAYER = 6

#: Move over the open head `count` times; gives back the milliseconds of each.
HOVER = """count => {
  const view = document.getElementById('view').shadowRoot.querySelector('.att-root').view;
  const times = [];
  for (let i = 0; i < count; i++) {
    const element = view.root.querySelector('canvas.att-head'), box = element.getBoundingClientRect();
    const move = new PointerEvent('pointermove', { clientX: box.left + box.width * (0.2 + 0.6 * ((i * 7) % 10) / 10),
      clientY: box.top + 40 + (box.height - 60) * ((i * 37) % count) / count });
    const start = performance.now();
    element.dispatchEvent(move);
    element.getContext('2d').getImageData(0, 0, 1, 1);
    times.push(performance.now() - start);
  }
  return times;
}"""

DRAW_AS = """kind => {
  const view = document.getElementById('view').shadowRoot.querySelector('.att-root').view;
  view.look.draw = kind;
  view.draw();
}"""


class Drawn(NamedTuple):
    """One view drawn once: milliseconds from Trace to painted, bytes to the browser, whether the cap was hit."""

    ms: float
    bytes: int
    capped: bool


def run() -> dict[str, dict[str, float]]:
    """Cases `both/16` to `both/128`, `head/...` and `model/...`, `ours/256`, `ours/512`, `hover/128`."""
    repeats = int(os.environ.get("BENCH_ATTENTION_REPEATS", "3"))
    results: dict[str, dict[str, float]] = {}
    with serving() as site, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        _in_turns(browser, site, base_trace(LENGTHS[0]), 1)  # the browser's first windows
        for length in LENGTHS:
            results |= _against(length, **_in_turns(browser, site, base_trace(length), repeats))
        for length in OURS_ONLY:
            trace = base_trace(length)
            ours = [_timed(browser, site, lambda t=trace: our_page(site, t, LAYER)) for _ in range(repeats)]
            results[f"ours/{length}"] = _alone(ours)
        results["hover/128"] = _hover(browser, site, base_trace(128))
        browser.close()
    return results


def base_trace(length: int) -> Trace:
    """The attention of a base-size model with random weights for a text of that many tokens."""
    request = TraceRequest(_base_model.text(length, 1), parts=("attention_probs",))
    return run_batch(_base_model.ours(), [request])[0]


def _in_turns(browser: Browser, site: Site, trace: Trace, repeats: int) -> dict[str, list[Drawn]]:
    """Our view and bertviz's two, each drawn once a round, or once in all if that was slow."""
    sides = {"ours": lambda: our_page(site, trace, LAYER),
             "head": lambda: peer_page(site, trace, "head"), "model": lambda: peer_page(site, trace, "model")}
    found: dict[str, list[Drawn]] = {name: [] for name in sides}
    for _, name in turns(list(sides), repeats):
        if not any(drawn.ms > SLOW_MS for drawn in found[name]):
            found[name].append(_timed(browser, site, sides[name]))
    return found


def _timed(browser: Browser, site: Site, make: Callable[[], str]) -> Drawn:
    """One view in a window of its own."""
    start = time.perf_counter()
    path = make()
    building = 1e3 * (time.perf_counter() - start)
    before, capped = site.sent, False
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    try:
        page.goto(site.address + path, timeout=CAP_MS, wait_until="commit")
        page.wait_for_function("window.painted !== undefined", timeout=CAP_MS)
        painted = page.evaluate("window.painted")
    except Error:  # the time ran out, or the tab did
        painted, capped = float(CAP_MS), True
    context.close()
    return Drawn(building + painted, site.sent - before, capped)


def _middle(views: list[Drawn]) -> Drawn:
    return Drawn(statistics.median(drawn.ms for drawn in views), views[-1].bytes, any(drawn.capped for drawn in views))


def _alone(ours: list[Drawn]) -> dict[str, float]:
    mine = _middle(ours)
    return {"ours_ms": round(mine.ms, 1), "ours_bytes": mine.bytes}


def _against(length: int, ours: list[Drawn], head: list[Drawn], model: list[Drawn]) -> dict[str, dict[str, float]]:
    """Three cases of a length: one view of ours against each of bertviz's, and both of them together."""
    mine = _middle(ours)
    results = {}
    for name, views in (("head", [head]), ("model", [model]), ("both", [head, model])):
        peers = [_middle(view) for view in views]
        ms, size = sum(peer.ms for peer in peers), sum(peer.bytes for peer in peers)
        results[f"{name}/{length}"] = {
            "ratio": round(mine.ms / ms, 4), "ours_ms": round(mine.ms, 1), "peer_ms": round(ms, 1),
            "bytes_ratio": round(mine.bytes / size, 4), "ours_bytes": mine.bytes, "peer_bytes": size,
            "capped": int(any(peer.capped for peer in peers)), "repeats": len(ours),
            "peer_repeats": min(map(len, views)),
        }
    return results


def _hover(browser: Browser, site: Site, trace: Trace) -> dict[str, float]:
    """Median and 95th percentile of a pointer move's milliseconds, drawn as a map and as lines."""
    figures: dict[str, float] = {}
    for drawn in ("map", "lines"):
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(f"{site.address}{our_page(site, trace, LAYER)}")
        page.wait_for_function("window.painted !== undefined")
        page.evaluate(DRAW_AS, drawn)
        times = sorted(page.evaluate(HOVER, 200))
        figures |= {f"{drawn}_ms": round(statistics.median(times), 2), f"{drawn}_p95_ms": round(times[190], 2)}
        page.close()
    return figures
