"""Compare page: the readers on minimal pairs, run live, with progress and a way to stop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import streamlit as st

from bert_core import LoadError, MissingPart, Trace, TraceRequest
from bert_core.figures import compare_curves as figures
from bert_core.measures import compare_pairs
from bert_core.measures.compare import Readers
from bert_core.measures.compare_pairs import Pair, Tally
from bert_core.measures.pieces import same_pieces
from bert_core.serving import Superseded
from ui import components, controls, notices, rooms, state, tables
from ui.state import Here
from ui.tables import Numbers
from ui.views.compare_ask import VisitorEngine, choose_readers, say

_JOB = "_compare_job"
#: Batches between two drawings of the chart.
REDRAW = 3


@dataclass
class Job:
    """A visitor's run of the experiment; lives in their session.

    Attributes:
        models: judge -> its model, or the two models that judge joined.
        looks: judge -> the reader whose colour it has.
        pairs: to be judged, phenomena taking turns.
        right: judge -> verdicts so far, in the order of `pairs`.
        stopped: whether the visitor stopped it.
    """

    models: dict[str, tuple[str, ...]]
    looks: dict[str, str]
    pairs: tuple[Pair, ...]
    right: dict[str, list[bool]] = field(default_factory=dict)
    stopped: bool = False

    @property
    def done(self) -> int:
        return min((len(self.right.get(model, ())) for model in self.models), default=0)

    @property
    def running(self) -> bool:
        return not self.stopped and self.done < len(self.pairs)

    def tallies(self) -> dict[str, dict[str, Tally]]:
        """Model -> phenomenon -> Tally."""
        return {model: compare_pairs.tallies(self.pairs, right) for model, right in self.right.items()}


def experiment(here: Here) -> None:
    """The controls and, as it comes in, the chart."""
    readers = choose_readers(here)
    kinds = compare_pairs.phenomena()
    say(f"Of two sentences that differ in one word, which does each model find likelier? {len(kinds)} phenomena, "
        "25 pairs of each, written for this project.")
    with controls.row():
        each = controls.slider("Pairs of each phenomenon", 1, 25, "each", 5)
        st.button("Run", type="primary", on_click=_begin, args=(readers, each))
        st.button("Stop", on_click=_stop, disabled=not _is_running())
    if rooms.teaching() or rooms.following():
        notices.note("The tally is on the screen of whoever runs it: a class and its teacher each have their own.")
    st.session_state["_compare_slots"] = st.empty(), st.empty()
    _draw()
    pairs = [(p.phenomenon, kinds[p.phenomenon], p.good, p.bad)
             for p in compare_pairs.sample(compare_pairs.read_pairs(), 1)]
    tables.show(Numbers("One pair of each phenomenon", ("phenomenon", "asks whether", "good", "bad"), pairs),
                summary="One pair of each phenomenon")
    say("One-way models are scored by log-likelihood, BERT by pseudo-log-likelihood (one piece masked at a time), "
        "ELMo's way by the two one-way readers joined at each token. "
        "Whiskers are Wilson's 95 % intervals: with few pairs they are wide, and a difference well inside them may be "
        "chance.", "cmp-small")


def _begin(readers: Readers, each: int) -> None:
    """Start anew with every model that is here, and the two one-way readers joined if both are."""
    parts = {"both": (readers.masked,), "left": (readers.left,), "right": (readers.right,)}
    parts = {reader: models for reader, models in parts.items() if models[0]}
    if {"left", "right"} <= parts.keys() and _share_pieces(readers):
        parts["elmo"] = (readers.left, readers.right)
    looks = {" × ".join(models): reader for reader, models in parts.items()}
    pairs = compare_pairs.sample(compare_pairs.read_pairs(), each)
    st.session_state[_JOB] = Job({name: parts[reader] for name, reader in looks.items()}, looks, pairs,
                                 {name: [] for name in looks})


def _share_pieces(readers: Readers) -> bool:
    """Whether both one-way readers have the same vocabulary."""
    return same_pieces(*(VisitorEngine().loaded(name).tokenizer for name in (readers.left, readers.right)))


def _stop() -> None:
    if _JOB in st.session_state:
        st.session_state[_JOB].stopped = True


def _is_running() -> bool:
    return _JOB in st.session_state and st.session_state[_JOB].running


def go_on() -> None:
    """Judge the pairs that are left; any action of the visitor interrupts and the next run goes on."""
    job: Job | None = st.session_state.get(_JOB)
    if job is None or not job.running:
        return
    try:
        _judge_the_rest(job)
    except Superseded:  # the tab's newer run goes on
        st.stop()
    except (LoadError, MissingPart, ValueError) as problem:
        job.stopped = True
        notices.problem(str(problem))
        _draw()
        return
    st.rerun()


def _judge_the_rest(job: Job) -> None:
    for turn, (_, verdicts) in enumerate(compare_pairs.judge(_Judge(), job.models, job.pairs[job.done:])):
        for model, right in verdicts.items():
            job.right[model] += right
        if turn % REDRAW == REDRAW - 1 or not job.running:
            _draw()


class _Judge(VisitorEngine):
    """Raises what goes wrong: the page is drawn when the experiment goes on, and can't be ended a second time."""

    def run_many(self, requests: Sequence[TraceRequest], keep: bool = True) -> list[Trace]:
        return state.raw_traces(requests, keep)


def _draw() -> None:
    """Progress and chart of what has been judged so far."""
    job: Job | None = st.session_state.get(_JOB)
    progress, picture = st.session_state["_compare_slots"]
    if job is None:
        with progress.container():
            say("Nothing has been run yet. BERT takes a run for every piece of every sentence, so many pairs take "
                "a while; you can stop at any time.", "cmp-small")
        return
    how = "running" if job.running else "stopped" if job.stopped else "done"
    progress.progress(job.done / len(job.pairs), f"{job.done} of {len(job.pairs)} pairs, {how}")
    if job.done:
        with picture.container():
            _chart(job)


def _chart(job: Job) -> None:
    parts = {model: {"all together": compare_pairs.overall(tallies), **tallies}
             for model, tallies in job.tallies().items()}
    totals = [(model, tallies["all together"]) for model, tallies in parts.items()]
    say("Judged right: " + ", ".join(f"{model} {total.right} of {total.count}" for model, total in totals) + ".")
    rows = []
    for model, tallies in parts.items():
        for kind, tally in tallies.items():
            low, high = tally.interval
            rows.append((kind, model, f"{tally.right} of {tally.count}", f"{100 * tally.accuracy:.0f} %",
                         f"{100 * low:.0f} to {100 * high:.0f} %"))
    components.chart(figures.pairs_figure(parts, job.looks), f"pairs_{job.done}", Numbers(
        "Minimal pairs judged right", ("phenomenon", "model", "right", "share", "95 % interval"), rows))
