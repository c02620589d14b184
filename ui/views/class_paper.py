"""The Print and cite view of the Class page."""

from __future__ import annotations

import html
from pathlib import Path

import streamlit as st

from ui import shell
from ui.views.class_lessons import lessons, page_title
from ui.views.family_html import draw, heading, small, words_of

CITATION = Path(__file__).resolve().parent.parent.parent / "CITATION.cff"


def show() -> None:
    """How to cite, and all lessons for the printer."""
    words = words_of("class")["cite"]
    draw(heading("How to cite"), f"<p>{html.escape(words['text'])}</p>",
         "".join(small(line) for line in words["also"]))
    with st.expander("CITATION.cff"):
        st.code(CITATION.read_text(encoding="utf-8"), language="yaml")
    _sheet()


def _sheet() -> None:
    """All lessons on one sheet, answers at the end."""
    parts = [heading("All lessons, for paper"), small("Print this page with the browser. The answers are at the end.")]
    answers = []
    for n, lesson in enumerate(lessons(), 1):
        options = "".join(f"<li>{shell.inline(option)}</li>" for option in lesson.options)
        steps = "".join(f"<li>{shell.inline(s.do)} <em>({html.escape(page_title(s.page))})</em><br>"
                        f"Notice: {shell.inline(s.notice)}</li>" for s in lesson.steps)
        checks = "".join(f"<p>{shell.inline(question)}</p><p class='bw-line'></p>" for question, _ in lesson.checks)
        parts.append(
            f'<section class="bw-sheet">{heading(f"{n}. {lesson.title}", 3)}{small(f"{lesson.minutes} minutes")}'
            f'<p class="bw-ask">{shell.inline(lesson.question)}</p><ol type="a">{options}</ol><ol>{steps}</ol>{checks}'
            "</section>")
        right = "abc"[lesson.answer]
        answers.append(f"<li><strong>{html.escape(lesson.title)}: {right}.</strong> {shell.inline(lesson.reveal)} "
                       + " ".join(shell.inline(answer) for _, answer in lesson.checks) + "</li>")
    draw(*parts, f'<section class="bw-sheet">{heading("Answers", 3)}<ol>{"".join(answers)}</ol></section>')
