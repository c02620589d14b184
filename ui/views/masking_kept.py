"""Answers that a visitor keeps while trying sentences, to compare them and to take them along."""

from __future__ import annotations

import html
from collections.abc import Sequence

import streamlit as st

from bert_core.figures import kept
from bert_core.figures.kept import KeptAnswer
from bert_core.measures.predictions import Gap
from bert_core.trace import Trace
from ui import chips, controls, state
from ui.views import task_models
from ui.views.family_html import draw, heading, small

#: Answers kept in one visit; one more pushes the oldest out.
MOST = 12
#: Characters of a longer sentence's beginning, and of its end, on its button.
LONG = 90
_KEPT = "_kept_answers"


def offer(trace: Trace, gaps: Sequence[Gap], tokens: Sequence[str]) -> None:
    """A button that keeps the answer on screen.

    Args:
        tokens: (T,) before any was hidden.
    """
    now = kept.kept_answer(trace, gaps, tokens)
    st.button("Kept below" if now in _answers() else "Keep this answer", key="keep_answer", on_click=_keep, args=(now,),
              help="Puts it in a list below, to compare it with the answer to another sentence.")


def listed() -> None:
    """All that were kept in this visit; nothing where there is none."""
    answers = _answers()
    if not answers:
        return
    draw(heading("Kept answers"),
         small(f"At most {MOST}, until this page is reloaded. Choose a sentence to see it again."))
    for n, answer in enumerate(answers):
        _line(n, answer)
    with st.container(horizontal=True, gap="small"):
        st.download_button("Download as CSV", kept.kept_csv(answers), "both-ways-answers.csv", "text/csv",
                           key="kept_csv", on_click="ignore")
        st.button("Forget all", key="kept_none", on_click=answers.clear)


def _answers() -> list[KeptAnswer]:
    return st.session_state.setdefault(_KEPT, [])


def _line(n: int, answer: KeptAnswer) -> None:
    """One answer: its sentence as a button, beside it its gaps, and what was hidden in it."""
    left, right = st.columns([2, 3], gap="small", vertical_alignment="center")
    asked = " + ".join(_in_short(text) for text in (answer.text, answer.pair) if text)
    left.button(controls.literal(asked), key=f"kept_{n}", on_click=_show, args=(answer,), type="tertiary")
    hidden = f"hidden: {', '.join(answer.hidden)} · " if answer.hidden else ""
    lines = "<br>".join(map(html.escape, kept.gap_lines(answer)))
    right.html(f"<div>{lines}</div>" + small(f"{hidden}{answer.model}"))


def _in_short(text: str) -> str:
    """The sentence; of a very long one its beginning and its end, since such as are compared may differ in either."""
    return text if len(text) <= 2 * LONG else f"{text[:LONG]} … {text[-LONG:]}"


def _keep(answer: KeptAnswer) -> None:
    """Callback: put it last; it takes the place of one to the same that shows fewer or more guesses."""
    answers = _answers()
    if answer not in answers:
        answers[:] = [one for one in answers if one.asked != answer.asked] + [answer]
        del answers[:-MOST]


def _show(answer: KeptAnswer) -> None:
    """Callback: ask it again."""
    task_models.put(answer.text, answer.pair)
    state.choose_model(answer.model)
    chips.set_positions("mask", answer.masked)
