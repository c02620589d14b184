"""A class at once: visitors as WebSocket clients, each another sentence every 2 s.

visitors/N stay on the Masking page; in every-view/N each opens another view of
the pages that take a sentence, all of them at a server that has just started.
The peer is an empty Streamlit page under the same load in the same run. Each
case's `ratio` is ours over the empty page's at the median; p95, errors and
crossed answers are ours, `opened_s` is the slowest first picture, and
`memory_mb` what the server holds in MiB at the end. BENCH_CROWD_SECONDS
shortens it (120 by default).
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bench._server import EMPTY_PAGE, serve
from bench._visitors import CrossedAnswer, Visitor
from ui import shell

_WORDS = ("the river runs past old stone houses where people cook bread and sing at night while children draw "
          "maps of every road that leads from this small town to the sea").split()
#: Seconds between two sentences of one visitor.
PAUSE = 2.0


def sentence(draw: random.Random) -> str:
    """Twelve words with one gap."""
    words = [draw.choice(_WORDS) for _ in range(12)]
    words[draw.randrange(12)] = "[MASK]"
    return " ".join(words)


def every_view() -> list[tuple[str, dict[str, str]]]:
    """(page, the address's parameters) of each view that reads the visitor's sentence."""
    found = []
    for page in (name for pages in shell.PAGES.values() for name, _ in pages if name not in shell.OWN_SENTENCE):
        views = tomllib.loads((shell.PROSE / f"{page}.toml").read_text(encoding="utf-8")).get("reading")
        found += [(page, {"view": view}) for view in views] if isinstance(views, dict) else [(page, {})]
    return found


@dataclass
class Load:
    """What came of a load: seconds of every first picture and every answer, and what went wrong."""

    opened: list[float] = field(default_factory=list)
    answers: list[float] = field(default_factory=list)
    faults: dict[str, int] = field(default_factory=lambda: {"errors": 0, "crossed": 0})


async def visit(visitor: Visitor, number: int, until: float, load: Load) -> None:
    """One visitor: open, then type until the end, at its own place in the two seconds."""
    draw = random.Random(number)
    try:
        load.opened.append(await visitor.open())
        await asyncio.sleep(draw.random() * PAUSE)
        while time.monotonic() < until:
            taken = await visitor.type(sentence(draw))
            load.answers.append(taken)
            await asyncio.sleep(max(0.0, PAUSE - taken))
    except CrossedAnswer:
        load.faults["crossed"] += 1
    except Exception:
        load.faults["errors"] += 1
    finally:
        await visitor.close()


async def crowd(address: str, places: Sequence[tuple[str, Mapping[str, str]]], seconds: float) -> Load:
    """A visitor at each of `places` (page, parameters), all at once."""
    load, until = Load(), time.monotonic() + seconds
    await asyncio.gather(*(visit(Visitor(address, page, **query), number, until, load)
                           for number, (page, query) in enumerate(places)))
    return load


def percentile(times: list[float], share: float) -> float:
    """The value below which `share` of the times lie."""
    return sorted(times)[min(len(times) - 1, int(share * len(times)))]


def case(places: Sequence[tuple[str, Mapping[str, str]]], seconds: float, warm: bool) -> dict[str, float]:
    """The row of one crowd; `warm`: one visitor was at the first place before."""
    with serve(EMPTY_PAGE) as server:
        peer = asyncio.run(crowd(server.address, [("", {})] * len(places), max(10.0, seconds / 4)))
    with serve() as server:
        if warm:
            asyncio.run(crowd(server.address, places[:1], 5))
        ours = asyncio.run(crowd(server.address, places, seconds))
        memory = server.memory()
    middle, theirs = statistics.median(ours.answers), statistics.median(peer.answers)
    return {
        "ratio": round(middle / theirs, 3), "ours_ms": round(middle * 1e3, 1), "peer_ms": round(theirs * 1e3, 1),
        "p95_ms": round(percentile(ours.answers, 0.95) * 1e3, 1), "opened_s": round(max(ours.opened), 1),
        "answers": len(ours.answers), "memory_mb": round(memory), **ours.faults,
    }


def run() -> dict[str, dict[str, float]]:
    """Cases 40 and 100 visitors on one page, and one at every view."""
    seconds = float(os.environ.get("BENCH_CROWD_SECONDS", "120"))
    results = {f"visitors/{n}": case([("masking", {})] * n, seconds, warm=True) for n in (40, 100)}
    views = every_view()
    return {**results, f"every-view/{len(views)}": case(views, seconds, warm=False)}
