"""Compare page: curves over revealed context, surprise over tokens, accuracies, moved keys."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from bert_core.figures import theme
from bert_core.figures.compare import COLOURS, DASHES, MARKERS, NAMES
from bert_core.figures.theme import escape
from bert_core.measures.compare_pairs import Tally
from bert_core.measures.reveal import Curve, Step
from bert_core.measures.surprise import Surprise

Array = np.ndarray

#: Words on the axis up to which each has a tick.
MAX_TICKS = 26
#: Letters of the words that a step revealed.
LONGEST = 60

_SIDE_LOOKS = {
    "left": ("left side only", theme.ONE_WAY, "solid", "triangle-left"),
    "right": ("right side only", theme.ONE_WAY, "dash", "triangle-right"),
    "both": ("both sides", theme.BOTH_WAYS, "solid", "circle"),
}


def last_words(step: Step) -> str:
    """What a step revealed, short enough for a line."""
    return textwrap.shorten(step.revealed, LONGEST, placeholder=" …") or "nothing"


def reveal_figure(curves: Sequence[Curve]) -> go.Figure:
    """Probability of the true word against words revealed; rings where the answer flips."""
    figure = go.Figure()
    for curve in curves:
        name, colour, dash, marker = _SIDE_LOOKS[curve.side]
        figure.add_scatter(
            x=[step.words for step in curve.steps], y=[step.probability for step in curve.steps], name=name,
            mode="lines+markers", line={"color": colour, "dash": dash, "width": 3},
            marker={"symbol": marker, "size": 9, "color": colour},
            customdata=[[escape(last_words(step)), escape(step.answer)] for step in curve.steps],
            hovertemplate="%{x} in sight, last: %{customdata[0]}<br>p(true word) %{y:.3f}<br>"
                          f"best guess: %{{customdata[1]}}<extra>{name}</extra>",
        )
    flips = [(curve, n) for curve in curves for n in curve.flips]
    if flips:
        figure.add_scatter(
            x=[curve.steps[n].words for curve, n in flips], y=[curve.steps[n].probability for curve, n in flips],
            mode="markers+text", name="the answer flips", hoverinfo="skip",
            text=[f"→ {escape(curve.steps[n].answer)}" for curve, n in flips], textposition="top center",
            marker={"symbol": "circle-open", "size": 22, "color": theme.MASK, "line": {"width": 3}},
        )
    theme.style(figure, "words of context in sight, nearest first", "probability of the true word", 460)
    most = max(curve.steps[-1].words for curve in curves)
    return theme.put(figure, yaxis={"range": [-0.03, 1.08], "tickformat": ".0%"},
                     xaxis={"dtick": 1 if most <= MAX_TICKS else None, "rangemode": "tozero"})


def surprise_figure(found: Sequence[Surprise], chosen: Sequence[int] = ()) -> go.Figure:
    """Nats of surprise for each token, a line a reader; readers with other tokens are left out.

    Args:
        chosen: positions in the input of the word that is picked out by a stripe.
    """
    figure = go.Figure()
    tokens = found[0].tokens
    names = [f"{place} {escape(token)}" for place, token in zip(found[0].places, tokens, strict=True)]
    for one in found:
        if one.tokens != tokens:
            continue
        colour = COLOURS[one.reader]
        figure.add_scatter(
            x=names, y=one.nats, name=NAMES[one.reader], mode="lines+markers", connectgaps=False,
            line={"color": colour, "dash": DASHES[one.reader], "width": 2.5},
            marker={"symbol": MARKERS[one.reader], "size": 9, "color": colour},
            hovertemplate=f"%{{x}}<br>%{{y:.2f}} nats<extra>{NAMES[one.reader]}</extra>",
        )
    for n, place in enumerate(found[0].places):
        if place in chosen:
            theme.mark(figure, "x", n - 0.5, n + 0.5, fillcolor=theme.MASK, opacity=0.2, line={"width": 0},
                       layer="below")
    theme.style(figure, "token", "surprise, nats", 440)
    return theme.put(figure, showlegend=True, yaxis={"rangemode": "tozero"},
                     xaxis={"type": "category", "tickangle": -45})


def pairs_figure(parts: Mapping[str, Mapping[str, Tally]], looks: Mapping[str, str]) -> go.Figure:
    """Share of minimal pairs judged right, with Wilson's 95 % intervals.

    Args:
        parts: model -> phenomenon -> Tally.
        looks: model -> the reader whose colour it has.
    """
    figure = go.Figure()
    kinds = list(dict.fromkeys(kind for tallies in parts.values() for kind in tallies))
    for model, tallies in parts.items():
        reader = looks[model]
        some = [tallies[kind] for kind in kinds if kind in tallies]
        rates = np.array([tally.accuracy for tally in some])
        ends = np.array([tally.interval for tally in some]).reshape(-1, 2)
        figure.add_scatter(
            x=rates, y=[kind for kind in kinds if kind in tallies], mode="markers", name=escape(model),
            orientation="h",  # side by side in their row; without it plotly moves them along the rates
            marker={"symbol": MARKERS[reader], "size": 12, "color": COLOURS[reader]},
            error_x={"type": "data", "array": ends[:, 1] - rates, "arrayminus": rates - ends[:, 0],
                     "color": COLOURS[reader], "thickness": 1.5},
            customdata=[[tally.right, tally.count] for tally in some],
            hovertemplate="%{y}<br>%{x:.0%}: %{customdata[0]} of %{customdata[1]}" f"<extra>{escape(model)}</extra>",
        )
    theme.mark(figure, "x", 0.5, line={"color": theme.NEUTRAL, "dash": "dot", "width": 1.5})
    theme.style(figure, "judged right (dotted: guessing)", "", 160 + 34 * len(kinds))
    return theme.put(figure, xaxis={"range": [0, 1.04], "tickformat": ".0%"},
                     yaxis={"autorange": "reversed", "type": "category"}, scattermode="group", scattergap=0.5)


def prefix_figure(moved: Mapping[str, Array], looks: Mapping[str, str]) -> go.Figure:
    """How far the prefix's keys move in each layer when one more word follows.

    Args:
        moved: model -> (L,) largest absolute change.
        looks: model -> the reader whose colour it has.
    """
    figure = go.Figure()
    for model, change in moved.items():
        name = escape(model)
        figure.add_bar(
            x=[str(n + 1) for n in range(len(change))], y=change, name=name, marker_color=COLOURS[looks[model]],
            hovertemplate=f"layer %{{x}}<br>largest change %{{y:.2g}}<extra>{name}</extra>",
        )
    theme.style(figure, "layer", "largest change of a prefix key", 300)
    return theme.put(figure, xaxis={"type": "category"})
