"""A follower who comes back, by a reload or from something of their own, sees what the teacher shows."""

from __future__ import annotations

import pytest

from bert_core.serving.rooms import RoomError, Rooms, View
from tests.payloads import page, said, visit
from ui import rooms

NOW = "The dog [MASK] all night."


@pytest.fixture
def room():
    """(code, key) of a room that shows a sentence on Masking > Neurons."""
    opened = rooms.registry().open()
    rooms.registry().show(*opened, View("masking", (
        ("model", "twin-bert"), ("pair", ""), ("text", NOW), ("view", "Neurons"))))
    yield opened
    rooms.registry().close(*opened)


def test_a_reload_at_an_old_address_of_the_same_page_brings_what_the_teacher_shows_now(room):
    at = visit("masking", room=room[0], text="Old [MASK].", pair="Old pair.", model="twin-gpt", view="80/10/10")
    assert (at.session_state["text"], at.session_state["pair"]) == (NOW, "")
    assert (at.session_state["model"], at.session_state["view"]) == ("twin-bert", "Neurons")
    assert "twin-gpt" not in said(at)
    at.run()
    assert at.session_state["text"] == NOW
    assert at.query_params["text"] in (NOW, [NOW])
    assert not set(at.query_params) & {"pair", "model"}


def test_who_looks_at_something_of_their_own_is_told_and_finds_back(room):
    at = visit("masking", room=room[0])
    assert at.session_state["text"] == NOW
    assert "something of your own" not in said(at)
    at.text_input(key="text").set_value("A cat [MASK].").run()
    assert "you are looking at something of your own" in said(at)
    at.button(key="_back").click().run()
    assert at.session_state["text"] == NOW
    assert "something of your own" not in said(at)
    at.switch_page("pages/tokens.py").run()
    assert "you are looking at something of your own" in said(at)
    at.button(key="_back").click().run()
    assert at.session_state["view"] == "Neurons"
    assert "something of your own" not in said(at)


def test_a_teacher_who_reloads_finds_the_room_and_takes_control_without_its_key(monkeypatch):
    monkeypatch.setattr(rooms.visitors, "current", lambda: "teacher's browser")
    opened = rooms.registry().open("teacher's browser")
    rooms.registry().show(*opened, View("masking", (("text", NOW), ("view", "Neurons"))))
    try:
        at = visit("class")
        assert f"Room {opened[0]}, which you opened, is still open" in said(at)
        next(button for button in at.button if button.label == "Take control again").click().run()
        assert at.session_state["_teaching"] == opened
        assert (at.session_state["text"], at.session_state["view"]) == (NOW, "Neurons")
        monkeypatch.setattr(rooms.visitors, "current", lambda: "another browser")
        assert "which you opened" not in said(visit("class", view="Room"))
    finally:
        rooms.registry().close(*opened)


def test_only_the_browser_that_opened_a_room_gets_its_key():
    made = Rooms()
    code, key = made.open("ann")
    assert (made.left_open("ann"), made.left_open("ben"), made.left_open("")) == (code, "", "")
    assert made.take_back(code, "ann") == key
    for stranger in ("ben", ""):
        with pytest.raises(RoomError, match="another browser opened this room"):
            made.take_back(code, stranger)
    unowned, _ = made.open()
    with pytest.raises(RoomError):
        made.take_back(unowned, "")
    with pytest.raises(RoomError):
        made.take_back("NOSUCH", "ann")
    made.close(code, key)
    assert made.left_open("ann") == ""


def test_a_poll_is_not_offered_for_a_model_that_fills_no_gap(monkeypatch):
    opened = rooms.registry().open()
    try:
        at = page("class", view="Room", text=NOW, model="twin-gpt")
        at.session_state["_teaching"] = opened
        assert "twin-gpt can&#x27;t fill gaps" in said(at.run())
        assert "Ask the class" not in [button.label for button in at.button]
    finally:
        rooms.registry().close(*opened)
