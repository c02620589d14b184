"""Charts of a live fine-tuning: accuracy beside both baselines, confusion, calibration, [CLS] space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from bert_core.figures import theme
from bert_core.figures.theme import escape
from bert_core.measures.classification import Calibration

#: One colour for each way of learning; what learns in every layer is the encoder as it is everywhere.
WAY_COLOURS = {"full": theme.BOTH_WAYS, "last": theme.KINDS[1], "frozen": theme.KINDS[2], "scratch": theme.KINDS[0]}
#: Share of the axis that a label takes.
LABEL_HEIGHT = 0.06
#: Epochs that the axis names, as far as it goes.
EPOCH_TICKS = (0, 1, 2, 3, 4, 6, 10, 20, 40, 60)
#: Tokens along an axis up to which each is named, as in the curves of the Compare page.
ALL_NAMED = 26
BASELINES = {"words": "bag of words", "lstm": "LSTM"}


class WayCurve(NamedTuple):
    """One run's accuracy on the test set.

    Attributes:
        epochs: (E,) passes over the training set.
        accuracy: (E,) 0 to 1.
    """

    way: str
    name: str
    epochs: np.ndarray
    accuracy: np.ndarray


def named_levels(baselines: Mapping[str, float], unread: tuple[str, float]) -> list[tuple[str, float]]:
    """(label, value) of both baselines and of what reads nothing, the highest first; those that would overlap in one.
    """
    levels = [(BASELINES[key], value) for key, value in baselines.items()] + [unread]
    labelled: list[tuple[str, float]] = []
    for name, value in sorted(levels, key=lambda level: -level[1]):
        text = f"{name} {100 * value:.0f} %"
        if labelled and labelled[-1][1] - value < LABEL_HEIGHT:
            text = f"{labelled[-1][0]}, {text}"
            labelled[-1] = ("", labelled[-1][1])
        labelled.append((text, value))
    return labelled


def along(epochs: np.ndarray | float) -> np.ndarray:
    """Where epochs stand on the axis: each doubling takes the same room, and epoch 0 has a place."""
    return np.log2(1.0 + np.asarray(epochs))


def accuracy_figure(
    runs: Sequence[WayCurve], baselines: Mapping[str, float], unread: tuple[str, float], epochs: int = 1,
) -> go.Figure:
    """Test accuracy while each way learns, over the two baselines and what reads nothing.

    The head alone takes ten times the passes that everything takes; so that all
    can be read, the more passes the closer they stand.

    Args:
        unread: name and accuracy of the same answer to every sentence.
        epochs: passes of the longest run, as planned.
    """
    figure = go.Figure()
    for run in runs:
        figure.add_scatter(x=along(run.epochs), y=run.accuracy, name=run.name, mode="lines+markers",
                           line={"color": WAY_COLOURS[run.way], "width": 3}, marker={"size": 7},
                           customdata=run.epochs, hovertemplate="after epoch %{customdata}: %{y:.1%}")
    for name, value in named_levels(baselines, unread):
        theme.mark(figure, "y", value, line={"color": theme.NEUTRAL, "dash": "dash", "width": 1.5},
                   text={"text": name, "font": {"size": 15}, "yanchor": "top"})
    theme.style(figure, x="epochs, later ones closer together", y="right on the test set", height=400)
    end, ticks = float(along(epochs)), [n for n in EPOCH_TICKS if n <= epochs]
    return theme.put(figure, yaxis={"range": [0, 1.04], "tickformat": ".0%"},
                     xaxis={"range": [-0.02 * end, 1.02 * end], "tickvals": along(ticks),
                            "ticktext": list(map(str, ticks))})


def loss_figure(loss: np.ndarray) -> go.Figure:
    """Training loss of each step in nats."""
    figure = go.Figure(go.Scatter(x=np.arange(1, len(loss) + 1), y=loss, line={"color": theme.BOTH_WAYS, "width": 2},
                                  hovertemplate="step %{x}: %{y:.3f} nats"))
    theme.style(figure, x="optimiser steps", y="training loss (nats)", height=260)
    return theme.put(figure, yaxis={"rangemode": "tozero"})


def confusion_figure(table: np.ndarray, labels: Sequence[str], ink: str = theme.INK["light"]) -> go.Figure:
    """Counts: rows are the true class, columns the class given; shaded by share of the row."""
    names = [escape(label) for label in labels]
    share = table / np.maximum(1, table.sum(axis=1, keepdims=True))
    figure = go.Figure(go.Heatmap(
        z=share, x=names, y=names, zmin=0, zmax=1, colorscale=theme.probability_scale(ink),
        showscale=False, customdata=table, hovertemplate="true %{y}, given %{x}: %{customdata}<extra></extra>",
    ))
    theme.label_cells(figure, (names, names), [[str(n) for n in row] for row in table], ink, 17)
    theme.style(figure, x="class given", y="true class", height=340)
    # a class named 10 is a name, no place on an axis of numbers
    return theme.put(figure, xaxis={"type": "category"}, yaxis={"type": "category", "autorange": "reversed"})


def calibration_figure(found: Calibration) -> go.Figure:
    """Confidence against accuracy; the diagonal is a classifier that is as sure as it is right."""
    figure = go.Figure()
    figure.add_scatter(x=[0, 1], y=[0, 1], mode="lines", line={"color": theme.NEUTRAL, "dash": "dash"},
                       name="as sure as right", hoverinfo="skip")
    figure.add_scatter(x=found.confidence, y=found.accuracy, mode="markers+lines", name="test set",
                       customdata=found.count, marker={"color": theme.BOTH_WAYS, "size": 8 + 3 * np.sqrt(found.count)},
                       line={"color": theme.BOTH_WAYS, "width": 1.5}, cliponaxis=False,
                       hovertemplate="%{x:.0%} sure, %{y:.0%} right, %{customdata} examples<extra></extra>")
    theme.style(figure, x="how sure it is", y="how often it is right", height=340)
    return theme.put(figure, xaxis={"range": [0, 1.03], "tickformat": ".0%"},
                     yaxis={"range": [0, 1.12], "tickformat": ".0%"})


def main_axes(vectors: np.ndarray) -> np.ndarray:
    """(n, D) -> (n, 2), centred, on their own two main axes."""
    centred = vectors.astype(np.float32) - vectors.astype(np.float32).mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    return centred @ axes[:2].T


def space_figure(vectors: np.ndarray, classes: np.ndarray, labels: Sequence[str], texts: Sequence[str]) -> go.Figure:
    """Last [CLS] vectors of the test set on their two main axes, coloured by true class."""
    places = main_axes(vectors)
    figure = go.Figure()
    for n, label in enumerate(map(escape, labels)):
        chosen = np.flatnonzero(classes == n)
        figure.add_scatter(x=places[chosen, 0], y=places[chosen, 1], mode="markers", name=label,
                           text=[escape(texts[i]) for i in chosen], hovertemplate="%{text}<extra>" + label + "</extra>",
                           marker={"color": theme.KINDS[n % len(theme.KINDS)], "size": 8, "opacity": 0.8})
    theme.style(figure, x="main axis 1", y="main axis 2", height=420)
    return theme.put(figure, yaxis={"scaleanchor": "x", "scaleratio": 1})  # else one axis's distances look longer


def attention_figure(probs: np.ndarray, tokens: Sequence[str]) -> go.Figure:
    """What [CLS] looks at in each layer, mean over heads; probs (L, H, Tq, Tk).

    Of more than ALL_NAMED tokens every second, third, ... has its name, as many as fit.
    """
    share = probs[:, :, 0, :].mean(axis=1)  # (L, Tk)
    shown = [escape(token) for token in tokens]
    names = [f"{n} {token}" for n, token in enumerate(shown)]
    figure = go.Figure(go.Heatmap(
        z=share, x=names, y=[f"layer {n + 1}" for n in range(len(share))], zmin=0, zmax=1, colorscale=theme.PROBABILITY,
        showscale=False, hovertemplate="%{y}, [CLS] to %{x}: %{z:.3f}<extra></extra>",
    ))
    theme.style(figure, x="token looked at", y="", height=300)
    # layer 1 on top, as on the [CLS] page
    named = ({"tickvals": names, "ticktext": shown} if len(names) <= ALL_NAMED
             else {"tickmode": "auto", "labelalias": dict(zip(names, shown))})
    return theme.put(figure, yaxis={"autorange": "reversed", "showgrid": False},
                     xaxis={"type": "category", "tickangle": -45, **named})
