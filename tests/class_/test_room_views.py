"""What a room's class gets to see of the teacher's page, and what a refused view costs: nothing but itself."""

from __future__ import annotations

import time
import urllib.parse
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from bert_core.serving.rooms import MAX_VALUE, View
from tests.payloads import PATIENCE, drawn, is_ready, page, said, visit
from ui import rooms, shell, state, training

FRAME = shell.frame


@pytest.fixture
def room():
    """(code, key) of an open room; closed at the end."""
    code, key = rooms.registry().open()
    yield code, key
    rooms.registry().close(code, key)


def teach(room, name: str, **parameters: object) -> AppTest:
    at = page(name, **parameters)
    at.session_state["_teaching"] = room
    return at.run()


def go_on(at: AppTest, name: str, **parameters: str) -> AppTest:
    """To another page by the sidebar, which leaves the address empty, or by one with parameters."""
    at.switch_page(f"pages/{name}.py")
    at.query_params.clear()
    for key, value in parameters.items():
        at.query_params[key] = value
    return at.run()


def shown(room) -> View:
    return rooms.registry().teacher_state(*room).view


def test_a_text_past_the_rooms_bound_is_said_and_costs_no_control(room):
    at = teach(room, "tokens", text="Paris is big.")
    before = shown(room)
    at.text_input(key="text").set_value("x" * (MAX_VALUE + 1)).run()
    assert "too long for a room" in said(at)
    assert "the class does not see this page" in said(at)
    assert shown(room) == before
    at.text_input(key="text").set_value("So is Rome.").run()
    assert "the class sees this page" in said(at)
    assert dict(shown(room).widgets)["text"] == "So is Rome."


def test_an_ended_room_ends_its_teachers_control():
    code, key = rooms.registry().open()
    at = teach((code, key), "class")
    rooms.registry().close(code, key)
    at.run()
    assert f"there is no room {code}" in said(at)
    assert "_teaching" not in at.session_state


def pages_of_thirty() -> None:
    """A page of thirty controls; which one the session says."""
    import streamlit as st

    from ui import controls, going

    name = st.session_state["_page"]
    for n in range(30):
        controls.toggle(f"{name} {n}", f"{name}{n}")
    st.text(",".join(key for key, _ in going.present_view(name).widgets))


def test_controls_of_pages_visited_before_are_not_sent():
    at = AppTest.from_function(pages_of_thirty, default_timeout=PATIENCE)
    for name in ("a", "b", "a"):
        at.session_state["_page"] = name
        keys = at.run().text[0].value.split(",")
        assert sorted(keys) == sorted(f"{name}{n}" for n in range(30))


def test_a_first_visit_sends_the_controls_with_what_a_page_before_left_in_them(room):
    at = teach(room, "masking", k="9")
    assert dict(shown(room).widgets)["k"] == 9
    go_on(at, "tokens")
    assert "k" not in dict(shown(room).widgets)
    go_on(at, "masking")
    assert dict(shown(room).widgets)["k"] == 9


def test_parameters_go_along_under_the_name_of_another_pages_slider(room):
    at = teach(room, "code")
    at.slider(key="layer").set_value(3).run()
    assert dict(shown(room).widgets)["layer"] == 3
    go_on(at, "attention", layer="5", head="2")
    view = shown(room)
    assert "layer" not in dict(view.widgets)
    assert dict(view.parameters) == {"layer": "5", "head": "2"}


def test_a_link_has_the_parameters_and_not_another_pages_slider():
    at = visit("code")
    at.slider(key="layer").set_value(3).run()
    go_on(at, "attention", layer="5", head="2")
    go_on(at, "class", view="Present")
    link = urllib.parse.urlsplit(at.code[0].value)
    assert link.path.endswith("attention")
    asked = urllib.parse.parse_qs(link.query)
    assert (asked["layer"], asked["head"]) == (["5"], ["2"])


def test_a_follower_whose_code_has_a_slider_opens_the_parameters(room):
    student = visit("code", room=room[0])
    student.slider(key="layer").set_value(3).run()
    rooms.registry().show(*room, View("attention", (("text", "Paris is big."),), (("head", "2"), ("layer", "5"))))
    student.run()
    assert not student.exception
    assert student.session_state["_page"] == "attention"
    assert student.query_params["layer"] == "5"
    rooms.registry().show(*room, View("attention", (("text", "Paris is big."),), (("head", "1"), ("layer", "4"))))
    student.run()
    assert not student.exception
    assert student.query_params["layer"] == "4"


@pytest.mark.parametrize(("view", "key"), [("By layer", "lines"), ("Sentences", "compare_lines")])
def test_typed_lines_reach_a_follower_on_the_same_page(room, view, key):
    student = visit("meaning", view=view, room=room[0])
    at = teach(room, "meaning", view=view)
    student.run()
    at.text_area(key=key).set_value("He sat on the bank of the river.\nThe bank lent me money.").run()
    at.run()
    assert dict(shown(room).widgets)[key].startswith("He sat")
    student.run()
    said(student)
    assert student.text_area(key=key).value == at.text_area(key=key).value


def test_who_follows_draws_what_the_teacher_shows_in_one_run(room, monkeypatch):
    student = visit("tokens", room=room[0])
    begun = []
    monkeypatch.setattr(shell, "frame", lambda page: begun.append(page) or FRAME(page))
    rooms.registry().show(*room, View("tokens", (("text", "Paris is big."), ("pair", ""))))
    student.run()
    assert is_ready(student)["text"] == "Paris is big."
    assert len(begun) == 1


def test_who_lets_go_and_joins_again_goes_along_at_once(room, monkeypatch):
    monkeypatch.setattr(state, "ECHO_SECONDS", 0.0)  # the link comes by hand, later
    rooms.registry().show(*room, View("tokens", (("text", "Paris is big."),)))
    student = visit("class", room=room[0])
    assert student.session_state["_page"] == "tokens"
    student.button(key="_let_go").click().run()
    go_on(student, "class")
    assert student.session_state["_page"] == "class"
    go_on(student, "class", room=room[0])
    assert student.session_state["_page"] == "tokens"


def test_a_follower_who_reloads_is_back_in_the_room_and_one_who_let_go_is_not(room):
    code = room[0]
    student = visit("tokens", room=f"{code[:2].lower()}-{code[2:]}")
    assert f"Following room <strong>{code}<" in said(student)
    assert student.query_params["room"] == code
    again = visit("tokens", room=student.query_params["room"])
    assert f"Following room <strong>{code}<" in said(again)
    again.button(key="_let_go").click().run()
    assert "room" not in again.query_params
    assert "Following room" not in said(again)


def test_a_link_to_a_room_that_is_none_is_said_where_its_code_can_be_typed():
    at = visit("class", room="ZZZZZ")
    assert "there is no room ZZZZZ" in said(at)
    assert [field.label for field in at.text_input if field.label == "Room code"]


def test_an_ended_room_is_said_to_who_reads_the_lessons_meanwhile(monkeypatch):
    code, key = rooms.registry().open()
    student = visit("class", room=code)
    student.session_state["view"] = "Lessons"
    student.run()
    rooms.registry().close(code, key)
    assert f"there is no room {code}" in said(student.run())


def test_back_to_an_address_of_before_one_let_go_is_no_wish_to_follow(room, monkeypatch):
    student = visit("tokens", room=room[0])
    student.button(key="_let_go").click().run()
    student.query_params["room"] = room[0]
    with monkeypatch.context() as back:
        back.setattr(rooms.going, "is_by_history", lambda: True)
        assert "Following room" not in said(student.run())
    assert "room" not in student.query_params
    student.query_params["room"] = room[0]
    assert "Following room" in said(visit("tokens", room=room[0]))


def test_an_address_that_was_on_its_way_while_one_let_go_is_no_wish_to_follow(room):
    student = visit("tokens", room=room[0])
    student.button(key="_let_go").click().run()
    student.query_params["room"] = room[0]  # of a look at the room that began before the click
    assert "Following room" not in said(student.run())
    assert "room" not in student.query_params


def test_a_room_that_ended_is_taken_out_of_its_followers_address(monkeypatch):
    code, key = rooms.registry().open()
    student = visit("tokens", room=code)
    rooms.registry().close(code, key)
    assert f"there is no room {code}" in said(student.run())
    assert "room" not in student.query_params
    assert f"there is no room {code}" in said(student.run())  # a run that follows at once takes no word away
    monkeypatch.setattr(rooms, "PROBLEM_STANDS", 0.0)
    assert "there is no room" not in said(student.run())


def ballot(code: str, seat: str) -> None:
    """A page with nothing but the running poll."""
    from ui import rooms

    room = rooms.registry().follow(code, seat)
    rooms._vote(code, seat, room.poll, room.guess)


def test_the_same_sentence_asked_again_has_counted_nothing_yet(room):
    student = AppTest.from_function(ballot, args=(room[0], rooms.registry().join(room[0])),
                                    default_timeout=PATIENCE)
    for n in (1, 2):
        rooms.registry().ask(*room, "I drink [MASK].")
        assert "Counted" not in said(student.run())
        student.text_input(key=f"_guess{n}").set_value("tea")
        assert "Counted: tea" in said(student.button[0].click().run())
        rooms.registry().end_poll(*room)


def test_who_reloads_still_sees_what_counts(room):
    code, seat = room[0], rooms.registry().join(room[0])
    rooms.registry().ask(*room, "I drink [MASK].")
    number = rooms.registry().follow(code, seat).poll.number
    rooms.registry().guess(code, seat, number, "Water ")
    reloaded = AppTest.from_function(ballot, args=(code, seat), default_timeout=PATIENCE)
    assert "Counted: Water. A new guess replaces it." in said(reloaded.run())
    other = AppTest.from_function(ballot, args=(code, rooms.registry().join(code)), default_timeout=PATIENCE)
    assert "Counted" not in said(other.run())
    rooms.registry().ask(*room, "I eat [MASK].")
    assert "Counted" not in said(reloaded.run())


# --- a poll's answer is not given away ----------------------------------------

ASKED = "The [MASK] barked."
SHOWN = View("masking", (("text", ASKED), ("pair", ""), ("view", "Layer by layer")))


def has_picture(at: AppTest) -> bool:
    assert not at.exception
    return any(element.proto.component_name == "bothways.gaps" for element in at.get("bidi_component"))


def test_a_class_that_is_asked_does_not_read_the_answer_off_its_page(room):
    rooms.registry().show(*room, SHOWN)
    student = visit("masking", room=room[0])
    assert has_picture(student)
    rooms.registry().ask(*room, ASKED)
    assert rooms.COVERED in said(student.run())
    assert not has_picture(student)
    assert drawn(student, "ready")["text"] == ASKED
    for name in ("attention", "compare"):
        assert rooms.COVERED in said(go_on(student, name, text=ASKED))
    assert rooms.COVERED not in said(go_on(student, "finetune", text=ASKED))  # it reads another sentence


def test_what_was_covered_comes_back_as_the_teacher_has_it_once_revealed(room):
    rooms.registry().show(*room, SHOWN)
    rooms.registry().ask(*room, f" {ASKED} ")
    student = visit("masking", room=room[0])
    assert rooms.COVERED in said(student)
    rooms.registry().reveal(*room)
    assert rooms.COVERED not in said(student.run())
    assert has_picture(student)
    assert student.session_state["view"] == "Layer by layer"


def test_another_sentence_is_not_covered_and_who_lets_go_sees_all(room):
    rooms.registry().show(*room, View("masking", (("text", "Paris is [MASK]."),)))
    rooms.registry().ask(*room, ASKED)
    student = visit("masking", room=room[0])
    assert has_picture(student)
    student.text_input(key="text").set_value(ASKED).run()
    assert not has_picture(student)
    student.button(key="_let_go").click().run()
    assert has_picture(student)


def test_the_teacher_sees_all_and_is_told_when_the_class_will(room):
    rooms.registry().ask(*room, ASKED)
    at = teach(room, "masking", text=ASKED)
    assert has_picture(at)
    assert "the class sees this page after you reveal the answer" in said(at.run())
    rooms.registry().reveal(*room)
    assert "the class sees this page<" in said(at.run())


def test_the_class_page_opens_at_the_room_for_who_is_in_one(room):
    at = teach(room, "masking")
    assert "Poll: guess the masked word" in said(go_on(at, "class"))
    assert "Poll: guess the masked word" in said(at.run())
    at.segmented_control(key="view").set_value("Lessons").run()
    assert "Do and notice" in said(at)
    assert "Do and notice" in said(visit("class"))


def test_a_student_who_comes_first_waits_and_has_the_lessons_one_click_away(room):
    student = visit("class", room=room[0])
    assert "Wait for your teacher" in said(student)
    student.segmented_control(key="view").set_value("Lessons").run()
    assert "Do and notice" in said(student)
    rooms.registry().show(*room, View("tokens", (("text", "Paris is big."),)))
    student.run()
    assert student.session_state["_page"] == "tokens"
    assert "Wait for your teacher" not in said(go_on(student, "class"))


# --- who teaches, follows nobody ----------------------------------------------

@pytest.mark.parametrize("meets", ["attention", "tokens"])
def test_a_follower_who_goes_elsewhere_as_the_teacher_does_is_taken_along(room, monkeypatch, meets):
    """The switch of the fast mode, of the page that was left, still holds its key as the next page's run begins."""
    monkeypatch.setenv("BOTH_WAYS_FAST", "on")
    student = visit("masking", room=room[0])
    assert student.toggle(key="fast") is not None
    rooms.registry().show(*room, View("attention", (("fast", True), ("text", "Paris is big.")), ()))
    go_on(student, meets, room=room[0])
    assert not student.exception
    assert student.session_state["_page"] == "attention"
    assert student.session_state["fast"]


@pytest.fixture
def other_room():
    code, key = rooms.registry().open()
    yield code, key
    rooms.registry().close(code, key)


def test_who_teaches_follows_no_other_room(room, other_room):
    rooms.registry().show(*other_room, View("tokens", (("text", "Rome is big."),)))
    at = teach(room, "masking", text="Paris is big.")
    go_on(at, "masking", text="Paris is big.", room=other_room[0])
    assert f"you control room {room[0]}; end it to follow room {other_room[0]}" in said(at)
    assert "room" not in at.query_params
    assert rooms.registry().teacher_state(*other_room).followers == 0
    at.run()
    assert at.session_state["_page"] == "masking"
    assert dict(shown(room).widgets)["text"] == "Paris is big."


def test_who_teaches_may_open_the_link_of_the_own_class(room):
    at = teach(room, "masking")
    go_on(at, "masking", room=room[0])
    assert "the class sees this page" in said(at)
    assert "you control" not in said(at)
    assert rooms.registry().teacher_state(*room).followers == 0


def begin_to_teach(other: str, room: tuple[str, str] | None) -> None:
    """A script: follow a room, then open one's own or take it up again."""
    from ui import rooms

    rooms.join(other)
    rooms.take_control(*room) if room else rooms.open_room()


@pytest.mark.parametrize("again", [False, True])
def test_who_begins_to_teach_lets_go(room, other_room, again):
    at = AppTest.from_function(begin_to_teach, args=(other_room[0], room if again else None),
                               default_timeout=PATIENCE).run()
    assert not at.exception
    assert "_following" not in at.session_state
    assert rooms.registry().teacher_state(*other_room).followers == 0
    assert "room" not in at.query_params
    if not again:
        rooms.registry().close(*at.session_state["_teaching"])


@pytest.mark.parametrize("view", [View(), View("pretrain", (("seed", 5),), (("run", "ab" * 16),))])
def test_who_takes_control_again_goes_to_what_the_room_shows(room, other_room, view):
    """Going there by hand, with another run or none, would take the class's off their screens."""
    if view.page:
        rooms.registry().show(*room, view)
    at = AppTest.from_function(begin_to_teach, args=(other_room[0], room), default_timeout=PATIENCE).run()
    assert at.session_state["_teaching"] == room
    assert ("_going" in at.session_state) == bool(view.page)
    assert not view.page or at.session_state["_going"] == view


def test_a_wrong_key_leaves_a_follower_in_the_room(room, other_room):
    at = AppTest.from_function(begin_to_teach, args=(other_room[0], (room[0], "wrong")), default_timeout=PATIENCE).run()
    assert at.session_state["_following"][0] == other_room[0]


def test_the_own_runs_of_who_begins_to_follow_rest_once_for_each_room(room, other_room, monkeypatch):
    rested = []
    monkeypatch.setattr(training, "_DESKS", [SimpleNamespace(rest=rested.append)])
    at = visit("tokens")
    assert rested == []
    for code, _ in (room, other_room):
        before = len(rested)
        at.query_params["room"] = code
        at.run().run()
        assert len(rested) == before + 1
    assert len(set(rested)) == 1


def test_a_teacher_in_a_second_tab_stops_no_run_of_their_class(monkeypatch):
    rested = []
    monkeypatch.setattr(training, "_DESKS", [SimpleNamespace(rest=rested.append)])
    monkeypatch.setattr(rooms.visitors, "current", lambda: "ann")
    opened = rooms.registry().open("ann")
    assert "Following room" in said(visit("tokens", room=opened[0]))
    assert rested == []
    rooms.registry().close(*opened)


@pytest.mark.parametrize(("key", "raw"), [("present", "yes"), ("fix", "2")])
def test_a_switch_of_a_teachers_link_that_is_neither_on_nor_off_is_said(key, raw):
    assert f"“{raw}” for “{key}”" in " ".join(is_ready(visit("tokens", **{key: raw}))["lines"])
    assert is_ready(visit("tokens", **{key: "0"}))["lines"] == []


def test_a_part_that_cannot_be_hidden_is_said_for_a_while_only():
    """The address names it at every later run too."""
    at = visit("tokens", hide="foo")
    assert "“foo” for “hide”" in " ".join(is_ready(at)["lines"])
    at.session_state["_dropped"] = {"hide": ("foo", time.monotonic() - 2 * state.NOTICE_SECONDS)}
    assert is_ready(at.run())["lines"] == []
