"""On a page that a lesson opened: which step it is, what there is to do, and the ways on and back.

The step is in the address (`doing=gap.2`, or `doing=own.2` with the lesson itself in `plan`), so that a reload keeps
it and whoever goes elsewhere by the sidebar leaves it behind.
"""

from __future__ import annotations

import html
import re
from dataclasses import replace
from typing import NamedTuple

import streamlit as st

from bert_core.serving.rooms import View
from ui import going, notices, own_lesson, rooms, state
from ui.lessons import Lesson, Step, lessons, titles
from ui.own_lesson import OwnLesson

#: Characters of what there is to do that are shown at once, and what follows them where that isn't all.
MOST, CUT = 120, "\u00a0…"
_OPENED = "_steps_opened"


class Place(NamedTuple):
    """A step of a lesson, counted from 1."""

    lesson: Lesson | OwnLesson
    n: int

    @property
    def step(self) -> Step:
        return self.lesson.steps[self.n - 1]

    @property
    def is_own(self) -> bool:
        """Whether somebody put the lesson together, so that it may hold anything."""
        return isinstance(self.lesson, OwnLesson)


def open_step(place: Place) -> None:
    """Go where the step takes place; for use in a callback."""
    view, held = place.step.view, ((going.STEP, f"{place.lesson.key}.{place.n}"),)
    if place.is_own:
        view, held = going.as_from_link(view), (*held, (going.PLAN, own_lesson.pack(place.lesson)))
    going.to(replace(view, parameters=(*view.parameters, *held)))


def open_lesson(place: Place) -> None:
    """Go to the lesson itself; for use in a callback."""
    if place.is_own:
        going.to(View("class", (("view", own_lesson.VIEW),), ((going.PLAN, own_lesson.pack(place.lesson)),)))
    else:
        going.to(View("class", (("view", "Lessons"), ("lesson", titles()[lessons().index(place.lesson)]))))


def close() -> None:
    """Take the line away; for use in a callback."""
    for key in (going.STEP, going.PLAN):
        state.set_param(key, None)


def was_opened(place: Place) -> bool:
    """Whether this visitor has been on the step's page."""
    return place in st.session_state.get(_OPENED, ())


def draw(page: str) -> None:
    """The line on the step's own page, nothing on others.

    Args:
        page: name of the page on screen.
    """
    place = state.param(going.STEP, _parse, None)
    if place is None or place.step.page != page:
        if page not in rooms.NOT_SHOWN and {going.STEP, going.PLAN} & set(st.query_params):
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
    lesson = place.lesson
    name = html.escape(lesson.name) if place.is_own else f"Lesson {lessons().index(lesson) + 1}"
    name = f"{name}, step {place.n} of {len(lesson.steps)}"
    words = f"<strong>{name}:</strong> {written(short)}" if short else f"<strong>{name}</strong>"
    if short == place.step.do:
        return f'<p class="bw-doing bw-words">{words}</p>'
    rest = place.step.do.removeprefix(short.removesuffix(CUT)).strip()
    return f'<details class="bw-doing bw-words"><summary>{words}</summary>{written(rest)}</details>'


def written(words: str) -> str:
    """A teacher's words, or a step's in a line, as HTML: as they were typed."""
    return notices.unbroken(html.escape(words, quote=False))


def _parse(raw: str) -> Place:
    """'gap.2' of the address; ValueError if there is no such step."""
    key, _, n = raw.partition(".")
    own = own_lesson.of_address() if key == own_lesson.KEY else None
    for lesson in (own,) if own else lessons():
        if lesson.key == key and n in map(str, range(1, len(lesson.steps) + 1)):
            return Place(lesson, int(n))
    raise ValueError(f"no such step: {raw}")


def shortened(text: str) -> str:
    """As many of its sentences as MOST holds, or as many words; what is left out is a mark."""
    if len(text) <= MOST:
        return text
    whole = re.match(rf"(.{{20,{MOST - 2}}}[.?!:]”?) ", text)
    return (whole[1] if whole else text[:MOST - 1].rsplit(" ", 1)[0]) + CUT
