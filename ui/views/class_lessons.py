"""Lessons as data, and how one is shown: predict, reveal, do, notice, check."""

from __future__ import annotations

import functools
import html
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from bert_core.serving.rooms import View
from ui import components, controls, glossary, going, notices, shell, state
from ui.views.family_html import draw, heading, small
from ui.words import LESSONS


@dataclass(frozen=True)
class Step:
    """One thing to do on a page, and what to notice there.

    Attributes:
        link: values of the page's controls.
        at: what its picture is open at: parameters of the address that no control holds.
    """

    do: str
    notice: str
    page: str
    link: tuple[tuple[str, str | bool], ...]
    at: tuple[tuple[str, str], ...] = ()

    @property
    def view(self) -> View:
        """Where the step takes place, with the model that its numbers are from.

        A second sentence that it doesn't name is taken away.
        """
        return View(self.page, (("pair", ""), ("model", state.OFFERED), *self.link), self.at)


@dataclass(frozen=True)
class Lesson:
    """A lesson of 5 to 15 minutes.

    Attributes:
        key: the file's name without its number.
        question, options, answer, reveal: what is predicted before it is shown;
            `answer` is the index of the right option.
        steps: what to do and to notice.
        checks: (question, answer) to test oneself.
        checklist: keys of the checklist's items it teaches.
    """

    key: str
    title: str
    minutes: int
    question: str
    options: tuple[str, ...]
    answer: int
    reveal: str
    steps: tuple[Step, ...]
    checks: tuple[tuple[str, str], ...]
    checklist: tuple[str, ...]


@functools.cache
def lessons() -> tuple[Lesson, ...]:
    """All lessons in their order."""
    return tuple(_read(path) for path in sorted(LESSONS.glob("[0-9]*.toml")))


def _read(path: Path) -> Lesson:
    words = tomllib.loads(path.read_text(encoding="utf-8"))
    steps = tuple(Step(s["do"], s["notice"], s["page"], tuple(s["link"].items()), tuple(s.get("at", {}).items()))
                  for s in words["step"])
    checks = tuple((c["question"], c["answer"]) for c in words["check"])
    return Lesson(path.stem.split("-", 1)[1], words["title"], words["minutes"], words["question"],
                  tuple(words["options"]), words["answer"], words["reveal"], steps, checks, tuple(words["checklist"]))


@functools.cache
def checklist() -> tuple[tuple[str, str], ...]:
    """(key, what one can do) of every item."""
    words = tomllib.loads((LESSONS / "checklist.toml").read_text(encoding="utf-8"))
    return tuple((item["key"], item["can"]) for item in words["item"])


# --- progress ----------------------------------------------------------------


def progress() -> set[str]:
    """Keys of the lessons that this visitor has done; their browser keeps them, the server doesn't.

    What the browser has counts, as another tab may have changed it; a session tells it only what was changed there,
    until the browser says that it has it.
    """
    done, changes, known = _done(), _changes(), [lesson.key for lesson in lessons()]

    def receive(message: dict[str, Any]) -> None:
        kept, taken = message.get("done"), message.get("changes")
        if not isinstance(kept, list) or not all(isinstance(key, str) for key in kept) or not isinstance(taken, dict):
            return
        for key in [key for key, is_done in changes.items() if taken.get(key) == is_done]:
            del changes[key]
        done.clear()
        done.update((set(kept) & set(known) | _changed_to(True)) - _changed_to(False))

    data = components.pack({"done": sorted(done), "changes": changes, "lessons": known})
    components.mount("progress", "progress", data, on_event=receive)
    return done


def mark(key: str, is_done: bool) -> None:
    """Note that a lesson is done, or that it isn't after all; for use in a callback."""
    _changes()[key] = is_done
    (_done().add if is_done else _done().discard)(key)


def start_over() -> None:
    """Forget the progress, here and in the browser; for use in a callback."""
    for lesson in lessons():
        mark(lesson.key, False)


def _done() -> set[str]:
    return st.session_state.setdefault("_lessons", set())


def _changes() -> dict[str, bool]:
    """Lesson -> whether it is done, of those that were marked here and that the browser has not taken on yet."""
    return st.session_state.setdefault("_lessons_changed", {})


def _changed_to(wanted: bool) -> set[str]:
    return {key for key, is_done in _changes().items() if is_done == wanted}


# --- on screen ---------------------------------------------------------------


def show_lessons(done: set[str]) -> None:
    """The path, and the chosen lesson."""
    names = [f"{n}. {lesson.title}" for n, lesson in enumerate(lessons(), 1)]
    left, right = st.columns([3, 1], gap="medium", vertical_alignment="bottom")
    with left:
        chosen = names.index(controls.choice("Lesson", names, "lesson", as_list=True))
    with right:
        count = sum(lesson.key in done for lesson in lessons())
        draw(f'<p class="bw-progress"><strong>{count}</strong> of {len(names)} done</p>')
    lesson = lessons()[chosen]
    draw(heading(lesson.title), small(f"{lesson.minutes} minutes"))
    _todo(lesson, _predict(lesson))
    _finish(lesson, done)


def _predict(lesson: Lesson) -> bool:
    """The opening question; its answer appears after a prediction. Returns whether there is one."""
    draw(f'<p class="bw-ask bw-words">{shell.inline(lesson.question)}</p>')
    guess = st.radio("Your prediction", lesson.options, index=None, key=f"_guess_{lesson.key}",
                     label_visibility="collapsed", persist_state="session")
    if guess is None:
        draw(small("Choose before you read on; the answer shows after that."))
        return False
    right = lesson.options[lesson.answer]
    verdict = "As you predicted." if guess == right else f"You predicted: {guess}. The answer: {right}."
    draw(f'<div class="bw-reveal" role="status"><p><strong>{html.escape(verdict)}</strong></p>'
         f"<p>{glossary.mark(shell.inline(lesson.reveal))}</p></div>")
    return True


def _todo(lesson: Lesson, predicted: bool) -> None:
    """What to do, each with the button that sets it up, what to notice, and questions to oneself.

    Args:
        predicted: before that what to notice is folded away, as it often gives the answer.
    """
    draw(heading("Do and notice", 3))
    for n, step in enumerate(lesson.steps, 1):
        draw(f'<div class="bw-step"><p><strong>{n}.</strong> {shell.inline(step.do)}</p>'
             f"{_to_notice(step, predicted)}</div>")
        st.button(f"Open {shell.title_of(step.page)}", key=f"_step_{lesson.key}_{n}", on_click=going.to,
                  args=(step.view,))
    checks = "".join(f"<details><summary>{shell.inline(question)}</summary><p>{shell.inline(answer)}</p></details>"
                     for question, answer in lesson.checks)
    draw(heading("Check yourself", 3), f'<div class="bw-below">{checks}</div>')


def _to_notice(step: Step, predicted: bool) -> str:
    notice = f'<p class="bw-notice-this">{glossary.mark(shell.inline(step.notice))}</p>'
    return notice if predicted else f"<details><summary>What to notice</summary>{notice}</details>"



def _finish(lesson: Lesson, done: set[str]) -> None:
    """Mark the lesson, and say what it taught."""
    taught = [can for key, can in checklist() if key in lesson.checklist]
    draw("".join(small(can) for can in taught))
    if lesson.key in done:
        notices.note("Done.")
        st.button("I have not done it", key=f"_undone_{lesson.key}", on_click=mark, args=(lesson.key, False))
    else:
        st.button("I have done this lesson", key=f"_done_{lesson.key}", type="primary", on_click=mark,
                  args=(lesson.key, True))


def show_checklist(done: set[str]) -> None:
    """What one should be able to explain, and which lessons are still open for it."""
    rows = []
    for key, can in checklist():
        teaching = [lesson for lesson in lessons() if key in lesson.checklist]
        left = [lesson.title for lesson in teaching if lesson.key not in done]
        words = f"Still open: {', '.join(left)}" if left else f"Done: {', '.join(lesson.title for lesson in teaching)}"
        rows.append(f'<li class="{"bw-open" if left else "bw-done"}"><p>{html.escape(can)}</p>{small(words)}</li>')
    draw(heading("At the end you can say"), f'<ul class="bw-checklist">{"".join(rows)}</ul>')
    if done:
        st.button("Start over", on_click=start_over, help="Forgets which lessons you have done, in this browser too")
