"""A lesson that a teacher puts together: views of their own, each with what to do and what to notice there.

All of it is in the address (`plan`), packed: the server keeps nothing, and whoever has the link has the lesson. A
link may come from anybody, so that everything in it is bounded, and what it asks for is set as a link's values are
(see `going.as_from_link`). The browser keeps those that were made in it, as it keeps which lessons are done.
"""

from __future__ import annotations

import base64
import functools
import json
import re
import secrets
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import streamlit as st

from bert_core.serving.rooms import Value, View
from ui import going, rooms, state
from ui.browser_store import BrowserStore
from ui.lessons import Step

#: Characters of a packed lesson, and bytes of it unpacked: what a link can hold without trouble.
MOST, MOST_UNPACKED = 6_000, 60_000
#: Bounds of its parts, in characters but for the steps.
MOST_STEPS, MOST_TITLE, MOST_WORDS, MOST_VALUE = 24, 80, 400, 4_000
#: Values that a step sets, and words of a list among them.
MOST_VALUES = 60
#: Lessons that a browser keeps; what was changed last stays.
MOST_KEPT = 8
#: What stands in `doing` for a step of it, where a shipped lesson has its name; and the view of the Class page.
KEY, VIEW = "own", "Your lesson"
_ID, _NAME = re.compile(r"[0-9a-f]{8}"), re.compile(r"[a-z][a-z0-9_]{0,23}")
_PAGES = frozenset(path.stem for path in (Path(__file__).resolve().parent.parent / "pages").glob("*.py"))
_HERE, _SEEN, _PROBLEM = "_plan", "_plan_seen", "_plan_problem"


@dataclass(frozen=True)
class OwnLesson:
    """What a teacher put together; `id` tells it from others that the browser keeps."""

    id: str
    title: str = ""
    steps: tuple[Step, ...] = ()

    key = KEY

    @property
    def name(self) -> str:
        """What it is called on screen."""
        return self.title or VIEW


# --- packed ------------------------------------------------------------------


def pack(lesson: OwnLesson) -> str:
    """As the address holds it.

    Raises:
        ValueError: it is longer than a link can be; the message says so to the visitor.
    """
    steps = [[step.do, step.notice, step.page, dict(step.link), dict(step.at), sorted(step.usual)]
             for step in lesson.steps]
    text = json.dumps([lesson.id, lesson.title, steps], ensure_ascii=False, separators=(",", ":"))
    raw = base64.urlsafe_b64encode(zlib.compress(text.encode("utf-8"), 9)).decode("ascii").rstrip("=")
    if len(raw) > MOST or len(text.encode("utf-8")) > MOST_UNPACKED:
        raise ValueError("The lesson is as long as a link can be: take a step out, or shorten its sentence or words.")
    return raw


@functools.lru_cache(maxsize=64)
def parse(raw: str) -> OwnLesson:
    """A lesson from the address.

    Raises:
        ValueError: it is none, or one of its parts is beyond its bound.
    """
    if len(raw) > MOST:
        raise ValueError("too long")
    try:
        unpacker = zlib.decompressobj()
        packed = base64.b64decode(raw + "=" * (-len(raw) % 4), altchars=b"-_", validate=True)
        text = unpacker.decompress(packed, MOST_UNPACKED)
        key, title, steps = json.loads(text)
    except (zlib.error, RecursionError, TypeError) as problem:
        raise ValueError("no packed lesson") from problem
    if not isinstance(key, str) or not _ID.fullmatch(key) or not isinstance(steps, list) or len(steps) > MOST_STEPS:
        raise ValueError("no lesson")
    lesson = OwnLesson(key, _words(title, MOST_TITLE), tuple(map(_step, steps)))
    pack(lesson)  # a link may write shorter what the next one could not hold
    return lesson


def _step(raw: Any) -> Step:
    do, notice, page, link, at, usual = raw if isinstance(raw, list) and len(raw) == 6 else (None,) * 6
    if not isinstance(page, str) or page not in _PAGES or page in rooms.NOT_SHOWN:
        raise ValueError("no page of a step")
    values, words = _values(link), _values(at)
    if not all(isinstance(value, str) for _, value in words):
        raise ValueError("no parameter of an address")
    if not isinstance(usual, list) or not all(isinstance(key, str) and key in link for key in usual):
        raise ValueError("no keys of its values")
    return Step(_words(do, MOST_WORDS), _words(notice, MOST_WORDS), page, values, words, frozenset(usual))


def _words(value: Any, most: int) -> str:
    if not isinstance(value, str) or len(value) > most:
        raise ValueError("no words, or too many")
    value.encode("utf-8")  # half of a surrogate pair is no text, and a UnicodeEncodeError is a ValueError
    return " ".join(value.split())


def _values(raw: Any) -> tuple[tuple[str, Value], ...]:
    if not isinstance(raw, dict) or len(raw) > MOST_VALUES or not all(map(_NAME.fullmatch, raw)):
        raise ValueError("no values of controls")
    return tuple((key, _value(value)) for key, value in raw.items())


def _value(value: Any) -> Value:
    """A text, a switch, a number, or some texts."""
    if isinstance(value, list) and len(value) <= MOST_VALUES:
        return tuple(_text(one) for one in value)
    if isinstance(value, bool) or isinstance(value, int | float) and abs(value) < 1e9:  # NaN is not
        return value
    return _text(value)


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > MOST_VALUE:
        raise ValueError("no text, or too long")
    value.encode("utf-8")
    return value


# --- the visitor's -----------------------------------------------------------


def of_address() -> OwnLesson | None:
    """The lesson that the address holds."""
    return state.param(going.PLAN, parse, None)


def opened() -> OwnLesson:
    """On the Class page: the address's, or that which this visit was at last; an empty one to begin with."""
    found = of_address()
    if found is None:
        found = st.session_state.get(_HERE) or OwnLesson(secrets.token_hex(4))
        if found.steps or found.title:
            state.set_param(going.PLAN, pack(found))
    st.session_state[_HERE] = found
    return found


def open_one(lesson: OwnLesson) -> None:
    """Make it the one on screen; for use in a callback."""
    st.session_state[_HERE] = lesson
    state.set_param(going.PLAN, pack(lesson) if lesson.steps or lesson.title else None)


def begin() -> None:
    """An empty one; for use in a callback."""
    open_one(OwnLesson(secrets.token_hex(4)))


def adopt(lesson: OwnLesson) -> None:
    """Make a copy of somebody's lesson, to change it; for use in a callback."""
    change(lesson, id=secrets.token_hex(4))


def is_mine(lesson: OwnLesson, kept: Iterable[OwnLesson]) -> bool:
    """Whether it was made in this browser, which keeps it, or is still empty; a link brings others' too.

    Args:
        kept: what the browser keeps.
    """
    return lesson.id in {one.id for one in kept} or not (lesson.steps or lesson.title)


def now(lesson: OwnLesson) -> OwnLesson:
    """What became of it since it was drawn: a second click may come before the first one's picture."""
    here = st.session_state.get(_HERE)
    return here if here is not None and here.id == lesson.id else lesson


def change(lesson: OwnLesson, **parts: Any) -> None:
    """Put another one of the same name in its place, here and in the browser; for use in a callback."""
    changed = replace(now(lesson), **parts)
    try:
        raw = pack(changed)
    except ValueError as problem:
        st.session_state[_PROBLEM] = str(problem)
        return
    if not _is_lesson(raw):
        st.session_state[_PROBLEM] = (f"This view can't be a step: its sentence, or another of its controls, has more "
                                      f"than {MOST_VALUE:,} characters.")
        return
    st.session_state.pop(_PROBLEM, None)
    open_one(changed)
    _LESSONS.put(changed.id, raw)


def problem() -> str | None:
    """Why the last change could not be made, said once."""
    return st.session_state.pop(_PROBLEM, None)


def step_here(do: str, notice: str, view: View) -> Step:
    """A step at a view that the visitor has looked at."""
    widgets = tuple((key, value) for key, value in view.widgets
                    if value is not None and value != () and _NAME.fullmatch(key))
    others = tuple((key, value) for key, value in view.parameters if _NAME.fullmatch(key))
    return Step(" ".join(do.split()), " ".join(notice.split()), view.page, widgets, others,
                view.usual & dict(widgets).keys())


# --- the browser's -----------------------------------------------------------


def _is_lesson(raw: str) -> bool:
    try:
        parse(raw)
    except ValueError:
        return False
    return True


_LESSONS = BrowserStore("own_lessons", MOST_KEPT, takes=lambda key, raw: _is_lesson(raw) and parse(raw).id == key)


def kept() -> list[OwnLesson]:
    """Those that this browser keeps, the last changed first; the server keeps none."""
    _LESSONS.ask()
    return list(map(parse, _LESSONS.entries().values()))


def follow_tabs(lesson: OwnLesson) -> OwnLesson:
    """The lesson on screen, or what another tab of this browser has made of it since this one last looked."""
    raw, (key, before) = _LESSONS.entries().get(lesson.id), st.session_state.get(_SEEN, ("", None))
    st.session_state[_SEEN] = (lesson.id, raw)
    if key != lesson.id or not (before and raw) or raw in (before, pack(lesson)):
        return lesson
    open_one(parse(raw))
    return parse(raw)


def is_kept_nowhere() -> bool:
    """Whether this browser refuses to keep anything, a private one say."""
    return _LESSONS.is_refused()


def forget(key: str) -> None:
    """Let the browser keep it no longer; for use in a callback."""
    _LESSONS.forget(key)
