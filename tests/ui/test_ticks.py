"""What comes by itself waits until the picture before it is through; a visitor's own request never waits."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.runtime.app_session import AppSession

from ui import ticks


@pytest.fixture
def asked(monkeypatch) -> list[tuple[str, str, str]]:
    """(fragment, address, page) of each run that Streamlit was asked for."""
    made = []

    def rerun(self, state):
        made.append(state and (state.fragment_id, state.query_string, state.page_script_hash))

    monkeypatch.setattr(AppSession, "request_rerun", rerun)  # and what is put in its place comes out again
    ticks.wait_for_pictures()
    return made


def tick(fragment: str = "", query: str = "text=old") -> ClientState:
    return ClientState(fragment_id=fragment, query_string=query, page_script_hash="old", is_auto_rerun=True)


def session(runs: bool) -> SimpleNamespace:
    """A tab that draws, or doesn't; its last run left another address and page than a tick of before has."""
    return SimpleNamespace(_scriptrunner=object() if runs else None,
                           _client_state=ClientState(query_string="text=new", page_script_hash="new"))


def in_a_loop(lesson) -> None:
    """Let it pass in a loop of its own, in which nothing may fail unseen."""
    faults = []

    async def pass_by() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, fault: faults.append(fault))
        await lesson()

    with ThreadPoolExecutor(1) as own:  # Playwright's loop may be running in this thread
        own.submit(asyncio.run, pass_by()).result()
    assert faults == []


def test_a_tick_of_a_tab_that_draws_nothing_goes_on_at_once_as_the_page_that_is_there_now(asked):
    """It was sent before the browser had the new page, and came when that was drawn."""
    AppSession.request_rerun(session(runs=False), tick("look"))
    assert asked == [("look", "text=new", "new")]


def test_what_a_visitor_does_never_waits(asked):
    click = ClientState(query_string="text=b", page_script_hash="here")
    AppSession.request_rerun(session(runs=True), click)
    AppSession.request_rerun(session(runs=True), None)
    assert asked == [("", "text=b", "here"), None]


def test_ticks_wait_for_the_picture_and_bring_its_address_then_each_once(asked):
    async def lesson():
        tab = session(runs=True)
        for fragment in ("look", "line", "look"):
            AppSession.request_rerun(tab, tick(fragment))
        await asyncio.sleep(4 * ticks.LOOK_AGAIN)
        assert asked == []
        tab._scriptrunner = None
        await asyncio.sleep(4 * ticks.LOOK_AGAIN)
        assert asked == [("look", "text=new", "new"), ("line", "text=new", "new")]
        AppSession.request_rerun(tab, tick("look"))
        assert len(asked) == 3

    in_a_loop(lesson)


def test_one_tick_waits_as_many_do_and_the_next_one_again(asked):
    async def lesson():
        tab = session(runs=True)
        for fragment in ("look", "line"):
            tab._scriptrunner = object()
            AppSession.request_rerun(tab, tick(fragment))
            await asyncio.sleep(3 * ticks.LOOK_AGAIN)
            tab._scriptrunner = None
            await asyncio.sleep(3 * ticks.LOOK_AGAIN)

    in_a_loop(lesson)
    assert asked == [("look", "text=new", "new"), ("line", "text=new", "new")]


def test_where_the_whole_page_is_to_run_its_parts_need_not(asked):
    async def lesson():
        tab = session(runs=True)
        for fragment in ("look", "", "line"):
            AppSession.request_rerun(tab, tick(fragment))
        tab._scriptrunner = None
        await asyncio.sleep(4 * ticks.LOOK_AGAIN)

    in_a_loop(lesson)
    assert asked == [("", "text=new", "new")]


def test_streamlits_sessions_are_as_they_are_taken_to_be():
    """A runner is there from the request until all that it sent was handed on; the patch reads it by this name."""
    source = AppSession._handle_scriptrunner_event_on_event_loop.__code__
    assert {"_scriptrunner", "_client_state"} <= set(source.co_names)
    fields = set(ClientState.DESCRIPTOR.fields_by_name)
    assert {"fragment_id", "query_string", "page_script_hash", "is_auto_rerun"} <= fields
