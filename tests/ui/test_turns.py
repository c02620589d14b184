"""Turns at drawing: never more at once than there are, in order, and nobody waits for ever."""

import threading
import time

import pytest

from ui.turns import Turns


def in_threads(count, work):
    threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)


def in_line(turns, count, work):
    """Threads that come one after the other while nobody has a turn free."""
    with turns.one():
        threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
        for number, thread in enumerate(threads):
            thread.start()
            while sum(map(len, turns._lines)) <= number:
                time.sleep(0.001)
    for thread in threads:
        thread.join(20)


def test_no_more_at_once_than_there_are_turns():
    turns, lock, inside, most = Turns(2, patience=20), threading.Lock(), [0], [0]

    def draw(_):
        with turns.one():
            with lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
            time.sleep(0.01)
            with lock:
                inside[0] -= 1

    in_threads(12, draw)
    assert most == [2]


def test_who_waits_for_the_engine_lets_others_draw():
    turns, together = Turns(1, patience=20), threading.Barrier(4, timeout=10)

    def draw(_):
        with turns.one(), turns.away():
            together.wait()  # broken unless all four are away at the same time

    in_threads(4, draw)
    assert not together.broken


def test_who_has_nothing_to_wait_for_keeps_its_turn():
    turns, drawn = Turns(1, patience=20), []

    def draw(number):
        with turns.one():
            for _ in range(3):
                with turns.away(unless=True):
                    drawn.append(number)

    in_line(turns, 4, draw)
    assert drawn == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_a_slow_page_holds_nobody_up_for_longer_than_patience():
    turns = Turns(1, patience=0.05)
    with turns.one():
        began, held = time.perf_counter(), []

        def draw(_):
            with turns.one():
                held.append(turns.held)

        in_threads(1, draw)
        assert held == [False]
        assert time.perf_counter() - began < 5
    with turns.one():  # who went on without a turn gave none back
        assert turns.held
        in_threads(1, draw)
        assert held == [False, False]


def test_a_page_that_stops_or_fails_gives_its_turn_back():
    turns = Turns(1)
    for _ in range(3):
        with pytest.raises(KeyError), turns.one(), turns.away():
            raise KeyError
    assert not turns.held
    with turns.one():
        assert turns.held


def test_who_follows_draws_after_everybody_else_and_in_order():
    turns, drawn = Turns(1, patience=20), []

    def draw(number):
        with turns.one(follows=number < 3):
            drawn.append(number)

    in_line(turns, 5, draw)
    assert drawn == [3, 4, 0, 1, 2]


def test_a_part_of_a_page_is_drawn_in_its_turn_and_a_part_alone_waits_for_one():
    turns, drawn = Turns(1, patience=20), []
    with turns.one():
        with turns.one(follows=True):
            assert turns.held
        assert turns.held, "the page goes on"
    assert not turns.held

    def work(n):
        with turns.one(follows=n == 0):  # the part alone, of another session
            drawn.append(n)

    in_line(turns, 3, work)
    assert drawn == [1, 2, 0]


def test_who_lost_patience_is_not_called():
    turns = Turns(1, patience=0.02)
    with turns.one():
        in_threads(3, lambda _: turns.one().__enter__())
    assert turns._free == 1
