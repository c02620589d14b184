"""A tab that closes while its page is still being sent: nobody's error, and no traceback in the log.

Streamlit's socket takes a failed send for a broken protocol: its next look for a
message raises, and the server logs that as a crash (seen in 1.67). So what is
sent to a tab that has gone is dropped, and Streamlit hears of the end as it
hears of every other, by the message that says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
