"""On a page that a lesson opened: which step it is, what there is to do, and the ways on and back.

The step is in the address (`doing=gap.2`), so that a reload keeps it and whoever goes
elsewhere by the sidebar leaves it behind.
"""

from __future__ import annotations

import html
import re
from dataclasses import replace
from typing import NamedTuple

import streamlit as st

from bert_core.serving.rooms import View
from ui import going, notices, state
from ui.lessons import Lesson, Step, lessons, titles

#: Characters of what there is to do that are shown at once, and what follows them where that isn't all.
MOST, CUT = 120, "\u00a0…"
_OPENED = "_steps_opened"


class Place(NamedTuple):
    """A step of a lesson, both counted from 1."""

    number: int
    n: int

    @property
    def lesson(self) -> Lesson:
        return lessons()[self.number - 1]

    @property
    def step(self) -> Step:
        return self.lesson.steps[self.n - 1]


def open_step(place: Place) -> None:
    """Go where the step takes place; for use in a callback."""
    view = place.step.view
    going.to(replace(view, parameters=(*view.parameters, (going.STEP, f"{place.lesson.key}.{place.n}"))))


def open_lesson(place: Place) -> None:
    """Go to the lesson itself; for use in a callback."""
    going.to(View("class", (("view", "Lessons"), ("lesson", titles()[place.number - 1]))))


def close() -> None:
    """Take the line away; for use in a callback."""
    state.set_param(going.STEP, None)


def was_opened(place: Place) -> bool:
    """Whether this visitor has been on the step's page."""
    return place in st.session_state.get(_OPENED, ())


def draw(page: str) -> None:
    """The line on the step's own page, nothing on others.

    Args:
        page: name of the page on screen.
    """
    place = state.param(going.STEP, _parse, None)
    if place is None:
        return
    if place.step.page != page:
        close()
        return
    st.session_state.setdefault(_OPENED, set()).add(place)
    is_last = place.n == len(place.lesson.steps)
    with st.container(key="bw_lesson", horizontal=True, vertical_alignment="center", gap="small"):
        st.html(_words(place), width="content")
        st.button("Back to the lesson", key="_lesson_back", on_click=open_lesson, args=(place,), type="tertiary")
        st.button("Next step", key="_lesson_next", on_click=open_step, args=(place._replace(n=place.n + 1),),
                  type="tertiary", disabled=is_last)
        st.button("Close", key="_lesson_close", on_click=close, type="tertiary")


def _words(place: Place) -> str:
    """Which step it is and what there is to do, the rest of a long one to be unfolded."""
    short = shortened(place.step.do)
    name = f"<strong>Lesson {place.number}, step {place.n} of {len(place.lesson.steps)}:</strong>"
    words = f"{name} {_written(short)}"
    if short == place.step.do:
        return f'<p class="bw-doing bw-words">{words}</p>'
    rest = place.step.do.removeprefix(short.removesuffix(CUT)).strip()
    return f'<details class="bw-doing bw-words"><summary>{words}</summary>{_written(rest)}</details>'


def _written(words: str) -> str:
    return notices.unbroken(html.escape(words, quote=False))


def _parse(raw: str) -> Place:
    """'gap.2' of the address; ValueError if there is no such step."""
    key, _, n = raw.partition(".")
    for number, lesson in enumerate(lessons(), 1):
        if lesson.key == key and n in map(str, range(1, len(lesson.steps) + 1)):
            return Place(number, int(n))
    raise ValueError(f"no such step: {raw}")


def shortened(text: str) -> str:
    """As many of its sentences as MOST holds, or as many words; what is left out is a mark."""
    if len(text) <= MOST:
        return text
    whole = re.match(rf"(.{{20,{MOST - 2}}}[.?!:]”?) ", text)
    return (whole[1] if whole else text[:MOST - 1].rsplit(" ", 1)[0]) + CUT
