"""Visitors as WebSocket clients that speak Streamlit's own protocol, without a browser.

Hundreds of browsers don't fit beside the server they load; what reaches the
server is the same: a session each, the widgets' states on every change, and
every message of the answer read to its end.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
import urllib.parse

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect

#: Seconds that an answer may take before it counts as an error.
PATIENCE = 60.0


#: The status bar's message starts so (ui/notices.py, `ready`).
_READY = re.compile(rb'\{"text": ?("(?:[^"\\]|\\.)*"), ?"status"')


def ready_text(raw: bytes) -> str | None:
    """The text that a page says it was drawn for, None in every other message."""
    found = _READY.search(raw)
    return None if found is None else json.loads(found.group(1))


class CrossedAnswer(RuntimeError):
    """The page was drawn for another text than the visitor's own."""


class Visitor:
    """One session on a page of the explorer.

    Args:
        address: 'http://127.0.0.1:8501'.
        page: name of the page in the address.
        query: its parameters.
    """

    def __init__(self, address: str, page: str, **query: str):
        self.address, self.page, self.query = address.replace("http", "ws", 1), page, query
        self.socket: ClientConnection | None = None
        self.text_input = ""
        #: What the last picture was drawn for.
        self.showing = ""
        self.page_hash = ""
        self.bytes = 0

    async def open(self) -> float:
        """Connect and wait for the first picture; seconds it took."""
        self.socket = await connect(f"{self.address}/_stcore/stream", subprotocols=["streamlit"],
                                    max_size=2**26, open_timeout=PATIENCE)
        return await self._rerun(None)

    async def type(self, text: str) -> float:
        """Put a sentence in and wait for its picture; seconds it took.

        Raises:
            CrossedAnswer: the picture is for another sentence.
            RuntimeError: the page showed an exception.
        """
        return await self._rerun(text)

    async def close(self) -> None:
        if self.socket is not None:
            await self.socket.close()

    def note(self, element: Element) -> None:
        """Remember the widgets that this visitor uses."""
        if element.HasField("text_input") and element.text_input.label == "Sentence":
            self.text_input = element.text_input.id

    async def _rerun(self, text: str | None) -> float:
        message = BackMsg()
        state = message.rerun_script
        state.query_string = urllib.parse.urlencode(self.query)
        state.page_script_hash = self.page_hash
        if not self.page_hash:
            state.page_name = self.page
        if text is not None:
            widget = state.widget_states.widgets.add()
            widget.id, widget.string_value = self.text_input, text
        started = time.perf_counter()
        await self.socket.send(message.SerializeToString())
        await asyncio.wait_for(self._read(text), PATIENCE)
        return time.perf_counter() - started

    async def _read(self, text: str | None) -> None:
        """Read one run to its end; runs that a newer one replaced are read over.

        A last picture for the sentence before may still be under way: a page
        may run once more by itself (a room's does).
        """
        seen, before = text is None, self.showing
        async for raw in self.socket:
            self.bytes += len(raw)
            message = ForwardMsg.FromString(raw)
            kind = message.WhichOneof("type")
            if kind == "navigation":  # a new session's own hash is that of app.py, which would lead to the first page
                self.page_hash = message.navigation.page_script_hash
            elif kind == "delta":
                element = message.delta.new_element
                self.note(element)
                if element.HasField("exception"):
                    raise RuntimeError(element.exception.message)
                drawn_for = ready_text(raw)
                if drawn_for is None:
                    continue
                if text is not None and drawn_for not in (text, before):
                    raise CrossedAnswer(f"asked for {text!r}, drawn for {drawn_for!r}")
                seen = seen or drawn_for == text
                self.showing = drawn_for
            elif kind == "script_finished" and seen and self.text_input:
                return
