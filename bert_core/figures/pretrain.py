"""Curves of a live pre-training: accuracy over its reference levels, losses, rate and gradient."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from bert_core.figures import theme

LEVEL_COLOUR = theme.NEUTRAL
#: Steps that a running average goes back, the newest among them.
AVERAGED = 20
#: Points of a curve that has a value for every step: about as many as a chart has pixels. Whoever watches a run is sent
#: its curves at every look. Each step of the longest run is in the running average of one that is drawn.
MOST_POINTS = 400
#: Characters of a run's name in a line of the legend, what a phone's chart holds; and pixels of a further line.
LONGEST_LINE, LINE_HEIGHT = 38, 20


class RunCurves(NamedTuple):
    """What a run has left so far.

    Attributes:
        name: what the run is.
        curves: arrays by name, as `PretrainRun.report` writes them.
        causal: whether its tokens saw only what stands before them.
        before: whether it is an earlier run, laid under the present one.
    """

    name: str
    curves: Mapping[str, np.ndarray]
    causal: bool = False
    before: bool = False

    def called(self, part: str = "") -> str:
        """Its name in a legend, what tells its lines apart first: a telephone cuts the end off.

        Args:
            part: what of the run the line is, where it has several.
        """
        first = ", ".join(word for word in (part, "before" if self.before else "") if word)
        return f"{first}: {self.name}" if first else self.name

    @property
    def line(self) -> dict[str, str]:
        """The colour says which way it read, the dash that it is an earlier run."""
        return {"color": theme.ONE_WAY if self.causal else theme.BOTH_WAYS, "dash": "dot" if self.before else "solid"}


class Level(NamedTuple):
    """A horizontal line: a value that needs no model, and what it is."""

    name: str
    value: float


def smooth(values: np.ndarray) -> np.ndarray:
    """(S,) mean of the last AVERAGED steps, at first of as many as there are; gaps (no pair in the step) stay out."""
    finite = np.isfinite(values)
    total, count = _of_window(np.where(finite, values, 0.0)), _of_window(finite)
    return np.divide(total, count, out=np.full(len(values), np.nan), where=count > 0).astype(np.float32)


def _of_window(values: np.ndarray) -> np.ndarray:
    """(S,) sum of the last AVERAGED values at each."""
    return np.convolve(values.astype(np.float64), np.ones(AVERAGED))[: len(values)] if len(values) else np.zeros(0)


def drawn_steps(done: int, steps: int) -> np.ndarray:
    """(P,) the steps, from 1, that a curve shows: every n-th, so that MOST_POINTS do for all, and the newest."""
    every = -(-steps // MOST_POINTS) or 1
    return np.union1d(np.arange(1, done + 1, every), [done] if done else []).astype(np.int32)


def accuracy_figure(runs: Sequence[RunCurves], levels: Sequence[Level], steps: int) -> go.Figure:
    """Share of hidden words guessed right on held-out lines, against optimiser steps."""
    figure = go.Figure()
    for run in runs:
        curves = run.curves
        figure.add_scatter(x=curves["held_step"], y=curves["held_accuracy"], name=run.called(), mode="lines+markers",
                           line={**run.line, "width": 3}, marker={"size": 6},
                           hovertemplate="step %{x}: %{y:.1%}")
    _add_levels(figure, levels, "top")
    theme.style(figure, x="optimiser steps", y="hidden words guessed right", height=380)
    return theme.put(figure, yaxis={"range": [0, 1], "tickformat": ".0%"}, xaxis={"range": [0, steps]},
                     showlegend=True)  # also one run alone is named


def loss_figure(runs: Sequence[RunCurves], levels: Sequence[Level], steps: int) -> go.Figure:
    """Masked-LM loss in nats: a running average over the steps, each alone at the pointer, and on held-out lines."""
    figure = go.Figure()
    for run in runs:
        loss = run.curves["loss"]
        at = drawn_steps(len(loss), steps)
        figure.add_scatter(x=at, y=smooth(loss)[at - 1], customdata=loss[at - 1],
                           name=run.called("training"), line={**run.line, "width": 1.2}, opacity=0.55,
                           hovertemplate="step %{x}: %{y:.2f} nats, this step alone %{customdata:.2f}")
        figure.add_scatter(x=run.curves["held_step"], y=run.curves["held_loss"], name=run.called("held out"),
                           line={**run.line, "width": 3}, hovertemplate="step %{x}: %{y:.2f} nats")
    _add_levels(figure, levels, "bottom")
    theme.style(figure, x="optimiser steps; training: running average", y="masked-LM loss (nats)", height=300)
    return theme.put(figure, yaxis={"rangemode": "tozero"}, xaxis={"range": [0, steps]})


def with_whole_names(figure: go.Figure) -> go.Figure:
    """The figure with each name in as many lines of the legend as a phone needs for it, and room for all below it."""
    names = [textwrap.wrap(trace.name, LONGEST_LINE) for trace in figure.data]
    for trace, lines in zip(figure.data, names):
        trace.name = "<br>".join(lines)
    figure.layout.height += LINE_HEIGHT * (sum(map(len, names)) - 1)
    return figure


def small_figure(runs: Sequence[RunCurves], curve: str, title: str, steps: int, log: bool = False) -> go.Figure:
    """One value of every step, averaged where it jumps: the learning rate doesn't."""
    figure, jumps = go.Figure(), curve != "lr"
    for run in runs:
        values = run.curves[curve]
        at = drawn_steps(len(values), steps)
        figure.add_scatter(x=at, y=(smooth(values) if jumps else values)[at - 1], customdata=values[at - 1],
                           name=run.called(), line={**run.line, "width": 2},
                           hovertemplate="step %{x}: %{y:.3g}" + ", this step alone %{customdata:.3g}" * jumps)
    theme.style(figure, x="optimiser steps" + "; running average" * jumps, y=title, height=240)
    return theme.put(figure, showlegend=False,
                     yaxis={"type": "log" if log else "linear", "rangemode": "normal" if log else "tozero"},
                     xaxis={"range": [0, steps]})


def _add_levels(figure: go.Figure, levels: Sequence[Level], anchor: str) -> None:
    for level in levels:
        theme.mark(figure, "y", level.value, line={"color": LEVEL_COLOUR, "dash": "dash", "width": 1.5},
                   text={"text": level.name, "font": {"size": 15}, "yanchor": anchor})
