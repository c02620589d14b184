"""Every view while the engine is too busy, or can't read the text: one plain line says so, and no picture is drawn."""

from __future__ import annotations

import zlib

import pytest
import streamlit as st

from bert_core.measures.compare import Question
from bert_core.serving import Busy, Superseded
from tests.cases import quick_are
from tests.pages.test_any_model import VIEWS
from tests.payloads import NO_PICTURE, drawn, is_ready, plain_line, said, visit
from ui import state

TEXT, PAIR = "The old dog [MASK] all night.", "We walked home."
LINE = "512 requests wait already; try again in a moment"
#: Views that run no model on the sentence, or only when a button is pressed.
NO_PASS = {
    *((page, view) for page, view in VIEWS if page == "tokens"),
    ("embeddings", "Positions"), ("embeddings", "Neighbours"),
    ("compare", "Reveal"), ("compare", "Experiment"), ("code", "Stages"), ("code", "Walk"),
    *((page, view) for page, view in VIEWS if page == "family" and view != "Side by side"),
}
PASSING = [one for one in VIEWS if one not in NO_PASS]
#: Page -> the first of its views that runs a model.
FIRST = dict(reversed(PASSING))
#: What a view asks for beside the sentence before it has anything to run.
GIVEN = {("masking", "Swap vectors"): {"swapped": "The old cat [MASK] all night."}}
#: Views that ask for more than a Trace.
CALLING = [("cls", "Answer"), ("attention", "Attribution")]


class Refusing:
    """The pages' engine, whose queue refuses whatever is asked of it by one of these methods.

    Attributes:
        asked: how often it refused.
    """

    def __init__(self, engine, problem: Exception, methods: tuple[str, ...]):
        self._engine, self._problem, self._methods, self.asked = engine, problem, methods, 0

    def __getattr__(self, name: str):
        return self._refuse if name in self._methods else getattr(self._engine, name)

    def _refuse(self, *_, **__):
        self.asked += 1
        raise self._problem


@pytest.fixture
def refuse(monkeypatch):
    """refuse(problem, methods) -> the engine of the pages from now on; nothing is kept of what was asked before."""

    def start(problem: Exception, *methods: str) -> Refusing:
        engine = Refusing(state.start_engine(), problem, methods)
        monkeypatch.setattr(state, "engine", lambda: engine)
        return engine

    for kept in (st.cache_resource, st.cache_data):
        kept.clear()
    yield start
    for kept in (st.cache_resource, st.cache_data):
        kept.clear()


@pytest.mark.parametrize(("page", "view", "problem"), quick_are(len(PASSING) + len(FIRST), [
    *((*one, ValueError(LINE)) for one in PASSING),
    *((*one, Busy(LINE)) for one in sorted(PASSING, key=lambda one: one[1] != FIRST[one[0]]))]),  # a ValueError too
    ids=lambda value: type(value).__name__ if isinstance(value, ValueError) else value)
def test_a_view_says_why_the_engine_does_not_answer(refuse, page, view, problem):
    engine = refuse(problem, "run", "run_many", "call")
    at = visit(page, text=TEXT, pair=PAIR, view=view, **GIVEN.get((page, view), {}))
    assert plain_line(at) == LINE
    assert engine.asked == 1


@pytest.mark.parametrize(("page", "view"), sorted(NO_PASS))
def test_a_view_that_needs_no_pass_is_drawn_while_the_engine_is_busy(refuse, page, view):
    engine = refuse(Busy(LINE), "run", "run_many", "call")
    is_ready(visit(page, text=TEXT, pair=PAIR, view=view))
    assert engine.asked == 0


@pytest.mark.parametrize(("page", "view"), CALLING)
def test_a_view_that_got_its_trace_and_no_more_says_so(refuse, page, view):
    engine = refuse(Busy(LINE), "call")
    at = visit(page, text=TEXT, pair=PAIR, view=view)
    assert LINE in said(at)
    assert drawn(at, "ready")["status"].startswith(NO_PICTURE)
    assert engine.asked == 1


@pytest.mark.parametrize(("page", "view"), CALLING)
@pytest.mark.parametrize("method", ["run_many", "call"])
def test_a_view_whose_place_a_newer_run_took_says_nothing(refuse, page, view, method):
    engine = refuse(Superseded("a newer request took this one's place"), method)
    at = visit(page, text=TEXT, pair=PAIR, view=view)
    assert "newer request" not in said(at)
    assert engine.asked == 1
    with pytest.raises(AssertionError, match="no component ready"):
        drawn(at, "ready")


def test_a_reveal_that_a_link_opens_says_that_the_engine_is_busy(refuse):
    engine = refuse(Busy(LINE), "run", "run_many", "call")
    mark = f"{zlib.crc32(repr(Question(TEXT, None, 0, 4, 7)).encode()):08x}"
    assert plain_line(visit("compare", text=TEXT, at="2", view="Reveal", shown=mark)) == LINE
    assert engine.asked == 1


def test_an_experiment_that_meets_a_busy_engine_says_so(refuse):
    engine = refuse(Busy(LINE), "run", "run_many", "call")
    at = visit("compare", text=TEXT, view="Experiment", each="1")
    next(button for button in at.button if button.label == "Run").click().run()
    assert LINE in said(at)
    assert engine.asked == 1
