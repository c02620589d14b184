"""A visitor is a browser: one cookie for all of its tabs, given once."""

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor

from ui import visitors
from ui.visitors import GiveCookie, Visitors


def headers_of(kind: bytes, cookie: bytes = b"") -> list[tuple[bytes, bytes]]:
    """What GiveCookie makes of an answer of this content type."""
    sent: list[dict] = []

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
        await send({"type": "http.response.body", "body": b"x"})

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "headers": [(b"cookie", cookie)] if cookie else []}
    with ThreadPoolExecutor(1) as own:  # Playwright's loop may be running in this thread
        own.submit(asyncio.run, GiveCookie(app)(scope, None, send)).result()
    assert sent[1]["body"] == b"x"
    return [header for header in sent[0]["headers"] if header[0] == b"set-cookie"]


def test_a_browser_without_the_cookie_gets_a_number_that_no_script_can_read():
    given = [headers_of(b"text/html; charset=utf-8")[0][1].decode() for _ in range(2)]
    for cookie in given:
        assert re.fullmatch(r"both_ways=[0-9a-f]{32}; Path=/; HttpOnly; SameSite=Lax", cookie)
    assert given[0] != given[1]


def test_nothing_else_gets_one():
    assert headers_of(b"text/html", b"a=1; both_ways=" + b"0" * 32) == []
    assert headers_of(b"application/json") == []


def test_a_visitor_is_here_while_any_tab_is(monkeypatch):
    connected = {"tab 1", "tab 2", "other"}
    monkeypatch.setattr(visitors, "is_connected", connected.__contains__)
    here = Visitors()
    here.note("ann", "tab 1")
    here.note("ann", "tab 2")
    here.note("ben", "other")
    connected.discard("tab 1")
    assert here.is_here("ann")
    connected.discard("tab 2")
    assert not here.is_here("ann")
    assert here.is_here("ben")
    assert not here.is_here("nobody")


def test_what_is_noted_is_bounded(monkeypatch):
    connected = {f"session {n}" for n in range(5)}
    monkeypatch.setattr(visitors, "is_connected", connected.__contains__)
    monkeypatch.setattr(visitors, "MOST", 50)
    here = Visitors()
    for n in range(200):
        here.note(f"visitor {n}", f"session {n}")
    assert len(here._visitor_of) <= 50
    assert all(here.is_here(f"visitor {n}") for n in range(5))
