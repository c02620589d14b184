"""A tab that closes while its page is being sent ends its session, and nothing is logged as a crash."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import WebSocketRoute
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.web.server.starlette.starlette_websocket import create_websocket_handler

from ui.server import Start
from ui.sockets import DropWhatComesTooLate, TurnAway

SCOPE = {"type": "websocket", "path": "/", "raw_path": b"/", "root_path": "", "query_string": b"", "headers": [],
         "subprotocols": ["streamlit"], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2), "scheme": "ws"}


class Runtime:
    """Streamlit's runtime as far as a socket knows it: it answers each message with another."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.heard = 0

    def connect_session(self, client, **_about) -> str:
        client.write_forward_msg(ForwardMsg())
        return "one"

    def handle_backmsg(self, _session, _message, client) -> None:
        self.heard += 1

    def disconnect_session(self, session, client) -> None:
        self.ended.append(session)


def visit(middleware: list[Middleware], error: Exception) -> Runtime:
    """A tab that sends two messages and is gone when its page is sent to it."""
    runtime = Runtime()
    said = {"type": "websocket.receive", "bytes": BackMsg().SerializeToString()}
    came = iter([{"type": "websocket.connect"}, said, said,
                 {"type": "websocket.disconnect", "code": 1006}])

    async def receive():
        for _ in range(20):  # the page is on its way meanwhile
            await asyncio.sleep(0)
        return next(came)

    async def send(message):
        if message["type"] != "websocket.accept":
            raise error

    app = Starlette(routes=[WebSocketRoute("/", create_websocket_handler(runtime))], middleware=middleware)
    with ThreadPoolExecutor(1) as own:  # a browser's tests may hold this thread's loop
        own.submit(asyncio.run, app(dict(SCOPE), receive, send)).result()
    return runtime


def test_a_tab_that_goes_while_its_page_is_sent_is_no_crash(caplog):
    with caplog.at_level(logging.WARNING):
        runtime = visit([Middleware(DropWhatComesTooLate)], OSError("the other side is gone"))
    assert runtime.ended == ["one"]
    assert runtime.heard == 2
    assert not caplog.records


def test_without_it_the_server_would_log_a_crash():
    """Once Streamlit has mended this, the middleware can go."""
    with pytest.raises(RuntimeError, match="once a close message"):
        visit([], OSError("the other side is gone"))


def test_what_is_wrong_with_a_tab_that_is_there_is_still_said(caplog):
    visit([Middleware(DropWhatComesTooLate)], ValueError("too large"))
    assert "Error sending websocket payload" in caplog.text


def test_text_ends_the_visit_and_is_no_crash(caplog):
    runtime, sent = Runtime(), []
    came = iter([{"type": "websocket.connect"}, {"type": "websocket.receive", "text": "hello"}])

    async def receive():
        return next(came)

    async def send(message):
        sent.append(message["type"])

    app = Starlette(routes=[WebSocketRoute("/", create_websocket_handler(runtime))],
                    middleware=[Middleware(DropWhatComesTooLate)])
    with caplog.at_level(logging.WARNING), ThreadPoolExecutor(1) as own:
        own.submit(asyncio.run, app(dict(SCOPE), receive, send)).result()
    assert (runtime.ended, runtime.heard) == (["one"], 0)
    assert sent[-1] == "websocket.close"
    assert not caplog.records


def test_the_server_has_it():
    assert DropWhatComesTooLate in [one.cls for one in Start().middleware]


@pytest.mark.parametrize(("path", "headers", "status"), [
    ("/_stcore/metrics", [], 404), ("/sub/_stcore/metrics/", [], 404),
    ("/_stcore/stream", [(b"origin", b"http://[::1")], 403), ("/", [(b"origin", b"http://[x]:y/")], 403),
    ("/", [(b"origin", b"http://[::1]:8501")], 200), ("/", [(b"origin", b"null")], 200), ("/masking", [], 200),
])
@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_what_no_page_asks_for_is_turned_away(kind, path, headers, status):
    sent, reached = [], []

    async def app(scope, _receive, _send):
        reached.append(scope["path"])

    async def send(message):
        sent.append(message)

    scope = SCOPE | {"type": kind, "method": "GET", "path": path, "headers": headers}
    with ThreadPoolExecutor(1) as own:
        own.submit(asyncio.run, TurnAway(app)(scope, None, send)).result()
    assert reached == ([path] if status == 200 else [])
    if status != 200:
        assert sent[0].get("status", 1008) == (status if kind == "http" else 1008)
        assert sent[0].get("code", 1008) == 1008
