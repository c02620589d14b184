"""The queue: fair between visitors, newest first within one, bounded, nothing lost."""

import threading
import time

import pytest

from bert_core.serving.waiting import EVERYONE, Busy, Stopped, Superseded, TimedOut, WaitingRoom
from bert_core.trace import TraceRequest


def ask(text: str, model: str = "m", precision: str = "fp32") -> TraceRequest:
    return TraceRequest(text=text, model=model, precision=precision)


def texts(tickets) -> list[str]:
    return [ticket.request.text for ticket in tickets]


def waits_in(room: WaitingRoom) -> tuple[threading.Thread, list]:
    """A thread that waits for a batch, and where it puts that."""
    got: list = []
    thread = threading.Thread(target=lambda: got.append(room.next_batch(16, timeout=60)), daemon=True)
    thread.start()
    while not room._changed._waiters:
        time.sleep(0.001)
    return thread, got


def test_a_newer_call_supersedes_what_still_waits():
    room = WaitingRoom()
    (old,) = room.enter([ask("he")], "ann")
    (new,) = room.enter([ask("hel")], "ann")
    with pytest.raises(Superseded):
        old.future.result(timeout=0)
    assert room.next_batch(16) == [new]


def test_requests_of_one_call_stay_together():
    room = WaitingRoom()
    room.enter([ask("a"), ask("b")], "ann")
    assert texts(room.next_batch(16)) == ["a", "b"]


def test_visitors_take_turns():
    room = WaitingRoom()
    room.enter([ask(f"ann {n}") for n in range(4)], "ann")
    room.enter([ask("bo 0")], "bo")
    room.enter([ask("cy 0")], "cy")
    assert texts(room.next_batch(3)) == ["ann 0", "bo 0", "cy 0"]
    assert texts(room.next_batch(16)) == ["ann 1", "ann 2", "ann 3"]


@pytest.mark.parametrize("text", ["字" * 496, "!" * 496, "\N{SNOWMAN}" * 496, "ж" * 300 + " " + "ж" * 195],
                         ids=["Chinese", "signs", "pictures", "Cyrillic"])
def test_a_text_whose_characters_are_pieces_is_as_long_as_it_reads(text):
    """Sixteen of them were one pass of 8,000 tokens."""
    room = WaitingRoom()
    for n in range(16):
        room.enter([ask(text)], f"visitor {n}")
    assert [len(room.next_batch(16)) for _ in range(4)] == [4, 4, 4, 4]  # of 496 pieces each
    for n in range(16):
        room.enter([ask(text[:100])], f"visitor {n}")
    assert len(room.next_batch(16)) == 16


def test_a_batch_of_long_texts_is_short_so_that_others_can_join_soon():
    room = WaitingRoom()
    long = "many words " * 1000  # of which a model reads the beginning
    room.enter([ask(f"{n} {long}") for n in range(5)], "ann")
    room.enter([ask("a word")], "bo")
    assert [text[:6] for text in texts(room.next_batch(16))] == ["0 many", "a word", "1 many", "2 many"]
    assert [text[:2] for text in texts(room.next_batch(16))] == ["3 ", "4 "]


def test_a_batch_holds_one_model_and_one_precision():
    room = WaitingRoom()
    room.enter([ask("a", "m"), ask("b", "n"), ask("c", "m", "bf16"), ask("d", "m")], "ann")
    assert texts(room.next_batch(16)) == ["a", "d"]
    assert texts(room.next_batch(16)) == ["b"]
    assert texts(room.next_batch(16)) == ["c"]
    assert len(room) == 0


def test_nameless_visitors_supersede_nobody():
    room = WaitingRoom()
    room.enter([ask("a")], None)
    room.enter([ask("b")], None)
    assert texts(room.next_batch(16)) == ["a", "b"]


def test_what_is_for_everyone_has_a_turn_for_each_request_and_is_not_superseded():
    room = WaitingRoom(most_a_visitor=4)
    room.enter([ask(f"ann {n}") for n in range(4)], "ann")
    shared = room.enter([ask(f"corpus {n}") for n in range(3)], EVERYONE)
    room.enter([ask("other 0")], EVERYONE)
    assert texts(room.next_batch(5)) == ["ann 0", "corpus 0", "corpus 1", "corpus 2", "other 0"]
    rest = room.enter([ask("corpus 3"), ask("corpus 4")], EVERYONE, goes_on=shared[0].call)
    assert len({ticket.visitor for ticket in rest}) == 2
    assert texts(room.next_batch(3)) == ["ann 1", "corpus 3", "corpus 4"]
    with pytest.raises(Busy):
        room.enter([ask(str(n)) for n in range(5)], EVERYONE)


def test_a_full_room_says_so():
    room = WaitingRoom(most=3, most_a_visitor=2)
    room.enter([ask("a"), ask("b")], "ann")
    with pytest.raises(Busy, match="2 requests wait"):
        room.enter([ask("c"), ask("d")], "bo")
    with pytest.raises(Busy):
        room.enter([ask(str(n)) for n in range(3)], "cy")
    room.enter([ask("e")], "bo")
    assert len(room) == 3


def test_refusing_the_newer_call_still_ends_the_older():
    room = WaitingRoom(most=2, most_a_visitor=1)
    (old,) = room.enter([ask("a")], "ann")
    with pytest.raises(Busy):
        room.enter([ask("b"), ask("c")], "ann")
    with pytest.raises(Superseded):
        old.future.result(timeout=0)
    assert room.next_batch(16, timeout=0) == []


def test_a_newer_call_needs_no_more_room_than_the_older_leaves():
    room = WaitingRoom(most=3)
    room.enter([ask("a"), ask("b")], "ann")
    newer = room.enter([ask("c"), ask("d"), ask("e")], "ann")
    with pytest.raises(Busy, match="3 requests wait"):
        room.enter([ask("f")], "bo")
    assert room.next_batch(16) == newer


def test_a_request_past_its_deadline_is_given_up():
    room = WaitingRoom()
    (late,) = room.enter([ask("a")], "ann", seconds=0.01)
    room.enter([ask("b")], "bo")
    time.sleep(0.03)
    assert texts(room.next_batch(16)) == ["b"]
    with pytest.raises(TimedOut):
        late.future.result(timeout=0)


def test_an_empty_room_waits_no_longer_than_asked():
    assert WaitingRoom().next_batch(16, timeout=0.01) == []


def test_closing_gives_up_on_everyone():
    room = WaitingRoom()
    (ticket,) = room.enter([ask("a")], "ann")
    room.close()
    with pytest.raises(Stopped):
        ticket.future.result(timeout=0)
    assert len(room) == 0


def test_work_shares_no_pass_and_waits_behind_the_others_for_its_next_step():
    room = WaitingRoom()
    (work,) = room.enter([ask("gradients")], "ann", work=iter(()))
    room.enter([ask("b")], "bo")
    assert room.next_batch(16) == [work]
    room.put_back(work)
    assert texts(room.next_batch(16)) == ["b"]
    assert room.next_batch(16) == [work]


def test_work_is_superseded_by_what_its_visitor_asks_for_meanwhile():
    room = WaitingRoom()
    (work,) = room.enter([ask("he")], "ann", work=iter(()))
    assert room.next_batch(16) == [work]
    (new,) = room.enter([ask("hel")], "ann")
    room.put_back(work)
    with pytest.raises(Superseded):
        work.future.result(timeout=0)
    assert room.next_batch(16) == [new]


def test_who_waits_for_a_batch_is_told_at_once_that_the_room_is_closed():
    room = WaitingRoom()
    waits, got = waits_in(room)
    room.close()
    waits.join(20)
    assert got == [[]]
    assert room.next_batch(16, timeout=60) == []


def test_what_is_left_of_a_batchs_visitor_does_not_wait_while_the_batch_works():
    room = WaitingRoom()
    room.enter([ask("a"), ask("b")], "ann", seconds=0.05)
    batch = room.next_batch(1)
    time.sleep(0.1)
    room.done(batch)
    assert texts(room.next_batch(1)) == ["b"]


def test_who_comes_to_a_closed_room_is_told_at_once():
    room = WaitingRoom()
    room.close()
    with pytest.raises(Stopped, match="the engine was stopped"):
        room.enter([ask("a")], "ann")
    assert len(room) == 0


def test_work_whose_step_was_the_last_before_the_end_is_given_up():
    room = WaitingRoom()
    (work,) = room.enter([ask("gradients")], "ann", work=iter(()))
    assert room.next_batch(16) == [work]
    room.close()
    room.put_back(work)
    with pytest.raises(Stopped):
        work.future.result(timeout=0)
    assert len(room) == 0


def test_the_rest_of_an_older_call_gives_way_to_a_newer_ones_work():
    """It comes between two steps, when nothing of the newer call waits."""
    room = WaitingRoom()
    older = room.enter([ask("a")], "ann")
    assert room.next_batch(16) == older
    (work,) = room.enter([ask("gradients")], "ann", work=iter(()))
    assert room.next_batch(16) == [work]
    (rest,) = room.enter([ask("b")], "ann", goes_on=older[0].call)
    room.put_back(work)
    with pytest.raises(Superseded):
        rest.future.result(timeout=0)
    assert room.next_batch(16) == [work]


def test_the_rest_of_a_newer_call_supersedes_that_of_an_older_one():
    room = WaitingRoom()
    calls = []
    for text in ("older", "newer"):
        calls += room.enter([ask(text)], "ann")
        assert room.next_batch(16) == calls[-1:]
    (older,) = room.enter([ask("rest of the older")], "ann", goes_on=calls[0].call)
    (newer,) = room.enter([ask("rest of the newer")], "ann", goes_on=calls[1].call)
    with pytest.raises(Superseded):
        older.future.result(timeout=0)
    with pytest.raises(Superseded):
        room.enter([ask("more of the older")], "ann", goes_on=calls[0].call)
    assert room.next_batch(16) == [newer]


def test_who_types_faster_than_the_turn_comes_round_keeps_the_place():
    room = WaitingRoom()
    room.enter([ask("he")], "ann")
    for who in ("bo", "cy"):
        room.enter([ask(who)], who)
    room.enter([ask("hel")], "ann")
    assert [texts(room.next_batch(1)) for _ in range(3)] == [["hel"], ["bo"], ["cy"]]


def test_work_that_was_put_back_stands_behind_whoever_came_meanwhile():
    room = WaitingRoom()
    older = room.enter([ask("a")], "ann")
    assert room.next_batch(16) == older
    (work,) = room.enter([ask("gradients")], "ann", work=iter(()))
    assert room.next_batch(16) == [work]
    room.enter([ask("b")], "ann", goes_on=older[0].call)
    (other,) = room.enter([ask("c")], "bo")
    room.put_back(work)
    assert [room.next_batch(1) for _ in range(2)] == [[other], [work]]


def test_who_waits_for_a_batch_is_told_at_once_that_the_process_ends():
    room = WaitingRoom()
    thread, got = waits_in(room)
    room.end()
    thread.join(20)
    assert got == [[]]
    (left,) = room.enter([ask("a")], "ann")
    assert room.next_batch(16, timeout=0) == []
    assert not left.future.done()


def test_who_waits_for_a_batch_gets_work_that_is_put_back():
    room = WaitingRoom()
    (work,) = room.enter([ask("gradients")], "ann", work=iter(()))
    assert room.next_batch(16) == [work]
    thread, got = waits_in(room)
    room.put_back(work)
    thread.join(20)
    assert got == [[work]]
