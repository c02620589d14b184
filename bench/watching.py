"""A class that watches a pre-training: what an answer to typing takes beside 30 who look at a run.

A teacher starts a run on the Pre-train page, of the size and length that lasts
longest; somebody types on the Masking page, first beside it alone (the peer),
then with 30 WebSocket clients (bench/_visitors.py) that watch the run as the
page's own timer has them do. The case's `ratio` is the median answer beside
them over that beside the run alone; `looks_per_s` says how often each of them
got the run's picture, `server` how much of a thread the server took for it,
and `kb_per_s` what reached each.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import statistics
import time
import urllib.parse
from pathlib import Path

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from bench._server import Server, serve
from bench._visitors import PATIENCE, Visitor
from bench.crowd import percentile
from bench.room import Follower

WATCHERS, SENTENCES, PAUSE = 30, 25, 0.5
#: The run, and how many seconds of it there are before the first sentence is typed: its curves are to be curves.
RUN, BEFORE = {"size": "4 layers × 128", "length": "3,000 steps"}, 20.0
_RUN_ID = re.compile(r"run=([0-9a-f]{32})")


class Watcher(Follower):
    """Looks at the Pre-train page."""

    bytes = looks = 0
    play, run, ended = "", "", False

    async def _read(self, text: str | None) -> None:
        """Read the first picture to its end, with the pace that it asks for."""
        while not self.looks:
            self._take(await self.socket.recv())

    def note(self, element: Element) -> None:
        """Remember the button that starts a run."""
        if element.HasField("button") and element.button.label == "Play":
            self.play = element.button.id

    def _take(self, raw: bytes) -> None:
        super()._take(raw)
        self.bytes += len(raw)
        message = ForwardMsg.FromString(raw)
        if message.WhichOneof("type") == "delta":
            self.note(message.delta.new_element)
        if message.WhichOneof("type") == "page_info_changed":
            found = _RUN_ID.search(message.page_info_changed.query_string)
            self.run = found.group(1) if found else self.run
        self.ended = self.ended or b'data-state="done"' in raw
        self.looks += message.WhichOneof("type") == "script_finished"

    async def start(self) -> None:
        """Press Play, and read until the address names the run."""
        message = BackMsg()
        state = message.rerun_script
        state.query_string, state.page_script_hash = urllib.parse.urlencode(self.query), self.page_hash
        widget = state.widget_states.widgets.add()
        widget.id, widget.trigger_value = self.play, True
        await self.socket.send(message.SerializeToString())
        while not self.run:
            self._take(await asyncio.wait_for(self.socket.recv(), PATIENCE))


def seconds_of(server: Server) -> float:
    """Processor seconds that the server itself has taken, without its trainer."""
    fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def typing(address: str) -> list[float]:
    """Seconds to each answer of somebody who opens the Masking page and types; who gets none counts PATIENCE."""
    one, answers = Visitor(address, "masking"), []
    with contextlib.suppress(TimeoutError):
        await one.open()
        for n in range(SENTENCES):
            answers.append(await one.type(f"The teacher poured the [MASK] into cup number {n}."))
            await asyncio.sleep(PAUSE)
    await one.close()
    return answers + [PATIENCE] * (SENTENCES - len(answers))


async def lesson(server: Server) -> dict[str, float]:
    """The case's row.

    Raises:
        RuntimeError: the run had ended before the last sentence.
    """
    teacher = Watcher(server.address, "pretrain", **RUN)
    await teacher.open()
    await teacher.start()
    class_ = [asyncio.create_task(teacher.follow())]
    await asyncio.sleep(BEFORE)
    alone = await typing(server.address)
    seats = [Watcher(server.address, "pretrain", run=teacher.run) for _ in range(WATCHERS)]
    await asyncio.gather(*(seat.open() for seat in seats))
    class_ += [asyncio.create_task(seat.follow()) for seat in seats]
    began, work = time.perf_counter(), seconds_of(server)
    looks, read = (sum(getattr(seat, part) for seat in seats) for part in ("looks", "bytes"))
    beside = await typing(server.address)
    seconds = time.perf_counter() - began
    row = {
        "looks_per_s": round((sum(seat.looks for seat in seats) - looks) / seconds / WATCHERS, 3),
        "server": round((seconds_of(server) - work) / seconds, 3),
        "kb_per_s": round((sum(seat.bytes for seat in seats) - read) / seconds / WATCHERS / 1024, 1),
    }
    if teacher.ended:
        raise RuntimeError("the run was over too soon: nobody watched it any more")
    for task in class_:
        task.cancel()
    await asyncio.gather(*class_, return_exceptions=True)
    ours, peer = statistics.median(beside), statistics.median(alone)
    return {"ratio": round(ours / peer, 3), "ours_ms": round(ours * 1e3, 1), "peer_ms": round(peer * 1e3, 1),
            "p95_ms": round(percentile(beside, 0.95) * 1e3, 1), "peer_p95_ms": round(percentile(alone, 0.95) * 1e3, 1),
            **row}


def run() -> dict[str, dict[str, float]]:
    """Thirty watchers."""
    with serve() as server:
        return {f"watchers/{WATCHERS}": asyncio.run(lesson(server))}
