"""What a browser sends that no page asks for stays without effect on anybody."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.proto.BackMsg_pb2 import BackendOperationRequest, BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.Common_pb2 import DoubleArray
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.session_state import SessionState

from ui import messages


def run_with(id: str = "$$ID-w", **value) -> BackMsg:
    """A run of the page with one widget of this value."""
    message = BackMsg()
    message.rerun_script.widget_states.widgets.add(id=id, **value)
    return message


def run_of(widgets: int, **about) -> BackMsg:
    """A run of the page with so many widgets of no value."""
    message = BackMsg()
    message.rerun_script.MergeFrom(ClientState(**about))
    for number in range(widgets):
        message.rerun_script.widget_states.widgets.add(id=f"$$ID-{number}")
    return message


def operation(name: str, file_id: str = "", **about: str) -> BackMsg:
    message = BackMsg()
    message.backend_operation_request.MergeFrom(BackendOperationRequest(request_id="1", **about))
    getattr(message.backend_operation_request, name).SetInParent()
    if file_id:
        message.backend_operation_request.deferred_file.file_id = file_id
    return message


def files(*names: str) -> BackMsg:
    """Somebody is about to upload these."""
    message = BackMsg()
    message.file_urls_request.file_names.extend(names)
    return message


@pytest.mark.parametrize(("message", "answered"), [
    (BackMsg(clear_cache=True), False),  # of everybody
    (BackMsg(set_run_on_save=True), False),
    (BackMsg(load_git_info=True), False),
    (BackMsg(), False),
    (BackMsg(stop_script=True), True),
    (BackMsg(app_heartbeat=True), True),
    (run_with(string_value="the dog"), True),
    (run_with(json_trigger_value='[{"layer": 3}]'), True),
    (run_with(json_value="["), False),
    (run_with(json_trigger_value="[" * 90_000), False),
    (run_with(json_value="9" * 5_000), False),
    (run_with(json_value=json.dumps("a" * 100_000)), False),
    (run_with(bytes_value=b"a" * 5_000_000), False),
    (run_with(json_value="{}" + " " * 100_000 + "["), False),  # whose beginning alone could be read
    (run_with(double_value=0.5), True),
    (run_with(double_value=float("nan")), False),
    (run_with(double_array_value=DoubleArray(data=[1.0, float("inf")])), False),
    (run_of(1000), True),
    (run_of(1001), False),
    (run_of(1, fragment_id="0123456789abcdef" * 2), True),
    (run_of(1, fragment_id="a line\nof the log"), False),
    (operation("deferred_file"), True),
    (operation("deferred_file", "0123abcd"), True),
    (operation("deferred_file", "a line\nof the log"), False),
    (operation("deferred_file", session_id="a" * 20_000_000), False),  # which the log would repeat
    (operation("dataframe_chunk"), True),
    (operation("install_skills"), False),
    (files("table.csv"), True),
    (files(*["a"] * 5), False),  # Streamlit makes an address for each while all wait
    (files("a" * 200_000), False),
    (run_with(string_value="the dog", id="w"), False),  # no widget is called so: the run would fail by it
    (run_with(string_value="the dog", id="$$ID-" + "w" * 1000), False),
])
def test_only_what_a_page_asks_for_is_answered(message, answered):
    assert messages.is_answered(message) == answered


def test_a_text_that_no_page_would_read_whole_is_not_kept_whole():
    message = run_with(string_value="a" * 22_000_000)
    assert messages.is_answered(message)
    assert message.rerun_script.widget_states.widgets[0].string_value == "a" * messages.MOST


@pytest.mark.parametrize(("kind", "value", "heard"), [
    ("string_value", {"string_value": "the dog"}, True), ("string_value", {}, True),
    ("string_value", {"int_value": 3}, False), ("string_value", {"bytes_value": b"dog"}, False),
    ("double_value", {"double_value": 3.5}, True), ("double_value", {"string_value": "3"}, False),
    ("double_value", {"int_value": 3}, True),  # of a field of whole numbers
])
def test_a_value_of_another_kind_than_its_widgets_reaches_no_session(monkeypatch, kind, value, heard):
    """Streamlit would keep it, and each later run of that session would end by a TypeError."""
    came, state = [], SessionState()
    state._new_widget_state.set_widget_metadata(WidgetMetadata("$$ID-w", str, str, kind))
    monkeypatch.setattr(AppSession, "handle_backmsg", lambda _self, message: came.append(message))
    messages.bound()
    AppSession.handle_backmsg(SimpleNamespace(_session_state=state), run_with(**value))
    assert bool(came) == heard


def test_a_session_hears_nothing_of_the_others(monkeypatch):
    heard = []
    monkeypatch.setattr(AppSession, "handle_backmsg", lambda _self, message: heard.append(message.WhichOneof("type")))
    messages.bound()
    for message in (BackMsg(clear_cache=True), BackMsg(app_heartbeat=True), run_with(json_value="[")):
        AppSession.handle_backmsg(None, message)
    assert heard == ["app_heartbeat"]


def in_a_loop(work: Coroutine[Any, Any, None]) -> None:
    """Run it to its end, in a thread: a browser test before may have left a loop in this one."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, asyncio.wait_for(work, 5)).result()


def test_what_a_session_waits_for_is_made_one_after_the_other_and_a_flood_is_left_out():
    at_once, made = [], []

    async def make(number: int) -> None:
        at_once.append(number)
        await asyncio.sleep(0)
        made.append((number, tuple(at_once)))
        at_once.remove(number)

    async def ask(count: int) -> None:
        turn = messages.Turn()
        await asyncio.gather(*(turn.take(lambda n=n: make(n)) for n in range(count)))
        await turn.take(lambda: make(count))  # later there is room again

    in_a_loop(ask(20))
    assert made == [(n, (n,)) for n in [*range(messages.MOST_WAITING + 1), 20]]


def test_the_same_bounds_twice_are_the_same(monkeypatch):
    """A session's turn must not wait for itself."""
    done = []

    async def operate(self, request) -> None:
        done.append(request)

    monkeypatch.setattr(AppSession, "_handle_backend_operation_request", operate)
    monkeypatch.setattr(AppSession, "handle_backmsg", AppSession.handle_backmsg)
    messages.bound()
    messages.bound()
    in_a_loop(AppSession._handle_backend_operation_request(SimpleNamespace(), "file"))
    assert done == ["file"]
