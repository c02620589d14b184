"""Extractive answers: the span of a context that answers a question.

A context longer than the model reads in windows that overlap; the best span of
all windows wins (Devlin et al. 2018, section 4.2).
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bert_core.tasks.support import require_head, require_text, softmax, trimmed
from bert_core.trace import TraceRequest

if TYPE_CHECKING:
    from bert_core.load import Loaded
    from bert_core.serving.engine import Engine
    from bert_core.trace import Trace

#: Longest answer, in tokens.
MAX_ANSWER = 30
#: Tokens that neighbouring windows share.
OVERLAP = 128
#: Longest question, in tokens; the rest is cut.
MAX_QUESTION = 64
#: Most windows of one context: 200,000 letters of English take some 130 of 512 tokens, and each is a pass.
MAX_WINDOWS = 256


@dataclass(frozen=True)
class Window:
    """One stretch of the context, read with the question.

    Attributes:
        question: as the model read it (a long one is cut).
        start, end: the stretch, in code points of the whole context.
        trace: the run, with start_logits and end_logits (T,).
        positions: (C,) token positions of the context, where answers may be.
    """

    question: str
    start: int
    end: int
    trace: Trace
    positions: tuple[int, ...]


@dataclass(frozen=True)
class Answer:
    """A span of the context.

    Attributes:
        start, end: code points of the whole context, end exclusive.
        score: p(start) x p(end), 0 to 1, each a softmax over [CLS] and the
            context tokens of all windows.
        window: index of the window that it was found in.
        tokens: (start, end) token positions in that window, both inclusive.
    """

    text: str
    start: int
    end: int
    score: float
    window: int
    tokens: tuple[int, int]


@dataclass(frozen=True)
class AnswerGrid:
    """Scores of every (start, end) in one window.

    Attributes:
        scores: (C, C), p(start) x p(end); NaN where end < start or the answer
            would be too long.
        start, end: (C,), the two probabilities.
        tokens: the C context tokens.
    """

    scores: np.ndarray
    start: np.ndarray
    end: np.ndarray
    tokens: tuple[str, ...]


def answer(engine: Engine, question: str, context: str, model: str | None = None) -> Answer:
    """The best answer to a question in a context.

    Raises:
        NoHead: the model has no question-answering head.
        ValueError: question or context is empty.
    """
    return best_answers(answer_windows(engine, question, context, model), context, top=1)[0]


def answer_windows(
    engine: Engine, question: str, context: str, model: str | None = None,
    parts: tuple[str, ...] = ("start_logits", "end_logits"), visitor: str | None = None,
) -> tuple[Window, ...]:
    """Read the context in as many windows as it takes, all in one go.

    Args:
        parts: Trace arrays wanted beside the two logits, for views.
        visitor: who asks, as in Engine.run.

    Raises:
        NoHead: the model has no question-answering head.
        ValueError: question or context is empty, or the context takes more than MAX_WINDOWS.
        EngineError: as in Engine.run.
    """
    loaded = require_head(engine, model, "question_answering")
    require_text(question, "question")
    require_text(context, "context")
    question = cut_question(loaded, question)
    spans = window_spans(loaded, question, context)
    parts = tuple(dict.fromkeys((*parts, "start_logits", "end_logits")))
    requests = [TraceRequest(question, context[a:b], model=model, parts=parts) for a, b in spans]
    windows = []
    for (start, end), trace in zip(spans, engine.run_many(requests, visitor), strict=True):
        inside = tuple(n for n in trace.encoding.content if trace.encoding.sequence_ids[n] == 1)
        windows.append(Window(question, start, end, trace, inside))
    if not any(window.positions for window in windows):
        raise ValueError("the context has no token to answer with")
    return tuple(windows)


def cut_question(loaded: Loaded, question: str) -> str:
    """The question, cut so that about half of the window at least is left for the context."""
    encoding = loaded.tokenizer.encode(question)
    typed = [n for n, sentence in enumerate(encoding.sequence_ids) if sentence is not None]  # typed specials too
    room = min(MAX_QUESTION, loaded.tokenizer.limit // 2)
    if len(typed) <= room:
        return question
    return question[: encoding.offsets[typed[room - 1]][1]]


def window_spans(loaded: Loaded, question: str, context: str) -> list[tuple[int, int]]:
    """[start, end) code points of each window: the whole context where it fits.

    Windows begin and end between words, so that a word's pieces stay the same.

    Raises:
        ValueError: it takes more than MAX_WINDOWS.
    """
    pieces = loaded.tokenizer.spans(context)
    room = max(loaded.tokenizer.limit - len(loaded.tokenizer.encode(question, "")), 1)
    if len(pieces) <= room:
        return [(0, len(context))]
    starts = [n for n, piece in enumerate(pieces) if n == 0 or piece.word != pieces[n - 1].word]
    spans, first = [], 0
    while len(spans) < MAX_WINDOWS:
        last = min(first + room, len(pieces)) - 1
        if last < len(pieces) - 1:
            last = _last_start(starts, first, last + 1, otherwise=last + 1) - 1
        spans.append((pieces[first].start, pieces[last].end))
        if last == len(pieces) - 1:
            return spans
        back = min(OVERLAP, room // 2)
        first = _last_start(starts, first, last + 1 - back, otherwise=last + 1)
    raise ValueError(f"the context of {len(context):,} characters takes more than {MAX_WINDOWS} windows of "
                     f"{loaded.tokenizer.limit} tokens; shorten it to {spans[-1][1]:,} characters")


def _last_start(starts: Sequence[int], after: int, until: int, otherwise: int) -> int:
    """The last of the rising `starts` in (after, until], if one is there."""
    at = bisect.bisect_right(starts, until) - 1
    return starts[at] if at >= 0 and starts[at] > after else otherwise


def answer_probabilities(windows: Sequence[Window]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Start and end probability (C,) of each window's context tokens.

    One softmax over all windows together, each with its [CLS], so that a
    window without an answer can't win by being alone with itself.
    """
    result = []
    for name in ("start_logits", "end_logits"):
        logits = candidate_logits(windows, name)
        ends = np.cumsum([len(row) for row in logits])[:-1]
        result.append([row[1:] for row in np.split(softmax(np.concatenate(logits)), ends)])
    return list(zip(*result, strict=True))


def candidate_logits(windows: Sequence[Window], name: str) -> list[np.ndarray]:
    """The logits that share a softmax, one array (1 + C,) a window: its [CLS], then its context tokens.

    Args:
        name: 'start_logits' or 'end_logits'.
    """
    return [window.trace.arrays[name][[0, *window.positions]] for window in windows]


def answer_grids(windows: Sequence[Window], max_answer: int = MAX_ANSWER) -> tuple[AnswerGrid, ...]:
    """The start x end grid of each window, with the j >= i constraint visible as NaN."""
    grids = []
    for window, (start, end) in zip(windows, answer_probabilities(windows), strict=True):
        scores = np.outer(start, end)
        place = np.arange(len(start))
        length = place[None, :] - place[:, None] + 1
        scores[(length < 1) | (length > max_answer)] = np.nan
        tokens = tuple(window.trace.encoding.tokens[n] for n in window.positions)
        grids.append(AnswerGrid(scores, start, end, tokens))
    return tuple(grids)


def best_answers(
    windows: Sequence[Window], context: str, top: int = 5, max_answer: int = MAX_ANSWER
) -> tuple[Answer, ...]:
    """The `top` best spans over all windows, a span counted once.

    Args:
        max_answer: longest answer, in tokens.
    """
    found: dict[tuple[int, int], Answer] = {}
    for index, grid in enumerate(answer_grids(windows, max_answer)):
        if not grid.tokens:
            continue
        flat = np.nan_to_num(grid.scores, nan=-1.0).ravel()
        for place in np.argsort(-flat, kind="stable")[: 4 * top]:
            if flat[place] < 0:
                break
            one = _answer(windows[index], index, context, divmod(int(place), len(grid.tokens)), float(flat[place]))
            span = (one.start, one.end)
            if span not in found or found[span].score < one.score:
                found[span] = one
    return tuple(sorted(found.values(), key=lambda one: -one.score)[:top])


def _answer(window: Window, index: int, context: str, pair: tuple[int, int], score: float) -> Answer:
    first, last = (window.positions[n] for n in pair)
    offsets = window.trace.encoding.offsets
    start, end = trimmed(context, window.start + offsets[first][0], window.start + offsets[last][1])
    return Answer(context[start:end], start, end, score, index, (first, last))
