"""A class is called when its room has something new, so that nobody's tab has to ask all the time.

A tab that asks twice a second is twice a second a run of its script, and 36
kbit/s of a network that thirty share, while nothing happens. Called, it runs
the part of its page that looks at the room, as its own timer makes it do; where
its teacher has gone elsewhere it runs its page, which begins with that look.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.runtime import get_instance
from streamlit.runtime.runtime import RuntimeStoppedError
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_run_context import ThreadState

from ui import visitors

#: Seconds between two calls of one room: a teacher who types is not drawn sixty times a word.
EVERY = 0.4
#: Seconds that the teacher's own picture is given first, unless it is drawn before.
HEAD_START = 0.3
#: Seconds between two tabs of a call: what the teacher's browser is being sent goes in between.
APART = 0.005
#: Tabs noted at once; beyond, those that are gone are forgotten.
MOST = 2000


@dataclass(frozen=True)
class Waiting:
    """A tab that waits for a room's news: what its timer would send, and when."""

    room: str
    page_hash: str
    query: str
    fragment: str

    def tick(self, whole: bool) -> BackMsg:
        """The message of its timer.

        Args:
            whole: its page is to run, not only the part that looks at the room.
        """
        message = BackMsg()
        state = message.rerun_script
        state.page_script_hash, state.query_string, state.is_auto_rerun = self.page_hash, self.query, True
        if not whole:
            state.fragment_id = self.fragment
        return message


class Bell:
    """Which tabs wait for which room; every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, Waiting] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        # Only touched in the loop: when each room was called, the calls that are to come, and rooms with another view.
        self._called: dict[str, float] = {}
        self._to_come: dict[str, asyncio.TimerHandle] = {}
        self._elsewhere: set[str] = set()

    def hang_in(self, loop: asyncio.AbstractEventLoop) -> None:
        """The loop of the server, in which tabs can be called; without one nobody is."""
        self._loop = loop

    def wait_for(self, room: str) -> None:
        """This tab, in the run of the part that looks at the room."""
        context = get_script_run_ctx(suppress_warning=True)
        fragment = ThreadState.get().fragment_id
        if context is None or not fragment:
            return
        waiting = Waiting(room, context.page_script_hash, context.query_string, fragment)
        with self._lock:
            if context.session_id not in self._waiting and len(self._waiting) >= MOST:
                self._forget_who_went()
            self._waiting[context.session_id] = waiting

    def moved(self) -> None:
        """This tab's address is another than at its last look: it is called as being there."""
        context = get_script_run_ctx(suppress_warning=True)
        with self._lock:
            waiting = self._waiting.get(context.session_id) if context is not None else None
            if waiting is not None:
                self._waiting[context.session_id] = replace(waiting, query=context.query_string)

    def wait_no_more(self) -> None:
        """This tab."""
        context = get_script_run_ctx(suppress_warning=True)
        with self._lock:
            self._waiting.pop(context.session_id if context is not None else "", None)

    def ring(self, room: str, elsewhere: bool = False) -> None:
        """Call everyone who waits for it, after the head start and EVERY seconds after the last call.

        Args:
            elsewhere: its teacher shows something else, so that all that is on their pages is drawn anew.
        """
        self._in_loop(self._ring, room, HEAD_START, elsewhere)

    def ring_now(self, room: str) -> None:
        """The teacher's picture is drawn: what is to come need not wait for it any longer."""
        self._in_loop(self._hurry, room)

    def _in_loop(self, act: Callable[..., None], *about: object) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the server is ending
                self._loop.call_soon_threadsafe(act, *about)

    def _ring(self, room: str, after: float, elsewhere: bool) -> None:
        if elsewhere:
            self._elsewhere.add(room)
        if room not in self._to_come:  # or that one will find what is new now
            wait = max(after, self._called.get(room, 0.0) + EVERY - self._loop.time())
            self._to_come[room] = self._loop.call_later(wait, self._call, room)

    def _hurry(self, room: str) -> None:
        if room in self._to_come:
            self._to_come.pop(room).cancel()
            self._ring(room, 0.0, False)

    def _call(self, room: str) -> None:
        now = self._loop.time()
        self._called = {code: at for code, at in self._called.items() if now - at < EVERY} | {room: now}
        self._to_come.pop(room, None)
        whole = room in self._elsewhere
        self._elsewhere.discard(room)
        with self._lock:
            self._forget_who_went()
            tabs = {tab: one for tab, one in self._waiting.items() if one.room == room}
        for place, (tab, one) in enumerate(tabs.items(), 1):
            self._loop.call_later(place * APART, self._send, tab, one, whole)

    def _send(self, tab: str, one: Waiting, whole: bool) -> None:
        with contextlib.suppress(RuntimeStoppedError):
            get_instance().handle_backmsg(tab, one.tick(whole))  # which lets be who has gone since

    def _forget_who_went(self) -> None:
        self._waiting = {tab: one for tab, one in self._waiting.items() if visitors.is_connected(tab)}


#: The server's one.
BELL = Bell()
