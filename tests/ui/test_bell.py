"""A class is called when its room has news: soon, together, after its teacher's own picture, and nobody else is."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from ui import bell
from ui.bell import Bell

EVERY, HEAD_START, APART = 0.2, 0.1, 0.001
#: Room of each tab.
TABS = {"a": "ROOM1", "b": "ROOM1", "c": "ROOM2", "gone": "ROOM1"}


@pytest.fixture
def calls(monkeypatch) -> list[tuple[str, float, object]]:
    """(tab, when, message) of every call."""
    made: list[tuple[str, float, object]] = []

    def take(tab, message):
        made.append((tab, asyncio.get_running_loop().time(), message.rerun_script))

    monkeypatch.setattr(bell, "get_instance", lambda: SimpleNamespace(handle_backmsg=take))
    monkeypatch.setattr(bell.visitors, "is_connected", lambda tab: tab != "gone")
    for name, seconds in (("EVERY", EVERY), ("HEAD_START", HEAD_START), ("APART", APART)):
        monkeypatch.setattr(bell, name, seconds)
    return made


def sit(monkeypatch, one: Bell, tab: str, room: str, query: str = "text=a", fragment: str = "look") -> None:
    """In the run of this tab's look at the room."""
    context = SimpleNamespace(session_id=tab, page_script_hash="page", query_string=query)
    monkeypatch.setattr(bell, "get_script_run_ctx", lambda **_: context)
    monkeypatch.setattr(bell.ThreadState, "get", lambda: SimpleNamespace(fragment_id=fragment))
    one.wait_for(room)


def ring(one: Bell, lesson) -> float:
    """Let a lesson pass in a loop of its own; when it began."""

    async def pass_by() -> float:
        one.hang_in(asyncio.get_running_loop())
        began = asyncio.get_running_loop().time()
        await lesson()
        await asyncio.sleep(EVERY + HEAD_START + 0.2)
        return began

    with ThreadPoolExecutor(1) as own:  # Playwright's loop may be running in this thread
        return own.submit(asyncio.run, pass_by()).result()


@pytest.fixture
def filled(monkeypatch) -> Bell:
    one = Bell()
    for tab, room in TABS.items():
        sit(monkeypatch, one, tab, room)
    return one


def test_everyone_of_the_room_who_is_there_is_called_once_after_the_head_start(filled, calls):
    async def lesson():
        for _ in range(20):
            filled.ring("ROOM1")

    began = ring(filled, lesson)
    assert [tab for tab, _, _ in calls] == ["a", "b"]
    assert calls[0][1] - began >= HEAD_START
    assert "gone" not in filled._waiting


def test_a_call_is_the_message_of_the_tabs_own_timer(filled, calls):
    async def lesson():
        filled.ring("ROOM2")

    ring(filled, lesson)
    ((_, _, message),) = calls
    assert (message.page_script_hash, message.query_string, message.fragment_id) == ("page", "text=a", "look")
    assert message.is_auto_rerun
    assert not message.widget_states.widgets


def test_where_the_teacher_goes_elsewhere_the_whole_page_runs_once_whatever_else_is_new(filled, calls):
    async def lesson():
        filled.ring("ROOM2")
        filled.ring("ROOM2", elsewhere=True)
        filled.ring("ROOM2")
        await asyncio.sleep(HEAD_START + EVERY)
        filled.ring("ROOM2")  # a poll, say

    ring(filled, lesson)
    assert [(message.fragment_id, message.query_string, message.is_auto_rerun) for _, _, message in calls] == [
        ("", "text=a", True), ("look", "text=a", True)]


def test_the_class_need_not_wait_once_the_teachers_picture_is_drawn(filled, calls, monkeypatch):
    monkeypatch.setattr(bell, "HEAD_START", 30.0)

    async def lesson():
        filled.ring_now("ROOM2")  # nothing is to come yet
        filled.ring("ROOM2")
        filled.ring_now("ROOM2")

    began = ring(filled, lesson)
    assert [tab for tab, _, _ in calls] == ["c"]
    assert calls[0][1] - began < EVERY


def test_two_calls_are_apart_and_the_second_brings_the_last_news(filled, calls):
    async def lesson():
        for _ in range(3):
            filled.ring("ROOM2")
            filled.ring_now("ROOM2")
            await asyncio.sleep(0.03)

    ring(filled, lesson)
    assert len(calls) == 2
    assert calls[1][1] - calls[0][1] >= EVERY / 2  # a busy machine may hold the first one up


def test_who_lets_go_is_not_called_and_who_moved_is_called_there(filled, calls, monkeypatch):
    sit(monkeypatch, filled, "a", "ROOM1")
    filled.wait_no_more()
    sit(monkeypatch, filled, "b", "ROOM1")
    moved = SimpleNamespace(session_id="b", query_string="text=b&mask=2")
    monkeypatch.setattr(bell, "get_script_run_ctx", lambda **_: moved)
    filled.moved()

    async def lesson():
        filled.ring("ROOM1")

    ring(filled, lesson)
    assert [(tab, message.query_string) for tab, _, message in calls] == [("b", "text=b&mask=2")]


def test_outside_a_part_of_a_page_and_outside_a_server_nothing_happens(monkeypatch, calls):
    one = Bell()
    sit(monkeypatch, one, "a", "ROOM1", fragment="")
    assert not one._waiting
    one.ring("ROOM1")
    one.ring_now("ROOM1")
    assert calls == []


def test_what_is_noted_is_bounded(monkeypatch, calls):
    monkeypatch.setattr(bell, "MOST", 2)
    one = Bell()
    for tab in ("gone", "a", "b", "c"):
        sit(monkeypatch, one, tab, "ROOM1")
    assert set(one._waiting) == {"a", "b", "c"}


def test_a_room_that_was_called_long_ago_is_remembered_no_more(filled, calls):
    async def lesson():
        filled.ring("ROOM2")
        await asyncio.sleep(2 * EVERY + HEAD_START)
        filled.ring("ROOM1")

    ring(filled, lesson)
    assert [tab for tab, _, _ in calls] == ["c", "a", "b"]
    assert list(filled._called) == ["ROOM1"]
