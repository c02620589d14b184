"""What the browser's history brings keeps its whole address; what a click brings doesn't."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.state.query_params import QueryParams, WidgetBinding

from ui import history

ADDRESS = "text=a&view=Cost"


@pytest.fixture
def session(monkeypatch) -> SimpleNamespace:
    """A tab on a page that has a control named `view`; requests go nowhere."""
    monkeypatch.setattr(AppSession, "request_rerun", lambda *_: None)  # and what is put in its place comes out again
    monkeypatch.setattr(QueryParams, "populate_from_query_string", QueryParams.populate_from_query_string)
    history.keep_addresses()
    params = QueryParams()
    binding = WidgetBinding(widget_id="w", param_key="view", value_type="string_value", script_hash="left")
    params._bindings_by_param["view"] = params._bindings_by_widget["w"] = binding
    monkeypatch.setattr(QueryParams, "_send_query_param_msg", lambda _self: None)
    return SimpleNamespace(_session_state=SimpleNamespace(query_params=params))


def asks(session: SimpleNamespace, **how: bool) -> None:
    AppSession.request_rerun(session, ClientState(query_string=ADDRESS, **how))


def comes(session: SimpleNamespace) -> dict[str, str]:
    """The address of the page that comes."""
    params = session._session_state.query_params
    params.populate_from_query_string(ADDRESS, {"comes"})
    return params.to_dict()


def test_an_address_of_history_is_whole_also_if_a_timer_ticks_meanwhile(session):
    asks(session, is_history_navigation=True)
    asks(session, is_auto_rerun=True)
    assert comes(session) == {"text": "a", "view": "Cost"}


def test_a_click_after_it_leaves_what_was_the_other_page_s(session):
    asks(session, is_history_navigation=True)  # on the page that one is on: nothing is filled anew
    asks(session)
    assert comes(session) == {"text": "a"}
