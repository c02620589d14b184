"""How a lesson is shown: predict, reveal, do, notice, check."""

from __future__ import annotations

import html

import streamlit as st

from bert_core.serving.rooms import View
from ui import controls, glossary, lesson_line, notices, shell
from ui.browser_store import BrowserStore
from ui.lessons import Lesson, checklist, lessons, titles
from ui.state import OWN_SENTENCE
from ui.views.family_html import draw, heading, small

#: Characters of a sentence that are shown of a view.
SHOWN = 60

# --- progress ----------------------------------------------------------------


_DONE = BrowserStore("lessons", most=64, takes=lambda key, text: text == "done")


def progress() -> set[str]:
    """Keys of the lessons that this visitor has done; their browser keeps them, the server doesn't."""
    _DONE.ask()
    return _DONE.entries().keys() & {lesson.key for lesson in lessons()}


def mark(key: str, is_done: bool) -> None:
    """Note that a lesson is done, or that it isn't after all; for use in a callback."""
    _DONE.put(key, "done" if is_done else "")


def start_over() -> None:
    """Forget the progress, here and in the browser; for use in a callback."""
    for lesson in lessons():
        _DONE.forget(lesson.key)


# --- on screen ---------------------------------------------------------------


def show_lessons(done: set[str]) -> None:
    """The path, and the chosen lesson."""
    names = titles()
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
        predicted: before that what to notice stays folded whatever was opened, and is not printed.
    """
    draw(heading("Do and notice", 3))
    for n in range(1, len(lesson.steps) + 1):
        place = lesson_line.Place(lesson, n)
        show_step(place, predicted)
        open_button(place)
    checks = "".join(f"<details><summary>{shell.inline(question)}</summary><p>{shell.inline(answer)}</p></details>"
                     for question, answer in lesson.checks)
    draw(heading("Check yourself", 3), f'<div class="bw-checks">{checks}</div>')


def show_step(place: lesson_line.Place, predicted: bool) -> None:
    """What to do, and what to notice: that often gives the answer, and is folded away until the page was opened.

    A teacher who wrote nothing to do has what it opens there.
    """
    step, is_open = place.step, predicted and lesson_line.was_opened(place)
    written = lesson_line.written if place.is_own else shell.inline
    notice = (f"<details{' open' if is_open else ''}><summary>What to notice</summary>"
              f'<p class="bw-notice-this">{glossary.mark(written(step.notice))}</p></details>')
    draw(f'<div class="bw-step{" bw-predicted" if predicted else ""}"><p><strong>{place.n}.</strong> '
         f"{written(step.do or in_words(step.view))}</p>{notice if step.notice else ''}</div>")


def in_words(view: View) -> str:
    """A page with its view and sentence, in one line."""
    values = {**dict(view.widgets), **dict(view.parameters)}
    parts = [shell.title_of(view.page), str(values.get("view") or "")]
    text = "" if view.page in OWN_SENTENCE else str(values.get("text") or "")
    parts.append(f"“{text if len(text) <= SHOWN else text[:SHOWN].rstrip() + ' …'}”" if text else "")
    return " · ".join(part for part in parts if part)


def open_button(place: lesson_line.Place) -> None:
    """The button that sets a step up."""
    st.button(f"Open {shell.title_of(place.step.page)}", key=f"_step_{place.lesson.key}_{place.n}",
              on_click=lesson_line.open_step, args=(place,))


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
