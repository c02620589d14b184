"""A step of a teacher's own for which they wrote nothing to do: it is told by what it opens."""

from __future__ import annotations

from dataclasses import replace

from tests.class_.test_own_lesson import BARKED, LESSON, opened
from tests.payloads import visit
from ui.own_lesson import pack

BARE = replace(LESSON, steps=(replace(LESSON.steps[1], do=""),))


def test_the_lesson_says_what_such_a_step_opens():
    step = next(one.value for one in opened(BARE).get("html") if "bw-step" in str(one.value))
    assert f"<strong>1.</strong> Attention · All heads · “{BARKED}”" in step


def test_its_page_says_which_step_it_is():
    at = visit("attention", doing="own.1", plan=pack(BARE))
    line = next(one.value for one in at.get("html") if "bw-doing" in str(one.value))
    assert "<strong>Dogs &amp; &lt;b&gt;cats&lt;/b&gt;, step 1 of 1</strong>" in line
