"""A room: how much later than the teacher's own picture the class has it, for 1 and 60 followers.

Teacher and followers are WebSocket clients (bench/_visitors.py) on the Masking
page. A case's `ratio` is the median time from the teacher's key to a follower's
picture over the median time to the teacher's own; `p95_ms` and `late` (later
than a second) are the followers'. BENCH_ROOM_SENTENCES sets how often (10).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import statistics
import time

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from bench._server import serve
from bench._visitors import PATIENCE, Visitor, ready_text
from bench.crowd import percentile

_CODE = re.compile(rb'class="bw-code">([A-Z0-9]{5})<')
FOLLOWERS = (1, 60)
#: Seconds between two sentences of the teacher.
PAUSE = 1.5


class Teacher(Visitor):
    """Opens a room, then types on the Masking page."""

    open_button = ""

    async def open_room(self) -> str:
        """Open the Class page and press its button; gives the room's code."""
        await self.open()
        message = BackMsg()
        state = message.rerun_script
        state.query_string, state.page_script_hash = "view=Room", self.page_hash
        widget = state.widget_states.widgets.add()
        widget.id, widget.trigger_value = self.open_button, True
        await self.socket.send(message.SerializeToString())
        async for raw in self.socket:
            found = _CODE.search(raw)
            if found is not None:
                return found.group(1).decode()
        raise RuntimeError("the server closed before it gave a room")

    def note(self, element: Element) -> None:
        """As a visitor, and remember the button that opens a room."""
        super().note(element)
        if element.HasField("button") and element.button.label == "Open a room":
            self.open_button = element.button.id

    async def turn_to(self, page: str) -> None:
        """Go to another page in the same session."""
        self.page, self.page_hash, self.query = page, "", {}
        await self._rerun(None)


class Follower(Visitor):
    """Looks at the room as often as the page asks for, and notes when each sentence was drawn."""

    def __init__(self, address: str, page: str, **query: str):
        super().__init__(address, page, **query)
        #: Sentence -> when the page had drawn for it.
        self.drawn: dict[str, float] = {}
        self.fragment, self.interval = "", 0.5

    async def follow(self) -> None:
        """Until cancelled: read everything, and send the page's own timer ticks."""
        reading, ticking = asyncio.create_task(self._listen()), asyncio.create_task(self._tick())
        try:
            await asyncio.gather(reading, ticking)
        finally:
            reading.cancel()
            ticking.cancel()

    async def _listen(self) -> None:
        async for raw in self.socket:
            self._take(raw)

    def _take(self, raw: bytes) -> None:
        message = ForwardMsg.FromString(raw)
        kind = message.WhichOneof("type")
        if kind == "navigation":
            self.page_hash = message.navigation.page_script_hash
        elif kind == "auto_rerun":
            self.fragment, self.interval = message.auto_rerun.fragment_id, message.auto_rerun.interval
        elif kind == "delta":
            text = ready_text(raw)
            if text is not None:
                self.drawn.setdefault(text, time.perf_counter())

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(self.interval)
            message = BackMsg()
            state = message.rerun_script
            state.page_script_hash, state.fragment_id, state.is_auto_rerun = self.page_hash, self.fragment, True
            await self.socket.send(message.SerializeToString())


async def lesson(address: str, followers: int, sentences: int) -> tuple[list[float], list[float], int]:
    """Seconds to the teacher's own pictures and to the followers', and how many were never seen."""
    teacher = Teacher(address, "class", view="Room")
    code = await teacher.open_room()
    await teacher.turn_to("masking")
    seats = [Follower(address, "masking", room=code) for _ in range(followers)]
    await asyncio.gather(*(seat.open() for seat in seats))
    tasks = [asyncio.create_task(seat.follow()) for seat in seats]
    own, started = [], {}
    for n in range(sentences):
        text = f"The teacher poured the [MASK] into cup number {n}."
        started[text] = time.perf_counter()
        own.append(await teacher.type(text))
        await asyncio.sleep(PAUSE)
    await asyncio.sleep(PAUSE)
    for task in tasks:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    lags = [seat.drawn[text] - began for seat in seats for text, began in started.items() if text in seat.drawn]
    return own, lags, followers * sentences - len(lags)


def run() -> dict[str, dict[str, float]]:
    """One follower and sixty."""
    sentences = int(os.environ.get("BENCH_ROOM_SENTENCES", "10"))
    results: dict[str, dict[str, float]] = {}
    for followers in FOLLOWERS:
        with serve() as server:
            work = lesson(server.address, followers, sentences)
            own, lags, missed = asyncio.run(asyncio.wait_for(work, PATIENCE * 5))
        middle, theirs = statistics.median(lags), statistics.median(own)
        results[f"followers/{followers}"] = {
            "ratio": round(middle / theirs, 3), "ours_ms": round(middle * 1e3, 1), "peer_ms": round(theirs * 1e3, 1),
            "p95_ms": round(percentile(lags, 0.95) * 1e3, 1), "late": sum(lag > 1.0 for lag in lags), "missed": missed,
        }
    return results
