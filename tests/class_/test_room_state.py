"""Rooms: bounded, locked, ending by themselves, and only the teacher's key controls them."""

from __future__ import annotations

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_core.serving import rooms as module
from bert_core.serving.rooms import RoomError, Rooms, View, tidy_code, tidy_guess

MASKING = View("masking", (("text", "the [MASK] slept"), ("layer", 3)), (("mask", "2"),))


class Clock:
    """Seconds that pass only when told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def rooms(clock) -> Rooms:
    return Rooms(clock)


def test_followers_see_what_the_teacher_shows(rooms):
    code, key = rooms.open()
    seat = rooms.join(code)
    assert rooms.follow(code, seat).view == View()
    for view in (MASKING, View("tokens")):
        rooms.show(code, key, view)
        state = rooms.follow(code, seat)
        assert (state.view, state.followers) == (view, 1)


def test_what_is_lent_goes_with_its_view_and_no_further(rooms):
    code, key = rooms.open()
    seat, model = rooms.join(code), object()
    rooms.show(code, key, View("cls"), {"mine:topic": model})
    assert rooms.follow(code, seat).lent == {"mine:topic": model}
    assert rooms.teacher_state(code, key).lent == {"mine:topic": model}
    rooms.show(code, key, View("tokens"))
    assert rooms.follow(code, seat).lent == {}


def test_code_is_read_as_people_type_it(rooms):
    code, _ = rooms.open()
    assert rooms.join(f" {code[:2].lower()}-{code[2:].lower()} ")
    assert set(code) <= set(module.ALPHABET)
    assert not set("0O1IL") & set(module.ALPHABET)
    with pytest.raises(RoomError, match="has another form"):
        rooms.join(" " * 20 + code)


@pytest.mark.parametrize("act", [
    lambda r, c, k: r.show(c, k, MASKING), lambda r, c, k: r.ask(c, k, "a [MASK]"), lambda r, c, k: r.reveal(c, k),
    lambda r, c, k: r.end_poll(c, k), lambda r, c, k: r.close(c, k), lambda r, c, k: r.teacher_state(c, k)])
@pytest.mark.parametrize("wrong", ["", "x", "é" * 24, "a" * 10_000])
def test_a_wrong_key_changes_nothing(rooms, act, wrong):
    code, key = rooms.open()
    other_code, other_key = rooms.open()
    rooms.show(code, key, MASKING)
    rooms.ask(code, key, "the [MASK] slept")
    before = rooms.teacher_state(code, key)
    for bad in (wrong, other_key):
        with pytest.raises(RoomError, match="the key is not this room's"):
            act(rooms, code, bad)
    assert rooms.teacher_state(code, key) == before


def test_poll_counts_one_guess_a_seat_and_hides_the_tally(rooms):
    code, key = rooms.open()
    seats = [rooms.join(code) for _ in range(3)]
    rooms.ask(code, key, "the [MASK] barked")
    for seat, word in zip(seats, ("Dog", "dog!", "cat"), strict=True):
        rooms.guess(code, seat, 1, word)
    rooms.guess(code, seats[2], 1, "fox")
    assert rooms.teacher_state(code, key).poll.guesses == (("dog", 2), ("fox", 1))
    hidden = rooms.follow(code, seats[0]).poll
    assert (hidden.guesses, hidden.count, hidden.revealed) == ((), 3, False)
    rooms.reveal(code, key)
    assert rooms.follow(code, seats[0]).poll.guesses == (("dog", 2), ("fox", 1))
    with pytest.raises(RoomError, match="no poll is running"):
        rooms.guess(code, seats[0], 1, "late")
    rooms.end_poll(code, key)
    assert rooms.follow(code, seats[0]).poll is None
    with pytest.raises(RoomError, match="no poll is running"):
        rooms.guess(code, seats[0], 1, "later")
    rooms.ask(code, key, "the [MASK] slept")
    assert rooms.guess(code, seats[0], 2, "dog") == "dog"
    again = rooms.follow(code, seats[0]).poll
    assert (again.number, again.guesses, again.count, again.revealed) == (2, (), 1, False)


@pytest.mark.parametrize(("typed", "counted"), [
    (("Paris", "Paris", "paris"), ("Paris", 3)), (("dog", "dog", "Dog"), ("dog", 3)), (("Dog", "dog"), ("dog", 2)),
    (("Straße", "Straße!"), ("Straße", 2))])
def test_a_guess_keeps_its_case_and_counts_in_any(rooms, typed, counted):
    code, key = rooms.open()
    rooms.ask(code, key, "she lives in [MASK]")
    for word in typed:
        rooms.guess(code, rooms.join(code), 1, word)
    assert rooms.teacher_state(code, key).poll.guesses == (counted,)


def test_a_stranger_has_no_vote(rooms):
    code, key = rooms.open()
    rooms.ask(code, key, "the [MASK] barked")
    with pytest.raises(RoomError, match="join the room"):
        rooms.guess(code, "no seat", 1, "dog")


def test_rooms_end_by_themselves(rooms, clock):
    code, key = rooms.open()
    clock.now = module.MAX_IDLE - 1
    rooms.show(code, key, MASKING)
    clock.now = 2 * module.MAX_IDLE - 2
    assert rooms.join(code)
    clock.now += 2
    with pytest.raises(RoomError, match="there is no room"):
        rooms.join(code)
    code, key = rooms.open()
    end = clock.now + module.MAX_AGE
    while clock.now < end - 1000:
        clock.now += 1000
        rooms.teacher_state(code, key)
    clock.now = end
    with pytest.raises(RoomError, match="it may have ended"):
        rooms.teacher_state(code, key)


def test_seats_are_bounded_and_freed(rooms, clock, monkeypatch):
    monkeypatch.setattr(module, "MAX_FOLLOWERS", 3)
    code, _ = rooms.open()
    seats = [rooms.join(code) for _ in range(3)]
    with pytest.raises(RoomError, match="full"):
        rooms.join(code)
    rooms.leave(code, seats[0])
    assert rooms.join(code)
    clock.now = module.FOLLOWER_IDLE - 1
    rooms.follow(code, seats[1])
    clock.now += 2
    assert rooms.follow(code, seats[1]).followers == 1
    assert rooms.follow(code, seats[2]).followers == 2
    assert rooms.join(code)
    clock.now += module.FOLLOWER_IDLE
    newcomer = rooms.join(code)
    assert rooms.follow(code, newcomer).followers == 1
    rooms.follow(code, "x" * 10_000)
    assert max(map(len, rooms._rooms[code].followers)) <= 40


def test_guesses_are_bounded_by_the_seats_although_those_who_leave_leave_theirs(rooms, monkeypatch):
    monkeypatch.setattr(module, "MAX_FOLLOWERS", 2)
    code, key = rooms.open()
    rooms.ask(code, key, "the [MASK] barked")
    seats = []
    for word in ("dog", "cat"):
        seats.append(rooms.join(code))
        rooms.guess(code, seats[-1], 1, word)
        rooms.leave(code, seats[-1])
    late = rooms.join(code)
    with pytest.raises(RoomError, match="all the 2 guesses it can hold"):
        rooms.guess(code, late, 1, "fox")
    rooms.follow(code, seats[0])
    assert rooms.guess(code, seats[0], 1, "fox") == "fox"


def test_no_two_rooms_have_one_code(rooms, monkeypatch):
    letters = iter("A" * 10 + "B" * 5)
    monkeypatch.setattr(module.secrets, "choice", lambda _: next(letters))
    assert [rooms.open()[0] for _ in range(2)] == ["AAAAA", "BBBBB"]


def test_number_of_rooms_is_bounded(rooms, clock):
    opened = [rooms.open() for _ in range(module.MAX_ROOMS)]
    assert len({code for code, _ in opened}) == module.MAX_ROOMS
    with pytest.raises(RoomError, match="are in use"):
        rooms.open()
    rooms.close(*opened[0])
    assert rooms.open()
    clock.now = module.MAX_IDLE
    assert rooms.open()


def test_rooms_that_were_opened_and_left_keep_no_teacher_out(rooms, clock):
    left = [rooms.open()[0] for _ in range(module.MAX_ROOMS)]
    clock.now = module.ABANDONED + 1
    code, key = rooms.open()
    assert rooms.teacher_state(code, key)
    with pytest.raises(RoomError, match="there is no room"):
        rooms.join(left[0])
    assert all(rooms.join(code) for code in left[1:]), "one ends, for the one that is opened"


def test_a_room_with_its_teacher_or_its_class_is_taken_from_nobody(rooms, clock):
    """The teacher of the first is back from 20 seconds without a network, the second room's class is still there."""
    opened = [rooms.open() for _ in range(module.MAX_ROOMS)]
    clock.now = module.ABANDONED + 1
    for room in opened[2:]:
        rooms.teacher_state(*room)
    seat = rooms.join(opened[1][0])
    clock.now -= 20
    rooms.teacher_state(*opened[0])
    clock.now += 20
    with pytest.raises(RoomError, match="are in use"):
        rooms.open()
    assert rooms.follow(opened[1][0], seat)
    clock.now += module.FOLLOWER_IDLE
    assert rooms.open(), "the class has gone too"
    assert rooms.teacher_state(*opened[0])
    with pytest.raises(RoomError, match="there is no room"):
        rooms.join(opened[1][0])


@pytest.mark.parametrize("view", [
    View("no/page"), View(""), View("masking", tuple((f"k{n}", n) for n in range(41))),
    View("masking", (("text", "x" * 4001),)), View("masking", (), (("k" * 41, "v"),))])
def test_views_past_the_bounds_are_refused(rooms, view):
    code, key = rooms.open()
    with pytest.raises(RoomError):
        rooms.show(code, key, view)
    assert rooms.teacher_state(code, key).view == View()


def test_a_view_as_large_as_the_bounds_is_shown(rooms):
    code, key = rooms.open()
    view = View("masking", tuple((f"{n:040}", "x" * 4000) for n in range(40)))
    rooms.show(code, key, view)
    assert rooms.teacher_state(code, key).view == view


def test_polls_need_a_gap(rooms):
    code, key = rooms.open()
    rooms.ask(code, key, "[MASK]".ljust(4000, "x"))
    with pytest.raises(RoomError, match=r"\[MASK\]"):
        rooms.ask(code, key, "no gap here")
    with pytest.raises(RoomError, match="at most 4,000 characters; this one has 5,006"):
        rooms.ask(code, key, "[MASK]" + "x" * 5000)


@given(st.text(max_size=300))
def test_any_guess_is_one_bounded_word_or_an_error(text):
    try:
        word = tidy_guess(text)
    except RoomError:
        return
    assert 0 < len(word) <= module.MAX_GUESS
    assert word.isprintable()
    assert not set(word) & set(" \t\n")


@pytest.mark.parametrize(("typed", "word"), [(" Coffee! ", "Coffee"), ("“tea”", "“tea”"), ("tea , !", "tea")])
def test_a_guess_is_the_word_without_its_marks(typed, word):
    assert tidy_guess(typed) == word


def test_two_words_are_no_guess_and_none_of_them_is_counted():
    with pytest.raises(RoomError, match="one word only: “ice cream” is 2 words"):
        tidy_guess("ice cream")


def test_a_long_word_is_cut():
    assert tidy_guess("x" * 150) == "x" * module.MAX_GUESS


@given(st.text(max_size=40))
def test_any_code_is_a_code_or_an_error(text):
    try:
        code = tidy_code(text)
    except RoomError:
        return
    assert len(code) == module.CODE_LENGTH
    assert set(code) <= set(module.ALPHABET)


def test_nothing_personal_is_kept(rooms):
    code, _ = rooms.open("a visitor's cookie")
    seat = rooms.join(code, "a visitor's cookie")
    kept = vars(rooms._rooms[code])
    assert set(kept) == {"code", "key", "owner", "born", "seen", "secret", "view", "lent", "followers",
                         "polls", "poll_text", "guesses", "revealed", "model", "answer"}
    assert list(kept["followers"]) == [seat]
    assert "cookie" not in str(kept)


def test_sixty_followers_at_once_see_the_views_in_their_order_up_to_the_last():
    rooms, seen = Rooms(), [[] for _ in range(60)]
    views = [View(), *(View("masking", (("text", f"sentence {n}"),)) for n in range(1, 11))]
    code, key = rooms.open()
    everyone = threading.Barrier(61)

    def follow(n: int) -> None:
        seat = rooms.join(code)
        everyone.wait()
        while not seen[n] or seen[n][-1] != views[-1]:
            seen[n].append(rooms.follow(code, seat).view)
            time.sleep(0.01)

    threads = [threading.Thread(target=follow, args=(n,), daemon=True) for n in range(60)]
    for thread in threads:
        thread.start()
    everyone.wait()
    for view in views[1:]:
        rooms.show(code, key, view)
        time.sleep(0.03)
    for thread in threads:
        thread.join(timeout=240)
    assert rooms.teacher_state(code, key).followers == 60
    for one in seen:
        order = [views.index(view) for view in one]
        assert order == sorted(order)
        assert order[-1] == 10


def test_the_models_answer_reaches_the_class_once_revealed_and_ends_with_the_poll(rooms):
    code, key = rooms.open()
    seat = rooms.join(code)
    words = [(f"word{n}" * 20, 0.1) for n in range(9)]
    rooms.ask(code, key, "the [MASK] barked")
    rooms.answer(code, key, 1, "twin-bert", words)
    assert rooms.follow(code, seat).poll.answer == ()
    rooms.reveal(code, key)
    rooms.answer(code, key, 1, "twin-bert" * 9, words)
    poll = rooms.follow(code, seat).poll
    assert (poll.model, len(poll.answer)) == (("twin-bert" * 9)[:module.MAX_NAME], module.MAX_ANSWER)
    assert all(len(word) <= module.MAX_NAME for word, _ in poll.answer)
    rooms.ask(code, key, "a [MASK] again")
    rooms.reveal(code, key)
    assert rooms.follow(code, seat).poll.answer == ()


def test_a_visitor_has_one_seat_and_one_vote_however_often_it_comes(rooms, clock):
    code, key = rooms.open()
    rooms.ask(code, key, "the [MASK] barked")
    for word in ("dog", "cat", "fox"):
        rooms.guess(code, rooms.join(code, "a browser"), 1, word)
        clock.now += module.FOLLOWER_IDLE + 1
    other = rooms.join(code, "another")
    rooms.guess(code, other, 1, "dog")
    poll = rooms.teacher_state(code, key).poll
    assert (poll.count, set(poll.guesses)) == (2, {("fox", 1), ("dog", 1)})
    assert rooms.join(rooms.open()[0], "another") != other


def test_a_guess_for_the_question_before_is_not_counted_for_this_one(rooms):
    code, key = rooms.open()
    seat = rooms.join(code)
    rooms.ask(code, key, "the [MASK] barked")
    rooms.ask(code, key, "the [MASK] meowed")
    with pytest.raises(RoomError, match="the question has changed"):
        rooms.guess(code, seat, 1, "dog")
    rooms.reveal(code, key)
    rooms.answer(code, key, 1, "twin-bert", [("dog", 0.5)])
    poll = rooms.follow(code, seat).poll
    assert (poll.count, poll.answer) == (0, ())
    rooms.answer(code, key, 2, "twin-bert", [("cat", 0.5)])
    assert rooms.follow(code, seat).poll.answer == (("cat", 0.5),)


def test_a_visitors_third_room_ends_the_one_left_longest(rooms, clock):
    first, second = (rooms.open("a browser") for _ in range(2))
    others = [rooms.open("another"), rooms.open(), rooms.open(), rooms.open()]
    clock.now = 1
    rooms.teacher_state(*first)
    third = rooms.open("a browser")
    with pytest.raises(RoomError, match="there is no room"):
        rooms.teacher_state(*second)
    for room in (first, third, *others):
        assert rooms.teacher_state(*room)


def test_who_follows_a_room_that_another_one_ended_is_told():
    told: list[tuple[str, bool]] = []
    rooms = Rooms(changed=lambda *news: told.append(news))
    first, _, _ = (rooms.open("a browser") for _ in range(3))
    assert told == [(first[0], False)]


def test_who_waits_is_told_of_what_is_new_and_of_nothing_else():
    told: list[tuple[str, bool]] = []
    rooms = Rooms(changed=lambda *news: told.append(news))
    code, key = rooms.open()
    view, poll = (code, True), (code, False)

    def tells(act, *about) -> list[tuple[str, bool]]:
        told.clear()
        act(code, key, *about)
        return told

    assert tells(rooms.show, MASKING) == [view]
    assert tells(rooms.show, MASKING) == []
    assert tells(rooms.show, View("tokens")) == [view]
    assert tells(rooms.teacher_state) == []
    assert tells(rooms.ask, "the [MASK] slept") == [poll]
    assert tells(rooms.reveal) == [poll]
    assert tells(rooms.answer, 1, "twin-bert", [("dog", 0.4)]) == [poll]
    assert tells(rooms.end_poll) == [poll]
    with pytest.raises(RoomError):
        rooms.show(code, "another key", MASKING)
    assert tells(rooms.close) == [poll]
