"""Where one is sent is taken on whole: also by the next run, if a newer one ends this one in the midst of it."""

from __future__ import annotations

import pytest
from streamlit.runtime.scriptrunner_utils.exceptions import StopException

from bert_core.serving.rooms import View
from ui import going

VIEW = View("masking", (("text", "It rained."), ("pair", "")), (("mask", "2"),))


class Address(dict):
    """As Streamlit's: what a key stands for, as a list."""

    def get_all(self, key):
        return [self[key]] if key in self else []


@pytest.fixture
def session(monkeypatch):
    """A session's state and address, without Streamlit."""
    state, address = {}, Address(look="1")
    monkeypatch.setattr(going.st, "session_state", state)
    monkeypatch.setattr(going.st, "query_params", address)
    going.to(VIEW)
    return state, address


def ends(error):
    """A dictionary that raises when a key is set: a run that ends there, or a fault."""

    class Ends(Address):
        def __setitem__(self, key, value):
            raise error

    return Ends()


def test_a_run_that_ends_in_the_midst_leaves_all_of_it_to_the_next(session, monkeypatch):
    state, address = session
    monkeypatch.setattr(going.st, "query_params", ends(StopException()))
    with pytest.raises(StopException):
        going.arrive("masking")
    assert going.is_sent()
    monkeypatch.setattr(going.st, "query_params", address)
    going.arrive("masking")
    assert (state["text"], state["pair"], address) == ("It rained.", "", {"mask": "2", "text": "It rained."})
    assert not going.is_sent()


def test_what_can_not_be_taken_on_is_tried_once(session, monkeypatch):
    monkeypatch.setattr(going.st, "query_params", ends(KeyError("mask")))
    with pytest.raises(KeyError):
        going.arrive("masking")
    assert not going.is_sent()
