"""The Your lesson view of the Class page: a teacher's own views in a row, with their words, as one link."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from zlib import crc32

import streamlit as st

from bert_core.serving.rooms import View
from ui import controls, going, notices, own_lesson, presenter
from ui.lesson_line import Place
from ui.own_lesson import MOST_STEPS, MOST_TITLE, MOST_WORDS, OwnLesson
from ui.views.class_lessons import in_words, open_button, show_step
from ui.views.class_room import base_address, qr_code, say_if_local
from ui.views.family_html import draw, heading, small, words_of

#: Longest link whose QR code a telephone reads from the last row.
MOST_IN_CODE = 900


def show() -> None:
    """The lesson, then what it is made with; only the steps of one that somebody else made."""
    lesson, kept = own_lesson.opened(), own_lesson.kept()
    lesson = own_lesson.follow_tabs(lesson)
    words, is_mine = words_of("class")["own"], own_lesson.is_mine(lesson, kept)
    draw(heading(lesson.name), "" if lesson.steps else small(words["empty"]))
    for n in range(1, len(lesson.steps) + 1):
        _step(Place(lesson, n), is_mine)
    if problem := own_lesson.problem():
        notices.problem(problem)
    if not is_mine:
        st.button("Copy it, to change it", on_click=own_lesson.adopt, args=(lesson,))
        return
    left, right = st.columns(2, gap="large")
    with left:
        _add(lesson, words)
    with right:
        _hand_out(lesson, words)
        _others(lesson, kept)


# --- its steps ---------------------------------------------------------------


def _step(place: Place, is_mine: bool) -> None:
    show_step(place, predicted=True)
    with st.container(horizontal=True, gap="small"):
        open_button(place)
        if is_mine:
            with st.popover("Change"):
                _reword(place.lesson, place.n)


def _reword(lesson: OwnLesson, n: int) -> None:
    """The words of a step, its place in the row, and what it opens."""
    step, view = lesson.steps[n - 1], presenter.last_view()
    key = f"_plan_{lesson.id}_{n}_{crc32(repr(step).encode())}"  # another step in its place has fields of its own
    draw(small(f"Opens {in_words(step.view)}"))
    with st.form(key, border=False):
        st.text_area("To do", step.do, key=f"{key}_do", max_chars=MOST_WORDS, height=100)
        st.text_area("To notice", step.notice, key=f"{key}_notice", max_chars=MOST_WORDS, height=100)
        st.form_submit_button("Keep these words", type="primary", on_click=_put, args=(lesson, n, key, step.view))
    if view.page:
        st.button("Open what I looked at last", key=f"{key}_view", on_click=_put, args=(lesson, n, key, view),
                  help=f"This step then opens {controls.literal(in_words(view))}")
    with st.container(horizontal=True, gap="small"):
        st.button("Move up", key=f"{key}_up", on_click=_move_up, args=(lesson, n), disabled=n == 1)
        st.button("Take out", key=f"{key}_out", on_click=_take_out, args=(lesson, n))


# Callbacks: what they do is done before the run draws anything.
def _put(lesson: OwnLesson, n: int, key: str, view: View) -> None:
    step = own_lesson.step_here(st.session_state[f"{key}_do"], st.session_state[f"{key}_notice"], view)
    own_lesson.change(lesson, steps=(*lesson.steps[:n - 1], step, *lesson.steps[n:]))


def _move_up(lesson: OwnLesson, n: int) -> None:
    one, other = lesson.steps[n - 2:n]
    own_lesson.change(lesson, steps=(*lesson.steps[:n - 2], other, one, *lesson.steps[n:]))


def _take_out(lesson: OwnLesson, n: int) -> None:
    own_lesson.change(lesson, steps=(*lesson.steps[:n - 1], *lesson.steps[n:]))


# --- one more ----------------------------------------------------------------


def _add(lesson: OwnLesson, words: dict[str, Any]) -> None:
    """A title, and the view that was on screen last as the next step."""
    title = f"_plan_title_{lesson.id}"
    if " ".join(st.session_state.get(title, "").split()) != lesson.title:  # Back, or another tab's change
        st.session_state[title] = lesson.title
    st.text_input("Title", key=title, max_chars=MOST_TITLE, on_change=_name, args=(lesson, title))
    draw(heading("Add a step", 3))
    view = presenter.last_view()
    if not view.page:
        notices.note(words["none_yet"])
        return
    if len(lesson.steps) == MOST_STEPS:
        notices.note(f"A lesson has at most {MOST_STEPS} steps.")
        return
    draw(small(f"You looked at {in_words(view)} last."))
    with st.form("_plan_add", border=False):
        st.text_area("To do", key="_plan_do", max_chars=MOST_WORDS, height=100, placeholder=words["do"])
        st.text_area("To notice", key="_plan_notice", max_chars=MOST_WORDS, height=100, placeholder=words["notice"])
        st.form_submit_button(f"Add as step {len(lesson.steps) + 1}", type="primary", on_click=_append,
                              args=(lesson, view))


def _name(lesson: OwnLesson, key: str) -> None:
    own_lesson.change(lesson, title=" ".join(st.session_state[key].split()))


def _append(lesson: OwnLesson, view: View) -> None:
    step = own_lesson.step_here(st.session_state["_plan_do"], st.session_state["_plan_notice"], view)
    before = own_lesson.now(lesson).steps
    is_second_click = before and (before[-1] == step or before[-1].view == step.view and not (step.do or step.notice))
    if not is_second_click:
        own_lesson.change(lesson, steps=(*before, step))
    if own_lesson.now(lesson).steps[-1:] == (step,):
        # Not by the browser: it empties the form at the first of two clicks, and where the server is busy the second
        # one's words, none, take the place of the first one's.
        st.session_state["_plan_do"] = st.session_state["_plan_notice"] = ""


# --- to others, and for later ------------------------------------------------


def _hand_out(lesson: OwnLesson, words: dict[str, Any]) -> None:
    """The link, which is the lesson."""
    if not lesson.steps:
        return
    query = urlencode({"view": own_lesson.VIEW, going.PLAN: own_lesson.pack(lesson)})
    link = f"{base_address()}class?{query}"
    draw(heading("The link", 3), small(words["link"]))
    if own_lesson.is_kept_nowhere():
        notices.note(words["not_kept"])
    st.code(link, language=None, wrap_lines=True)
    say_if_local(link)
    draw(qr_code(link, "This lesson") if len(link) <= MOST_IN_CODE else small(words["no_code"]))


def _others(lesson: OwnLesson, kept: list[OwnLesson]) -> None:
    """What this browser keeps besides."""
    others = [one for one in kept if one.id != lesson.id]
    if lesson.steps or lesson.title:
        st.button("Begin another", on_click=own_lesson.begin)
    if not others:
        return
    draw(heading("Kept in this browser", 3))
    for one in others:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.button(f"Open “{controls.literal(one.name)}”", key=f"_plan_open_{one.id}", on_click=own_lesson.open_one,
                      args=(one,))
            st.button("Forget it", key=f"_plan_forget_{one.id}", on_click=own_lesson.forget, args=(one.id,))
