"""Who is here: a visitor is a browser, with a session for each of its tabs and reloads.

The server gives each browser a random number in a cookie that lasts as long as
the browser's window; it names the browser's training runs and gives it one seat
in a room, nothing else. A client without cookies is as many visitors as it has
sessions.
"""

from __future__ import annotations

import re
import secrets
import threading
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.runtime import exists, get_instance
from streamlit.runtime.scriptrunner import get_script_run_ctx

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "both_ways"
NUMBER = re.compile(r"[0-9a-f]{32}")
#: Sessions noted at once; beyond, those that are gone are forgotten.
MOST = 2000


class GiveCookie:
    """ASGI middleware: a page of HTML brings the cookie to a browser that has none."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope.get("headers", ()))
        if scope["type"] != "http" or f"{COOKIE}=".encode() in headers.get(b"cookie", b""):
            await self.app(scope, receive, send)
            return

        async def send_with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                kinds = [value for name, value in message["headers"] if name.lower() == b"content-type"]
                if kinds and kinds[0].startswith(b"text/html"):
                    cookie = f"{COOKIE}={secrets.token_hex(16)}; Path=/; HttpOnly; SameSite=Lax".encode()
                    message["headers"] = [*message["headers"], (b"set-cookie", cookie)]
            await send(message)

        await self.app(scope, receive, send_with_cookie)


class Visitors:
    """Which sessions each visitor has; every method may be called from any thread."""

    def __init__(self) -> None:
        self._visitor_of: dict[str, str] = {}
        self._lock = threading.Lock()

    def note(self, visitor: str, session: str) -> None:
        """This session is the visitor's."""
        with self._lock:
            if session not in self._visitor_of and len(self._visitor_of) >= MOST:
                self._visitor_of = {s: v for s, v in self._visitor_of.items() if is_connected(s)}
            self._visitor_of[session] = visitor

    def is_here(self, visitor: str) -> bool:
        """Whether any of the visitor's tabs is still connected."""
        with self._lock:
            sessions = [s for s, v in self._visitor_of.items() if v == visitor]
        return any(is_connected(session) for session in sessions)


def is_connected(session: str) -> bool:
    """Whether a session's tab is there; outside a server everybody is."""
    return not exists() or get_instance().is_active_session(session)


@st.cache_resource(show_spinner=False, max_entries=1)
def registry() -> Visitors:
    """The visitors of this server."""
    return Visitors()


def session() -> str:
    """The session that is running its script; 'nobody' outside one."""
    context = get_script_run_ctx(suppress_warning=True)
    return context.session_id if context is not None else "nobody"


def current() -> str:
    """Who this session belongs to; notes that the session is here."""
    own, number = session(), str(st.context.cookies.get(COOKIE, ""))
    visitor = number if NUMBER.fullmatch(number) else own
    registry().note(visitor, own)
    return visitor
