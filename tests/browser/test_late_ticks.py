"""A tick that was on its way while its page changed is answered as the page that is there now.

Over a slow network it comes after the new page was drawn. Answered as the old
page's it emptied the new one, on the teacher's screen too, until the next click.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from bench._visitors import PATIENCE
from bench.room import Teacher

#: Seconds without a message after which a run is through.
QUIET = 1.0


class Tab(Teacher):
    """A teacher's tab; it knows its page's timer."""

    fragment = ""

    async def ask(self, page: str = "", page_hash: str = "", fragment: str = "") -> list[str]:
        """Ask for a page by name, or for a part of one as its timer does; the pages that the server announced."""
        message = BackMsg()
        state = message.rerun_script
        state.page_name, state.page_script_hash = page, page_hash
        state.fragment_id, state.is_auto_rerun = fragment, bool(fragment)
        await self.socket.send(message.SerializeToString())
        return await asyncio.wait_for(self._announced(), PATIENCE)

    async def _announced(self) -> list[str]:
        announced, finished = [], False
        while True:
            try:
                raw = await asyncio.wait_for(self.socket.recv(), QUIET if finished else PATIENCE)
            except TimeoutError:
                return announced
            message = ForwardMsg.FromString(raw)
            kind = message.WhichOneof("type")
            finished = finished or kind == "script_finished"
            if kind == "new_session":
                announced.append(message.new_session.page_script_hash)
            elif kind == "navigation":
                self.page_hash = message.navigation.page_script_hash
            elif kind == "auto_rerun":
                self.fragment = message.auto_rerun.fragment_id


async def late_tick(address: str) -> None:
    tab = Tab(address, "class", view="Room")
    await tab.open_room()
    await tab.ask("masking")
    old, timer = tab.page_hash, tab.fragment
    assert await tab.ask(page_hash=old, fragment=timer) == [old]
    await tab.ask("tokens")
    new = tab.page_hash
    assert new != old
    assert set(await tab.ask(page_hash=old, fragment=timer)) <= {new}
    assert set(await tab.ask(page_hash=old, fragment=tab.fragment)) == {new}
    await tab.close()


def test_a_late_tick_is_answered_as_the_page_that_is_there(address):
    with ThreadPoolExecutor(1) as own:  # Playwright's loop may be running in this thread
        own.submit(asyncio.run, late_tick(address)).result()
