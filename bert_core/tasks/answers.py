"""Extractive answers: the span of a context that answers a question.

A context longer than the model reads in windows that overlap; the best span of
all windows wins (Devlin et al. 2018, section 4.2).
"""

from __future__ import annotations

import bisect
from collections import Counter
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
        positions: (C,) token positions of the context, where answers may be; C > 0, tokens of spaces are left out.
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
            context tokens of all windows, each token in it once.
        window: index of the window that it was found in, of several the one with most context around it.
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
        inside = tuple(n for n in trace.encoding.content if trace.encoding.sequence_ids[n] == 1
                       and context[start:end][slice(*trace.encoding.offsets[n])].strip())
        if inside:
            windows.append(Window(question, start, end, trace, inside))
    if not windows:
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
    window without an answer can't win by being alone with itself. A token of
    several windows is in it once and has one probability in all of them, so
    that p(start) x p(end) of all spans add up to 1 at most.
    """
    copies = _copies_that_count(windows)
    result = []
    for name in ("start_logits", "end_logits"):
        of_all = np.zeros(len(copies))
        of_all[np.unique(copies)] = softmax(candidate_logits(windows, name))
        result.append([row[1:] for row in _by_window(of_all[copies], windows)])
    return list(zip(*result, strict=True))


def candidate_logits(windows: Sequence[Window], name: str) -> np.ndarray:
    """The logits that share a softmax: each window's [CLS], and its context tokens that count in it.

    Args:
        name: 'start_logits' or 'end_logits'.
    """
    logits = [window.trace.arrays[name][[0, *window.positions]] for window in windows]
    return np.concatenate(logits)[np.unique(_copies_that_count(windows))]


def counted_positions(windows: Sequence[Window]) -> list[tuple[int, ...]]:
    """Of each window's positions, those of the tokens that count in this window, not in another."""
    copies = _copies_that_count(windows)
    own = _by_window(copies == np.arange(len(copies)), windows)
    return [tuple(np.array(window.positions, int)[row[1:]].tolist()) for window, row in zip(windows, own, strict=True)]


def _copies_that_count(windows: Sequence[Window]) -> np.ndarray:
    """For each window's [CLS] and context tokens, all in a row (N,), the index there of the copy that counts.

    A token of several windows counts where it has most context, the smaller of
    the tokens before and after it (google-research/bert run_squad.py,
    `_check_is_max_context`). A [CLS] is its own window's alone.
    """
    names: list[tuple[int, ...]] = []
    around: list[int] = []
    for index, window in enumerate(windows):
        names += [(index,), *_token_names(window)]
        around += [0, *(_context(place, place, window) for place in range(len(window.positions)))]
    best: dict[tuple[int, ...], int] = {}
    for n, name in enumerate(names):
        if name not in best or around[n] > around[best[name]]:
            best[name] = n
    return np.array([best[name] for name in names])


def _token_names(window: Window) -> list[tuple[int, ...]]:
    """What a window's context tokens are in every window: start and end in the context, and which one there.

    Several tokens of one character, such as the bytes of an emoji, have the same start and end.
    """
    seen: Counter[tuple[int, int]] = Counter()
    names = []
    for start, end in (window.trace.encoding.offsets[n] for n in window.positions):
        names.append((window.start + start, window.start + end, seen[start, end]))
        seen[start, end] += 1
    return names


def _context(first: int, last: int, window: Window) -> int:
    """The smaller of the numbers of context tokens before and after a span of them."""
    return min(first, len(window.positions) - 1 - last)


def _by_window(row: np.ndarray, windows: Sequence[Window]) -> list[np.ndarray]:
    """(N,) of all windows' [CLS] and context tokens -> (1 + C,) of each."""
    return np.split(row, np.cumsum([1 + len(window.positions) for window in windows])[:-1])


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
    """The `top` best spans over all windows, a span counted once, in the window that gives it most context.

    Args:
        max_answer: longest answer, in tokens.
    """
    found: dict[tuple[int, int], tuple[float, int, Answer]] = {}  # score, context around it
    for index, (window, grid) in enumerate(zip(windows, answer_grids(windows, max_answer), strict=True)):
        if not grid.tokens:
            continue
        flat = np.nan_to_num(grid.scores, nan=-1.0).ravel()
        for place in np.argsort(-flat, kind="stable")[: 4 * top]:
            if flat[place] < 0:
                break
            pair = divmod(int(place), len(grid.tokens))
            one = _answer(window, index, context, pair, float(flat[place]))
            worth = (one.score, _context(*pair, window))
            if (one.start, one.end) not in found or worth > found[one.start, one.end][:2]:
                found[one.start, one.end] = (*worth, one)
    return tuple(sorted((one for *_, one in found.values()), key=lambda one: -one.score)[:top])


def _answer(window: Window, index: int, context: str, pair: tuple[int, int], score: float) -> Answer:
    first, last = (window.positions[n] for n in pair)
    offsets = window.trace.encoding.offsets
    start, end = trimmed(context, window.start + offsets[first][0], window.start + offsets[last][1])
    return Answer(context[start:end], start, end, score, index, (first, last))
