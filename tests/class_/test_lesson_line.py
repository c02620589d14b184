"""The page that a lesson opened says which step it is and what to do there, and has the ways on and back."""

from __future__ import annotations

import html
import re

import pytest
from streamlit.testing.v1 import AppTest

from tests.payloads import page, said, visit
from ui import lesson_line, rooms
from ui.lessons import lessons, titles

GAP = next(n for n, lesson in enumerate(lessons(), 1) if lesson.key == "gap")


def line(at: AppTest) -> str:
    """What the line says, '' where there is none."""
    found = re.search(r'<(?:p|details) class="bw-doing.*?">(.*?)</(?:p|details)>', said(at))
    return html.unescape(re.sub(r"<[^>]*>", "", found[1])) if found else ""


def labels(at: AppTest) -> list[str]:
    return [button.label for button in at.button if (button.key or "").startswith("_lesson_")]


def test_a_step_is_named_with_what_there_is_to_do_and_the_ways_on():
    at = visit("class", view="Lessons", lesson=titles()[GAP - 1])
    assert line(at) == ""
    at.button(key="_step_gap_2").click().run()
    assert at.query_params["doing"] == "gap.2"
    assert line(at) == f"Lesson {GAP}, step 2 of 4: {lessons()[GAP - 1].steps[1].do}"
    assert labels(at) == ["Back to the lesson", "Next step", "Close"]


def test_the_next_step_opens_its_own_view_and_the_last_one_leads_back():
    step = lessons()[GAP - 1].steps[2]
    at = visit("masking", doing="gap.2")
    at.button(key="_lesson_next").click().run()
    assert "step 3 of 4" in line(at)
    assert at.session_state["view"] == dict(step.link)["view"]
    at.button(key="_lesson_next").click().run()
    assert labels(at) == ["Back to the lesson", "Next step", "Close"]  # where they stood
    assert at.button(key="_lesson_next").disabled
    at.button(key="_lesson_back").click().run()
    assert at.session_state["_page"] == "class"
    assert at.session_state["lesson"] == titles()[GAP - 1]
    assert "doing" not in at.query_params


def test_a_step_stays_while_one_works_on_its_page_and_goes_at_a_click():
    at = visit("masking", doing="gap.1")
    at.text_input(key="text").set_value("It [MASK] today.").run()
    assert "step 1 of 4" in line(at)
    at.button(key="_lesson_close").click().run()
    assert line(at) == ""
    assert "doing" not in at.query_params


@pytest.mark.parametrize("doing", ["gap.5", "gap.0", "gap", "", "gap.²", "no lesson.1", ".1"])
def test_a_step_that_is_none_is_no_line(doing):
    assert line(visit("masking", doing=doing)) == ""


def test_a_step_of_another_page_is_left_behind():
    at = visit("tokens", doing="gap.1")
    assert line(at) == ""
    assert "doing" not in at.query_params


def test_a_class_is_not_shown_the_step_of_its_teacher():
    code, key = rooms.registry().open()
    at = page("masking", doing="gap.1")
    at.session_state["_teaching"] = (code, key)
    assert "step 1 of 4" in line(at.run())
    assert "doing" not in dict(rooms.registry().teacher_state(code, key).view.parameters)
    rooms.registry().close(code, key)


def test_what_to_notice_is_open_once_its_step_was_and_a_prediction_is_made():
    lesson = lessons()[GAP - 1]
    at = visit("class", view="Lessons", lesson=titles()[GAP - 1])
    at.button(key="_step_gap_2").click().run()
    at.switch_page("pages/class.py").run()
    assert "<details open><summary>What to notice" not in said(at)
    at.radio(key="_guess_gap").set_value(lesson.options[0]).run()
    steps = said(at).split('<div class="bw-step')[1:]
    assert ["<details open>" in step.partition("</details>")[0] for step in steps] == [False, True, False, False]


@pytest.mark.parametrize("do", [step.do for lesson in lessons() for step in lesson.steps])
def test_what_there_is_to_do_is_cut_at_a_sentence_or_a_word(do):
    cut = lesson_line.shortened(do)
    assert len(cut) <= lesson_line.MOST
    assert do.startswith(cut.removesuffix("\u00a0…"))
    if cut != do:
        assert do[len(cut) - 2] == " "


@pytest.mark.parametrize("number", range(1, len(lessons()) + 1))
def test_all_that_there_is_to_do_can_be_read_on_the_page(number):
    lesson = lessons()[number - 1]
    for n, step in enumerate(lesson.steps, 1):
        words = html.unescape(re.sub(r"<[^>]*>", "", lesson_line._words(lesson_line.Place(lesson, n))))
        plain = words.replace("\u00a0", " ").replace(" …", " ")
        name = f"Lesson {number}, step {n} of {len(lesson.steps)}:"
        assert " ".join(plain.split()) == " ".join(f"{name} {step.do}".split())
