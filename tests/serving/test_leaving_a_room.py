"""A seat is free again at once, however the code was typed."""

import pytest

from bert_core.serving.rooms import Rooms


@pytest.mark.parametrize("typed", [lambda code: code, lambda code: f" {code[:2].lower()}-{code[2:]} "])
def test_leaving_by_the_code_as_typed_frees_the_seat(typed):
    rooms = Rooms()
    code, _ = rooms.open()
    seat, other = rooms.join(typed(code)), rooms.join(code)
    rooms.leave(typed(code), seat)
    assert rooms.follow(code, other).followers == 1


@pytest.mark.parametrize("code", ["", "no code", "ZZZZZ"])
def test_leaving_where_there_is_no_such_room_or_seat_takes_nobody_theirs(code):
    rooms = Rooms()
    here, _ = rooms.open()
    seat = rooms.join(here)
    rooms.leave(code, seat)
    rooms.leave(here, "another seat")
    assert rooms.follow(here, seat).followers == 1


def test_who_leaves_and_comes_again_has_one_guess():
    rooms = Rooms()
    code, key = rooms.open()
    seats = [rooms.join(code, f"browser {n}") for n in range(3)]
    rooms.ask(code, key, "A [MASK] barked.")
    for seat in seats[:2]:
        rooms.guess(code, seat, 1, "dog")
    rooms.leave(code, seats[0])
    assert rooms.teacher_state(code, key).poll.guesses == (("dog", 2),)
    again = rooms.join(code, "browser 0")
    rooms.guess(code, again, 1, "fox")
    rooms.leave(code, seats[2])  # had made none
    assert set(rooms.teacher_state(code, key).poll.guesses) == {("dog", 1), ("fox", 1)}
    rooms.reveal(code, key)
    rooms.leave(code, again)
    assert set(rooms.teacher_state(code, key).poll.guesses) == {("dog", 1), ("fox", 1)}
