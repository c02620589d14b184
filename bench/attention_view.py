"""Our attention view against stock bertviz 1.4.1: bytes to the browser and time until it is painted.

12 layers x 12 heads at base size. One view of ours shows what bertviz needs two
for (every head, and one layer large), so `both` compares it with head view and
model view together. Time is making the page from the Trace in Python plus the
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

from playwright.sync_api import Browser, Error, sync_playwright

from bench import _base_model
from bench._attention_pages import Site, our_page, peer_page, serving
from bench.keypress import ARGUMENTS
from bert_core.trace import Trace, TraceRequest, run_batch

LENGTHS, OURS_ONLY = (16, 32, 64, 128), (256, 512)
CAP_MS = 120_000
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


def run() -> dict[str, dict[str, float]]:
    """Cases `both/16` to `both/128`, `head/...` and `model/...`, `ours/256`, `ours/512`, `hover/128`."""
    repeats = int(os.environ.get("BENCH_ATTENTION_REPEATS", "3"))
    results: dict[str, dict[str, float]] = {}
    with serving() as site, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        for length in (*LENGTHS, *OURS_ONLY):
            trace = base_trace(length)
            ours = [_timed(browser, site, lambda t=trace: our_page(site, t, LAYER)) for _ in range(repeats)]
            if length in OURS_ONLY:
                results[f"ours/{length}"] = _alone(ours)
                continue
            head, model = (_timed(browser, site, lambda v=v, t=trace: peer_page(site, t, v)) for v in ("head", "model"))
            results |= _against(length, ours, head, model)
        results["hover/128"] = _hover(browser, site, base_trace(128))
        browser.close()
    return results


def base_trace(length: int) -> Trace:
    """The attention of a base-size model with random weights for a text of that many tokens."""
    request = TraceRequest(_base_model.text(length, 1), parts=("attention_probs",))
    return run_batch(_base_model.ours(), [request])[0]


def _timed(browser: Browser, site: Site, make: Callable[[], str]) -> tuple[float, int, bool]:
    """(milliseconds from Trace to painted, bytes to the browser, whether the cap was hit)."""
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
    return building + painted, site.sent - before, capped


def _alone(ours: list[tuple[float, int, bool]]) -> dict[str, float]:
    return {"ours_ms": round(statistics.median(t for t, *_ in ours), 1), "ours_bytes": ours[-1][1]}


def _against(length: int, ours: list, head: tuple, model: tuple) -> dict[str, dict[str, float]]:
    """Three cases of a length: one view of ours against each of bertviz's, and both of them together."""
    mine = _alone(ours)
    peers = {"head": head, "model": model,
             "both": (head[0] + model[0], head[1] + model[1], head[2] or model[2])}
    return {f"{name}/{length}": {
        "ratio": round(mine["ours_ms"] / ms, 4), "ours_ms": mine["ours_ms"], "peer_ms": round(ms, 1),
        "bytes_ratio": round(mine["ours_bytes"] / size, 4), "ours_bytes": mine["ours_bytes"], "peer_bytes": size,
        "capped": int(capped), "repeats": len(ours),
    } for name, (ms, size, capped) in peers.items()}


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
