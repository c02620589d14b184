"""The Print and cite view of the Class page."""

from __future__ import annotations

import functools
import html
from pathlib import Path

import streamlit as st

from ui import shell
from ui.lessons import Lesson, lessons
from ui.views.family_html import draw, heading, small, words_of

CITATION = Path(__file__).resolve().parent.parent.parent / "CITATION.cff"


def show() -> None:
    """How to cite, and all lessons for the printer."""
    words = words_of("class")["cite"]
    draw(heading("How to cite"), f"<p>{html.escape(words['text'])}</p>",
         "".join(small(line) for line in words["also"]))
    with st.expander("CITATION.cff"):
        st.code(CITATION.read_text(encoding="utf-8"), language="yaml")
    draw(_sheet())


@functools.cache
def _sheet() -> str:
    """All lessons on one sheet, answers and what there is to notice at the end."""
    numbered = list(enumerate(lessons(), 1))
    return "".join((
        heading("All lessons, for paper"),
        small("Print this page with the browser. The answers, and what there is to notice, are at the end."),
        *(_questions(n, lesson) for n, lesson in numbered),
        f'<section class="bw-sheet">{heading("Answers", 3)}'
        f'<ol>{"".join(_answers(lesson) for _, lesson in numbered)}</ol></section>'))


def _questions(n: int, lesson: Lesson) -> str:
    """What a student gets of a lesson: the question, what to do, and questions with a line for each answer."""
    options = "".join(f"<li>{shell.inline(option)}</li>" for option in lesson.options)
    steps = "".join(f"<li>{shell.inline(step.do)} <em>({html.escape(shell.title_of(step.page))})</em></li>"
                    for step in lesson.steps)
    checks = "".join(f"<p>{shell.inline(question)}</p><p class='bw-line'></p>" for question, _ in lesson.checks)
    return (f'<section class="bw-sheet">{heading(f"{n}. {lesson.title}", 3)}{small(f"{lesson.minutes} minutes")}'
            f'<p class="bw-ask">{shell.inline(lesson.question)}</p><ol type="a">{options}</ol><ol>{steps}</ol>{checks}'
            "</section>")


def _answers(lesson: Lesson) -> str:
    """What is right, what there is to notice at each step, and the answers of the questions to oneself."""
    lines = [("Notice" if len(lesson.steps) == 1 else f"Notice at {n}", step.notice)
             for n, step in enumerate(lesson.steps, 1)]
    lines += [("Check yourself", answer) for _, answer in lesson.checks]
    return (f"<li><strong>{html.escape(lesson.title)}: {'abc'[lesson.answer]}.</strong> {shell.inline(lesson.reveal)}"
            + "".join(f"<br><strong>{label}:</strong> {shell.inline(words)}" for label, words in lines) + "</li>")
