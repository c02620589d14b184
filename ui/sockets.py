"""What would be an error to Streamlit and is nobody's, without a traceback in the log.

First of all a tab that closes while its page is still being sent, and one that sends text, where Streamlit reads bytes.

Streamlit's socket takes a failed send for a broken protocol: its next look for a
message raises, and the server logs that as a crash (seen in 1.67). So what is
sent to a tab that has gone is dropped, and Streamlit hears of the end as it
hears of every other, by the message that says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.responses import PlainTextResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


class DropWhatComesTooLate:
    """ASGI middleware for web sockets."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self.app(scope, receive, send)
            return
        gone = False

        async def receive_and_note() -> Message:
            nonlocal gone
            message = await receive()
            if message["type"] == "websocket.receive" and message.get("bytes") is None:
                await send_if_there({"type": "websocket.close", "code": 1003})
                message = {"type": "websocket.disconnect", "code": 1003}
            gone = gone or message["type"] == "websocket.disconnect"
            return message

        async def send_if_there(message: Message) -> None:
            nonlocal gone
            if gone:
                return
            try:
                await send(message)
            except OSError:  # how a server says that the other side is no more
                gone = True

        await self.app(scope, receive_and_note, send_if_there)


class TurnAway:
    """ASGI middleware: what no page asks for.

    An origin that is none raises in Streamlit, a long traceback for each; and its own numbers on who is here are
    nobody's business (whoever runs the server has /metrics, docs/deploy.md).
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket") and (status := _refused(scope)):
            if scope["type"] == "http":
                await PlainTextResponse("", status)(scope, receive, send)
            else:
                await send({"type": "websocket.close", "code": 1008})
            return
        await self.app(scope, receive, send)


def _refused(scope: Scope) -> int:
    """The status to refuse with, 0 for what goes on."""
    if scope["path"].rstrip("/").endswith("_stcore/metrics"):
        return 404
    origin = dict(scope.get("headers", ())).get(b"origin", b"").decode("latin-1")
    try:
        urlsplit(origin).hostname  # noqa: B018 - what Streamlit will read
    except ValueError:
        return 403
    return 0
