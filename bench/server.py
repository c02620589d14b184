"""Cold start and memory of the server with the shipped models, against an empty Streamlit server.

Cases: cold-start (process start to the first picture on Masking) and memory
after 50 and 100 sessions came and went, with the growth over the last 50 in
`growth_mb`; `ours_mb` and `peer_mb` are resident memory in MiB, read when the
server has had time to give back what waits for the next visitor. memory/100
stays on Masking; in every-page/100 each session opens the next page with the
next of the shipped models, and so loads all of them.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from bench._server import EMPTY_PAGE, ROOT, Server, serve
from bench._visitors import Visitor
from bert_core.load import shipped_names
from ui import shell

SESSIONS = 50
#: Seconds after which memory that nobody took again has gone back (bert_core/memory.py).
SETTLED = 12.0
EVERY = "every page"
PAGES = [name for pages in shell.PAGES.values() for name, _ in pages]
MODELS = shipped_names()


def first_picture(script: Path, page: str) -> float:
    """Milliseconds from starting the process to the first visitor's picture."""
    started = time.perf_counter()
    with serve(script) as server:
        asyncio.run(come_and_go(server, page, 1))
        return (time.perf_counter() - started) * 1e3


async def come_and_go(server: Server, page: str, sessions: int) -> None:
    """Visitors one after another: open, type three sentences, leave; EVERY is each page and model in turn."""
    for number in range(sessions):
        query = {"model": MODELS[number % len(MODELS)]} if page == EVERY else {}
        visitor = Visitor(server.address, PAGES[number % len(PAGES)] if page == EVERY else page, **query)
        await visitor.open()
        if sessions > 1:
            for turn in range(3 if visitor.page not in shell.OWN_SENTENCE else 0):
                await visitor.type(f"visitor {number} saw {turn} dogs in the [MASK]")
        await visitor.close()


def memory(script: Path, page: str) -> tuple[float, float]:
    """Resident MiB after 50 and after 100 sessions."""
    with serve(script) as server:
        read = []
        for _ in range(2):
            asyncio.run(come_and_go(server, page, SESSIONS))
            time.sleep(SETTLED)
            read.append(server.memory())
        return read[0], read[1]


def run() -> dict[str, dict[str, float]]:
    """Both cases."""
    app = ROOT / "app.py"
    first_picture(app, "masking")
    pairs = [(first_picture(app, "masking"), first_picture(EMPTY_PAGE, "")) for _ in range(3)]
    ours, peer = sorted(pairs)[1]
    half, full = memory(app, "masking")
    every_half, every_full = memory(app, EVERY)
    peer_half, peer_full = memory(EMPTY_PAGE, "")
    return {
        "cold-start": {"ratio": round(ours / peer, 2), "ours_ms": round(ours), "peer_ms": round(peer)},
        "memory/100": {"ratio": round(full / peer_full, 2), "ours_mb": round(full), "peer_mb": round(peer_full),
                       "growth_mb": round(full - half, 1), "peer_growth_mb": round(peer_full - peer_half, 1)},
        "every-page/100": {"ratio": round(every_full / peer_full, 2), "ours_mb": round(every_full),
                           "growth_mb": round(every_full - every_half, 1)},
    }
