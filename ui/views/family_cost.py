"""What an encoder costs: formulas, and a measurement on this machine when asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import streamlit as st

from bert_core.config import BertConfig
from bert_core.counting import counted
from bert_core.figures import cost as figures
from bert_core.load import Loaded
from bert_core.measures.cost import (
    REPEATS,
    Measured,
    activation_memory,
    crossover,
    forward_work,
    head_work,
    kept_embeddings,
    measure_encoder,
)
from bert_core.model import Model
from bert_core.request import TraceRequest
from bert_core.sizes import is_counted
from ui import components, controls, notices, shell, state
from ui.state import Here
from ui.tables import table
from ui.turns import TURNS
from ui.views.family_html import draw, small, words_of

#: Lengths measured, in tokens; those past the position table use its rows again.
LENGTHS = (16, 32, 64, 128, 256, 384, 512, 768, 1024)
BATCHES = (1, 2, 4, 8, 16)
#: Seconds for all measurements of one model.
BUDGET = 12.0
#: Models whose measurements this process keeps.
MOST_KEPT = 8
#: Where a session keeps the model whose measurement was asked for, until there is one.
_ASKED = "_measure_asked"


def cost(here: Here) -> None:
    """Operations, memory and measured time against length."""
    loaded = state.loaded(here.model)
    config = loaded.config
    which = controls.choice("Cost", ["operations", "memory", "time, measured here"], "cost")
    for name in _other_than_formulas(loaded, which):
        notices.note(_words(name, model=shell.short_name(here.model)))
    if which == "operations":
        components.chart(figures.work_figure(config), "work", "Operations of one pass by the length of a sentence")
        draw(small(_words("work", crossing=_crossing(config)) + _head(loaded)))
        _numbers(here)
    elif which == "memory":
        components.chart(figures.memory_figure(config), "memory", "Memory for activations by the length of a sentence")
        draw(small(_words("memory", tables=kept_embeddings(config))))
        _numbers(here)
    else:
        _time(here, loaded)


def _other_than_formulas(loaded: Loaded, which: str) -> list[str]:
    """What the formulas leave out of this model, or count beyond it, as names of texts of the prose's [cost]."""
    if which not in ("operations", "memory"):
        return []
    not_kept = which == "memory" and not isinstance(loaded.model, Model)
    return ["other_block"] * (not is_counted(loaded.config)) + ["not_kept"] * not_kept


def _words(name: str, **values: object) -> str:
    """A text of the prose's [cost] with its numbers."""
    return words_of("family")["cost"][name].format(**values)


def _crossing(config: BertConfig) -> str:
    """Where attention overtakes the feed-forward by formula, as the end of a sentence."""
    at = crossover(config)
    return _words("both_overtake" if at.attention else "one_overtakes", **at._asdict())


def _head(loaded: Loaded) -> str:
    """What a guess costs besides the layers, as a further sentence; '' for a model that guesses no words."""
    if not loaded.model.heads & {"mlm", "lm"}:
        return ""
    return " " + _words("head", each=head_work(loaded.config, 1) / 1e6)


def _numbers(here: Here) -> None:
    """The same as a table."""
    config = state.loaded(here.model).config
    rows = []
    for n in (16, 64, 128, 256, 512, 1024, 2048, 4096):
        work, memory = forward_work(config, n), activation_memory(config, n)
        rows.append((f"{n:,}", f"{work.total / 1e9:,.2f}", f"{100 * work.scores / work.total:.1f} %",
                     f"{memory.total / 2**20:,.1f}", f"{100 * memory.attention / memory.total:.1f} %"))
    with st.expander("The numbers"):
        draw(table("Cost of one sentence", ["tokens", "GFLOP of the layers", "of it n²", "activations, MiB",
                                            "of it n²"], rows, range(5)))


def _ask(model: str) -> None:
    """Have this visitor's next run measure it, and those after it where a newer one ends that early."""
    st.session_state[_ASKED] = model


def _time(here: Here, loaded: Loaded) -> None:
    if not isinstance(loaded.model, Model):
        notices.note(f"{shell.short_name(here.model)} runs through transformers and can't be measured here; "
                     "only operations and memory by formula are shown.")
        return
    if here.model not in _kept().by_model and st.session_state.get(_ASKED) != here.model:
        st.button("Measure now", on_click=_ask, args=(here.model,),
                  help=f"About {BUDGET:.0f} seconds on this machine; kept for everyone after that")
        notices.note("Nothing measured yet for this model on this machine; “Measure now” takes about "
                     f"{BUDGET:.0f} seconds.")
        return
    measured = state.or_stop(lambda: _measure(TraceRequest("", model=here.model)))
    st.session_state.pop(_ASKED, None)
    fit = measured.fit
    cross = f"{fit.crossover:,.0f} tokens" if fit.crossover < 1e6 else "no length that matters: no n² was seen"
    components.chart(figures.time_figure(measured.lengths, fit), "time", "Measured time by the length of a sentence")
    draw(small(_words("measured", where=measured.where, runs=_runs(measured), linear=1000 * fit.a, square=1e6 * fit.b,
                      error=100 * fit.error, cross=cross, positions=loaded.config.max_tokens)),
         small(_words("formula", crossing=_crossing(loaded.config))))
    components.chart(figures.batch_figure(measured.batches), "batch", "Measured time by the sentences in one batch")
    with st.expander("The numbers"):
        rows = [(f"{n:,}", f"{ms:.2f}", str(runs), f"{float(fit.at(n)):.2f}") for n, ms, runs in measured.lengths]
        batches = [(str(n), f"{ms:.2f}", str(runs)) for n, ms, runs in measured.batches]
        draw(table("Time against length", ["tokens", "measured, ms", "runs", "fitted, ms"], rows, range(4)))
        draw(table("Time of a batch", ["sentences", "all of them, ms", "runs"], batches, range(3)))


def _runs(measured: Measured) -> str:
    """How many runs the times stand on, and which sizes the seconds left out."""
    every = sorted(one.runs for one in (*measured.lengths, *measured.batches))
    spread = f"{every[0]} to " if every[0] < every[-1] else ""
    said = f"the fastest of {spread}{counted(every[-1], 'run')} each"
    if every[0] < REPEATS:
        said += f", as {BUDGET:.0f} seconds allow"
    left = [f"{kind} {', '.join(f'{size:,}' for size in missing)}" for kind, sizes, found in (
        ("length", LENGTHS, measured.lengths), ("batch", BATCHES, measured.batches))
        if (missing := sorted(set(sizes) - {one.size for one in found}))]
    return f"{said}; there was no time for {' and '.join(left)}" if left else said


class _Kept(NamedTuple):
    """Measurements of this process by model, the oldest first, and the lock under which one is made."""

    by_model: dict[str, Measured]
    lock: threading.Lock


@st.cache_resource(show_spinner=False)
def _kept() -> _Kept:
    return _Kept({}, threading.Lock())


def _measure(request: TraceRequest) -> Measured:
    """The kept measurement of its model, or a new one that pushes out the oldest; others draw meanwhile."""
    name = request.model or ""
    by_model = _kept().by_model
    if (found := by_model.get(name)) is not None:  # another thread may push it out meanwhile
        return found
    with TURNS.away(), _alone(), st.spinner("Measuring …"):
        if name not in by_model:
            by_model[name] = state.call(measure_encoder, request, LENGTHS, BATCHES, BUDGET)
            for oldest in list(by_model)[:-MOST_KEPT]:
                del by_model[oldest]
        return by_model[name]


@contextmanager
def _alone() -> Iterator[None]:
    """One measurement at a time: two at once would share the processor, and both times would be wrong."""
    lock = _kept().lock
    held = lock.acquire(blocking=False)
    try:
        if not held:
            wait = f"Another visitor is measuring; yours begins after that, in {BUDGET:.0f} seconds at most …"
            with st.spinner(wait):
                held = lock.acquire()  # the spinner's end raises where this visitor has left meanwhile
        yield
    finally:
        if held:
            lock.release()
