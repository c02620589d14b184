"""The teacher's page of a room, run without a browser."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from bert_core.serving.waiting import Busy
from tests.payloads import page, said
from ui import rooms, state

TEXT = "the [MASK] barked"


@pytest.fixture
def room():
    """(code, key) of a room whose poll on TEXT is revealed; closed at the end."""
    code, key = rooms.registry().open()
    rooms.registry().ask(code, key, TEXT)
    rooms.registry().reveal(code, key)
    yield code, key
    rooms.registry().close(code, key)


def teach(room) -> AppTest:
    at = page("class", view="Room")
    at.session_state["_teaching"] = room
    return at.run()


def test_a_revealed_poll_hands_the_models_words_to_the_class(room):
    assert not teach(room).exception
    poll = rooms.registry().teacher_state(*room).poll
    assert poll.model == "twin-bert"
    chances = [chance for _, chance in poll.answer]
    assert len(chances) == 5
    assert 1 >= chances[0] >= chances[-1] > 0


def test_a_busy_engine_is_said_and_the_poll_waits(room, monkeypatch):
    def refuse(*_, **__):
        raise Busy("too many are waiting; try again")

    monkeypatch.setattr(type(state.engine()), "run_many", refuse)
    at = teach(room)
    assert not at.exception
    assert "too many are waiting" in said(at)
    assert rooms.registry().teacher_state(*room).poll.answer == ()


def test_the_guesses_stand_there_beside_a_model_that_fills_no_gap():
    code, key = rooms.registry().open()
    rooms.registry().ask(code, key, TEXT)
    for word in ("dog", "dog", "fox"):
        rooms.registry().guess(code, rooms.registry().join(code), 1, word)
    rooms.registry().reveal(code, key)
    at = page("class", view="Room", model="twin-gpt")
    at.session_state["_teaching"] = (code, key)
    words = said(at.run())
    assert "no gap that this model can fill" in words
    assert [words.partition(f">{word}<")[2].partition(" %")[0][-2:] for word in ("dog", "fox")] == ["67", "33"]
    rooms.registry().close(code, key)


def ask(at: AppTest) -> AppTest:
    return next(button for button in at.button if button.label == "Ask the class").click().run()


def test_a_sentence_too_long_for_a_poll_is_said(room):
    rooms.registry().end_poll(*room)
    at = page("class", view="Room", text="the [MASK] " + "barked and " * 400)
    at.session_state["_teaching"] = room
    assert "at most 4,000 characters" in said(at.run())
    assert "Ask the class" not in [button.label for button in at.button]


def test_a_room_that_ends_under_the_teachers_hand_is_said(monkeypatch):
    room = rooms.registry().open()
    at = page("class", view="Room", text=TEXT)
    at.session_state["_teaching"] = room
    at.run()
    asked = type(rooms.registry()).ask

    def end_first(registry, *control):
        registry.close(*room)
        return asked(registry, *control)

    monkeypatch.setattr(type(rooms.registry()), "ask", end_first)
    assert f"there is no room {room[0]}" in said(ask(at))
