"""Scripts and styles go over the network compressed: on a class's Wi-Fi they are what a first visit waits for.

Streamlit sends its own as they are (2.6 of 3.7 MB of a first visit), as to
compress them anew for everybody costs too much. Here each is compressed once and
kept; its address holds a hash of what is in it, so it never changes.
"""

from __future__ import annotations

import asyncio
import posixpath
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.gzip import GZipMiddleware

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: What is compressed; fonts and pictures already are.
KINDS = (".js", ".css")
#: Bytes kept, compressed. All that Streamlit has is 2.9 MB.
MOST = 16 * 2**20
#: Headers of a request that asks for less than the whole file.
PARTLY = ("range", "if-none-match", "if-modified-since")


class SendPacked:
    """ASGI middleware: what never changes is compressed at the first visit and sent from memory at every other."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._packing = GZipMiddleware(app, minimum_size=1000, compresslevel=6)
        self._kept: dict[str, tuple[Message, Message]] = {}
        self._free = MOST
        self._one_at_a_time = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not is_whole_script(scope):
            await self.app(scope, receive, send)
            return
        messages = self._kept.get(scope["path"])
        if messages is None:
            async with self._one_at_a_time:  # a class comes at once: the second waits for what the first has made
                messages = self._kept.get(scope["path"]) or await self._pack(scope)
        for message in messages:
            await send(message.copy())  # who sends it on may add a header

    async def _pack(self, scope: Scope) -> tuple[Message, Message]:
        """The compressed answer, made for all; kept if it never changes and there is room."""
        said: list[Message] = []

        async def note(message: Message) -> None:
            said.append(message)

        await self._packing(scope, stays, note)
        if not said or said[-1].get("more_body", False):
            raise RuntimeError(f"{scope['path']} was cut short")  # a browser would keep what there is
        start, body = said[0], b"".join(message.get("body", b"") for message in said[1:])
        headers = MutableHeaders(raw=list(start["headers"]))
        headers["content-length"] = str(len(body))
        messages = {**start, "headers": headers.raw}, {"type": "http.response.body", "body": body}
        if start["status"] == 200 and "immutable" in headers.get("cache-control", "") and len(body) <= self._free:
            self._free -= len(body)
            self._kept[scope["path"]] = messages
        return messages


async def stays() -> Message:
    """What whoever asks says while a file is read: nothing. The first to ask may go, and the file would end there."""
    return await asyncio.get_running_loop().create_future()


def is_whole_script(scope: Scope) -> bool:
    """Whether a browser that can unpack asks for the whole of a script or a style."""
    if scope["type"] != "http" or scope["method"] != "GET":
        return False
    if not scope["path"].endswith(KINDS) or posixpath.normpath(scope["path"]) != scope["path"]:
        return False  # one file has one name here, or its other names could fill what is kept
    headers = Headers(scope=scope)
    return "gzip" in headers.get("accept-encoding", "") and not any(name in headers for name in PARTLY)
