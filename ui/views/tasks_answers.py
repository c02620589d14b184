"""Tasks, answers: the span of a context that answers a question, from start and end."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

from bert_core.measures.no_answer import knows_no_answer, no_answer_score
from bert_core.tasks import Answer, Window, answer_windows, best_answers
from bert_core.tasks.answers import MAX_ANSWER, answer_grids
from ui import components, controls, state
from ui.state import Here
from ui.views import tasks_layer
from ui.views.task_models import examples, follow, lines, marked, or_example, say, share, try_buttons

#: Answers in the list.
TOP = 5


def draw(here: Here) -> Here:
    """The best answer in the context, the grid it comes from, and its rivals.

    Returns:
        The input that the grid is of: the question and, of a long context, one window.
    """
    shipped = [(entry["question"], entry["context"]) for entry in examples("tasks")["answers"]]
    try_buttons(shipped, "answers", only_first=True)
    here = or_example(here, *shipped[0])
    if here.pair is None or not here.text.strip():
        say("Ask in “Sentence”, and put the text that holds the answer in “Second sentence”; or try one above.",
            strong=True)
        return here
    windows = state.or_stop(
        lambda: answer_windows(state.engine(), here.text, here.pair, here.model, visitor=state.visitor()))
    best = best_answers(windows, here.pair, top=TOP)
    st.html(f'<p dir="auto" style="font-size:1.2rem">{marked(here.pair, best[0].start, best[0].end)}</p>')
    say(_in_words(best[0], windows, here), strong=True)
    shown = _window(windows, best[0].window)
    grid, rivals = st.columns([3, 2], gap="large")
    with grid:
        components.mount("startend", "qa_grid", _payload(windows, shown, here.pair, best))
    with rivals:
        st.html("<h2>The likeliest answers</h2>")
        lines([_rival(one, len(windows) > 1) for one in best])
    tasks_layer.of_answers(here, windows, shown, next((one.tokens for one in best if one.window == shown), None))
    window = windows[shown]
    return replace(here, text=window.question, pair=here.pair[window.start:window.end])


def _window(windows: Sequence[Window], best: int) -> int:
    """The window whose grid is shown: that of the best answer, unless another one is chosen."""
    if len(windows) == 1:
        return best
    names = [f"{n + 1}: characters {w.start} to {w.end}" for n, w in enumerate(windows)]
    follow("window", names[best])
    return names.index(controls.choice("Window", names, "window", names[best], as_list=True))


def _in_words(best: Answer, windows: Sequence[Window], here: Here) -> str:
    """The answer, its score, the windows, and the score of no answer where that was trained."""
    words = f"{here.model} answers “{best.text}” with P(start) × P(end) = {share(best.score)}."
    if len(windows) > 1:
        words += (f" The context is longer than the model reads at once, so it was read in {len(windows)} windows that "
                  f"overlap; this answer is from window {best.window + 1}. What stands in two windows counts once, in "
                  "the one that has more of the context around it.")
    if windows[0].question != here.text:
        words += f" The question was cut to “{windows[0].question}”."
    if knows_no_answer(state.loaded(here.model)):
        words += f" No answer: {share(no_answer_score(windows))}."
    return words


def _payload(windows: Sequence[Window], shown: int, context: str, best: Sequence[Answer]) -> bytes:
    """One window's start and end probabilities; the grid is their product."""
    window, grid = windows[shown], answer_grids(windows)[shown]
    place = {position: n for n, position in enumerate(window.positions)}
    spans = [(place[one.tokens[0]], place[one.tokens[1]], one.text) for one in best if one.window == shown]
    if not spans:
        i, j = np.unravel_index(int(np.nan_to_num(grid.scores, nan=-1.0).argmax()), grid.scores.shape)
        first, last = (window.trace.encoding.offsets[window.positions[n]] for n in (int(i), int(j)))
        spans = [(int(i), int(j), context[window.start + first[0]:window.start + last[1]])]
    return components.pack({
        "tokens": list(grid.tokens), "longest": MAX_ANSWER, "context": context[window.start:window.end],
        "offsets": [list(window.trace.encoding.offsets[n]) for n in window.positions],
        "top": [{"i": i, "j": j, "text": text} for i, j, text in spans],
    }, {"start": grid.start.astype(np.float32), "end": grid.end.astype(np.float32)})


def _rival(one: Answer, several: bool) -> str:
    """One answer as a line of escaped HTML."""
    where = f", window {one.window + 1}" if several else ""
    return (f"<b>{html.escape(share(one.score))}</b>&ensp;<bdi>{html.escape(one.text)}</bdi> "
            f"<small>(characters {one.start} to {one.end}{where})</small>")
