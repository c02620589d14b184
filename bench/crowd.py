"""A class at once: visitors as WebSocket clients, each another sentence every 2 s, on the Masking page.

The peer is an empty Streamlit page under the same load in the same run. Each
case's `ratio` is ours over the empty page's at the median; p95, errors and
crossed answers are ours. BENCH_CROWD_SECONDS shortens it (120 by default).
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import time

from bench._server import EMPTY_PAGE, serve
from bench._visitors import CrossedAnswer, Visitor

_WORDS = ("the river runs past old stone houses where people cook bread and sing at night while children draw "
          "maps of every road that leads from this small town to the sea").split()
#: Seconds between two sentences of one visitor.
PAUSE = 2.0


def sentence(draw: random.Random) -> str:
    """Twelve words with one gap."""
    words = [draw.choice(_WORDS) for _ in range(12)]
    words[draw.randrange(12)] = "[MASK]"
    return " ".join(words)


async def visit(visitor: Visitor, number: int, until: float, times: list[float], faults: dict[str, int]) -> None:
    """One visitor: open, then type until the end, at its own place in the two seconds."""
    draw = random.Random(number)
    try:
        await visitor.open()
        await asyncio.sleep(draw.random() * PAUSE)
        while time.monotonic() < until:
            taken = await visitor.type(sentence(draw))
            times.append(taken)
            await asyncio.sleep(max(0.0, PAUSE - taken))
    except CrossedAnswer:
        faults["crossed"] += 1
    except Exception:
        faults["errors"] += 1
    finally:
        await visitor.close()


async def load(address: str, page: str, visitors: int, seconds: float) -> tuple[list[float], dict[str, int]]:
    """Seconds of every answer, and what went wrong."""
    times: list[float] = []
    faults = {"errors": 0, "crossed": 0}
    until = time.monotonic() + seconds
    await asyncio.gather(*(visit(Visitor(address, page), n, until, times, faults) for n in range(visitors)))
    return times, faults


def percentile(times: list[float], share: float) -> float:
    """The value below which `share` of the times lie."""
    return sorted(times)[min(len(times) - 1, int(share * len(times)))]


def run() -> dict[str, dict[str, float]]:
    """Cases 40 and 100 visitors."""
    seconds = float(os.environ.get("BENCH_CROWD_SECONDS", "120"))
    results: dict[str, dict[str, float]] = {}
    for visitors in (40, 100):
        with serve(EMPTY_PAGE) as server:
            peer, _ = asyncio.run(load(server.address, "", visitors, max(10.0, seconds / 4)))
        with serve() as server:
            asyncio.run(load(server.address, "masking", 1, 5))
            ours, faults = asyncio.run(load(server.address, "masking", visitors, seconds))
        middle, theirs = statistics.median(ours), statistics.median(peer)
        results[f"visitors/{visitors}"] = {
            "ratio": round(middle / theirs, 3), "ours_ms": round(middle * 1e3, 1), "peer_ms": round(theirs * 1e3, 1),
            "p95_ms": round(percentile(ours, 0.95) * 1e3, 1), "answers": len(ours), **faults,
        }
    return results
