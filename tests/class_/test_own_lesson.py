"""A lesson of a teacher's own: packed into a link, bounded, opened step by step as a link would open it."""

from __future__ import annotations

import base64
import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from tests.cases import quick_are
from tests.class_.test_lesson_line import labels, line
from tests.payloads import all_drawn, drawn, is_ready, said, visit
from ui import own_lesson
from ui.lessons import Step
from ui.own_lesson import OwnLesson, pack, parse

BARKED = "The dog [MASK] all night."
LESSON = OwnLesson("0123abcd", "Dogs & <b>cats</b>", (
    Step("Read the guesses.", "It *barks*.", "masking", (("text", BARKED), ("k", 8)), ()),
    Step("Look at layer 3.", "", "attention", (("text", BARKED), ("view", "All heads")),
         (("layer", "3"), ("head", "2")), frozenset(("view",))),
    Step("Go on.", "A gap is a token.", "attention", (("text", BARKED), ("view", "Step by step")), (("layer", "4"),)),
))


#: Characters that can't be packed shorter.
LONG = "".join(chr(0x4e00 + n * n * 7919 % 20_000) for n in range(3_900))


def packed(of: object) -> str:
    """Anything, as the address holds a lesson."""
    return base64.urlsafe_b64encode(zlib.compress(json.dumps(of).encode())).decode().rstrip("=")


def opened(lesson: OwnLesson = LESSON) -> AppTest:
    return visit("class", view=own_lesson.VIEW, plan=pack(lesson))


# --- packed ------------------------------------------------------------------


def test_what_was_packed_is_unpacked():
    assert parse(pack(LESSON)) == LESSON


STEP = ["do", "see", "masking", {"text": "A dog."}, {"layer": "3"}, ["text"]]


@pytest.mark.parametrize("of", [
    None, 5, "lesson", [], ["0123abcd", "title"], ["0123ABCD", "title", []], ["0123abcd", 5, []],
    ["0123abcd", "t" * 81, []], ["0123abcd", "title", [STEP] * 25], ["0123abcd", "title", [None]],
    ["0123abcd", "title", [STEP[:5]]],
    *(["0123abcd", "title", [[*STEP[:n], bad, *STEP[n + 1:]]]] for n, bad in (
        (0, 5), (0, "d" * 401), (0, "\ud800"), (1, None), (2, "class"), (2, "../app"), (2, ["masking"]),
        (3, []), (3, {"_own_models": "x"}), (3, {"Text": "x"}), (3, {"text": None}), (3, {"text": {}}),
        (3, {"text": "x" * 4001}), (3, {"text": "\udc00"}), (3, {"k": float("nan")}), (3, {"k": 1e300}),
        (3, {"k": 10 ** 400}),
        (3, {"many": [5]}), (3, {"many": ["a"] * 61}), (3, {f"k{n}": "x" for n in range(61)}),
        (4, {"layer": 3}), (4, {"layer": ["3"]}), (5, None), (5, ["k"]), (5, [[]])))])
def test_what_is_no_lesson_or_beyond_its_bounds_is_refused(of):
    with pytest.raises(ValueError, match="."):
        parse(packed(of))


def test_its_good_parts_alone_are_a_lesson():
    """So that each case above is refused for what it changes."""
    assert parse(packed(["0123abcd", "title", [STEP]])).steps[0].view.parameters == (("layer", "3"),)


@pytest.mark.parametrize("raw", [
    "", "a", "é", "%%%%", "AAAA", pack(LESSON)[:-8], pack(LESSON) + "AAAA" * 1500,
    base64.urlsafe_b64encode(zlib.compress(b" " * 10_000_000)).decode()[:6000],
    base64.urlsafe_b64encode(zlib.compress(b"[" * 59_000)).decode(),
    base64.urlsafe_b64encode(zlib.compress(b'"\xff"')).decode()])
def test_a_broken_link_is_refused(raw):
    with pytest.raises(ValueError, match="."):
        parse(raw)


def test_a_lesson_that_no_link_can_hand_on_is_refused():
    """Numbers that a link writes shorter than the next one would: its buttons could not say where they lead."""
    values = ", ".join(f'"k{n}": 1e8' for n in range(58))
    steps = ", ".join([f'["", "", "masking", {{{values}, "text": "{"x" * 1950}"}}, {{}}, []]'] * 22)
    raw = base64.urlsafe_b64encode(zlib.compress(f'["0123abcd", "", [{steps}]]'.encode())).decode().rstrip("=")
    assert len(raw) < own_lesson.MOST
    with pytest.raises(ValueError, match="as long as a link can be"):
        parse(raw)


@given(st.text(max_size=300) | st.binary(max_size=300).map(lambda raw: base64.urlsafe_b64encode(zlib.compress(raw))
                                                           .decode().rstrip("=")))
def test_whatever_a_link_holds_it_is_a_lesson_or_a_value_error(raw):
    try:
        lesson = parse(raw)
    except ValueError:
        return
    assert parse(pack(lesson)) == lesson


def test_a_lesson_longer_than_a_link_is_refused_in_words():
    with pytest.raises(ValueError, match="as long as a link can be"):
        pack(OwnLesson("0123abcd", "", (Step("", "", "masking", (("text", LONG),)),) * 3))


# --- opened ------------------------------------------------------------------


def test_a_link_shows_its_steps_with_the_words_escaped():
    at = opened()
    is_ready(at)
    words = said(at)
    assert "Dogs &amp; &lt;b&gt;cats&lt;/b&gt;" in words
    assert "It *barks*." in words  # as it was typed, here as on the step's page
    assert [button.label for button in at.button if (button.key or "").startswith("_step_own_")] == [
        "Open Masking", "Open Attention", "Open Attention"]


def test_its_steps_are_opened_one_after_the_other_with_their_controls():
    at = opened()
    at.button(key="_step_own_1").click().run()
    is_ready(at)
    assert line(at) == "Dogs & <b>cats</b>, step 1 of 3: Read the guesses."
    assert (at.session_state["text"], at.session_state["k"]) == (BARKED, 8)
    at.button(key="_lesson_next").click().run()
    is_ready(at)
    assert "step 2 of 3: Look at layer 3." in line(at)
    assert (at.query_params["layer"], at.query_params["head"]) == ("3", "2")
    at.button(key="_lesson_next").click().run()  # on the page that is open: its widgets are held
    is_ready(at)
    assert "step 3 of 3" in line(at)
    assert at.session_state["view"] == "Step by step"
    assert at.query_params["layer"] == "4"
    assert drawn(at, "attention_steps")["layer"] == 3
    assert at.button(key="_lesson_next").disabled
    at.button(key="_lesson_back").click().run()
    assert at.session_state["_page"] == "class"
    assert at.session_state["view"] == own_lesson.VIEW
    assert "<details open>" in said(at)  # what to notice, of steps that were opened


def test_a_step_is_found_again_after_a_reload_and_left_behind_elsewhere():
    assert "step 2 of 3" in line(visit("attention", doing="own.2", plan=pack(LESSON), text=BARKED))
    elsewhere = visit("tokens", doing="own.2", plan=pack(LESSON))
    assert line(elsewhere) == ""
    assert "plan" not in elsewhere.query_params
    assert labels(elsewhere) == []
    alone = visit("tokens", plan=pack(LESSON))
    assert "plan" not in alone.query_params


def test_a_step_without_its_lesson_is_no_line():
    assert line(visit("attention", doing="own.2")) == ""
    assert line(visit("attention", doing="own.4", plan=pack(LESSON))) == ""


@pytest.mark.parametrize(("key", "value"), quick_are(8, [
    ("k", "eight"), ("view", 5), ("text", 5), ("model", "nobody/nothing"), ("room", "AAAAA"), ("instead", True),
    ("fast", 3), ("pair", ["a"]), ("k", 900), ("k", True), ("view", "None"), ("view", ["All heads"]),
    ("model", True), ("present", "1"), ("run", "x"), ("fast", "maybe")]))
def test_what_a_stranger_s_lesson_sets_does_no_more_than_a_link(key: str, value: object):
    """On a page that is open, and from another."""
    step = Step("", "", "masking", ((key, tuple(value) if isinstance(value, list) else value),), ())
    lesson = OwnLesson("0123abcd", "", (step, step))
    at = opened(lesson)
    for button in ("_step_own_1", "_lesson_next"):
        at.button(key=button).click().run()
        assert not at.exception
        is_ready(at)
    assert not {"room", "present"} & set(at.query_params)


# --- put together ------------------------------------------------------------


def back_in_class(at: AppTest) -> AppTest:
    at.switch_page("pages/class.py").run()
    at.segmented_control(key="view").set_value(own_lesson.VIEW).run()
    is_ready(at)
    return at


def add(at: AppTest, do: str, notice: str = "") -> None:
    at.text_area(key="_plan_do").set_value(do)
    at.text_area(key="_plan_notice").set_value(notice)
    next(button for button in at.button if button.label.startswith("Add as step")).click().run()
    is_ready(at)


def held(at: AppTest) -> OwnLesson:
    """What the address has."""
    return parse(at.query_params["plan"])


def changing(at: AppTest, n: int, what: str) -> object:
    """A button below a step's Change, by its label."""
    below = [button for button in at.button if f"_plan_{held(at).id}_{n}_" in (button.key or "")]
    return next(button for button in below if button.label == what)


def test_views_that_were_looked_at_become_steps_that_open_them_again():
    at = back_in_class(visit("class", view=own_lesson.VIEW))
    assert "Open a page first" in said(at)
    at.switch_page("pages/masking.py").run()
    at.text_input(key="text").set_value(BARKED).run()
    at.slider(key="k").set_value(9).run()
    add(back_in_class(at), "Read  the\nguesses.")
    title = next(field for field in at.text_input if field.label == "Title")
    title.set_value(" Dogs ").run()
    assert (held(at).title, [step.do for step in held(at).steps]) == ("Dogs", ["Read the guesses."])
    at.switch_page("pages/tokens.py").run()
    at.text_input(key="text").set_value("Unbelievable kittens.").run()
    add(back_in_class(at), "Count.", "Pieces.")
    assert [step.page for step in held(at).steps] == ["masking", "tokens"]
    at.button(key="_step_own_1").click().run()
    assert (at.session_state["_page"], at.session_state["text"], at.session_state["k"]) == ("masking", BARKED, 9)
    assert set(at.query_params) == {"text", "k", "doing", "plan"}  # what is as usual is not in the address


def test_a_form_is_emptied_when_its_step_is_there_and_a_second_click_adds_none():
    at = visit("masking", text=BARKED)
    add(back_in_class(at), "Read.", "It barks.")
    for again in (("Read.", "It barks."), ("", "")):
        assert [at.text_area(key=f"_plan_{field}").value for field in ("do", "notice")] == ["", ""]
        add(at, *again)
    assert [(step.do, step.notice) for step in held(at).steps] == [("Read.", "It barks.")]


def test_a_control_that_was_changed_since_is_put_back_where_the_step_had_it():
    at = visit("masking", text=BARKED)
    add(back_in_class(at), "Read.")
    at.switch_page("pages/masking.py").run()
    at.slider(key="k").set_value(9).run()
    assert at.query_params["k"] == "9"
    back_in_class(at).button(key="_step_own_1").click().run()
    is_ready(at)
    assert at.session_state["k"] == 6
    assert "k" not in at.query_params


def test_steps_are_moved_reworded_put_elsewhere_and_taken_out():
    at = opened()
    next(button for button in at.button if button.label == "Copy it, to change it").click().run()
    assert held(at).id != LESSON.id
    assert held(at).steps == LESSON.steps
    changing(at, 2, "Move up").click().run()
    assert [step.do for step in held(at).steps] == ["Look at layer 3.", "Read the guesses.", "Go on."]
    assert changing(at, 1, "Move up").disabled
    next(area for area in at.text_area if area.value == "Go on.").set_value("Stop.")
    changing(at, 3, "Keep these words").click().run()
    assert held(at).steps[2] == Step("Stop.", LESSON.steps[2].notice, "attention",
                                     (("pair", ""), ("model", "twin-bert"), *LESSON.steps[2].link), LESSON.steps[2].at)
    changing(at, 1, "Take out").click().run()
    assert [step.do for step in held(at).steps] == ["Read the guesses.", "Stop."]
    at.switch_page("pages/tokens.py").run()
    back_in_class(at)
    changing(at, 2, "Open what I looked at last").click().run()
    assert (held(at).steps[1].do, held(at).steps[1].page) == ("Stop.", "tokens")


def test_somebody_else_s_lesson_shows_its_steps_alone():
    at = opened()
    assert not [area.label for area in at.text_area]
    told = next(one for one in all_drawn(at, "store") if one["name"] == "both-ways.own_lessons")
    assert told["changes"] == []  # this browser does not keep what others made


def test_the_title_s_field_has_the_lesson_s_title_after_back():
    at = back_in_class(visit("masking", text=BARKED))
    add(at, "Read.")
    title = next(field for field in at.text_input if field.label == "Title")
    for words in ("Dogs", "Cats"):
        before = at.query_params["plan"]
        title.set_value(words).run()
    at.query_params["plan"] = before
    at.run()
    assert held(at).title == "Dogs"
    assert next(field for field in at.text_input if field.label == "Title").value == "Dogs"


def test_a_browser_that_keeps_nothing_is_said_beside_the_link():
    at = back_in_class(visit("masking", text=BARKED))
    add(at, "Read.")
    assert "it is the only copy" not in said(at)
    at.session_state["_store_refused_own_lessons"] = True
    assert "it is the only copy of the lesson" in said(at.run())


def test_a_page_that_has_its_own_sentence_is_named_without_the_shared_one():
    at = back_in_class(visit("pretrain", text=BARKED))
    assert "You looked at Pre-train" in said(at)
    assert BARKED not in said(at)


def test_a_change_that_a_link_cannot_hold_is_refused_in_words_and_the_rest_stays():
    at = back_in_class(visit("masking", text=LONG[:1300]))
    add(at, "One.")
    before = at.query_params["plan"]
    at.switch_page("pages/tokens.py").run()
    at.text_input(key="text").set_value(LONG[1300:3900]).run()
    add(back_in_class(at), "Two.")
    assert "as long as a link can be" in said(at)
    assert at.query_params["plan"] == before


def test_a_view_of_a_sentence_that_no_step_takes_is_refused_in_words():
    """It packs well, as it repeats itself, and is still no step's."""
    at = back_in_class(visit("masking", text="dog " * 1100))
    add(at, "One.")
    assert "be a step: its sentence, or another of its controls, has more than 4,000 characters" in said(at)
    assert "plan" not in at.query_params


def test_the_link_is_the_lesson_and_a_long_one_has_no_code():
    at = back_in_class(visit("masking", text=BARKED))
    add(at, "One.")
    assert 'alt="This lesson"' in said(at)
    assert f"plan={at.query_params['plan']}" in at.code[0].value
    at.switch_page("pages/masking.py").run()
    at.text_input(key="text").set_value(LONG[:600]).run()
    add(back_in_class(at), "Two.")
    assert "too long for a QR code" in said(at)
