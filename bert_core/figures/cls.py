"""Figures of the [CLS] page: probes by layer, what [CLS] looks at, where a change arrives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from bert_core.figures import theme
from bert_core.figures.columns import columns, joined
from bert_core.figures.theme import escape
from bert_core.measures.cls import Arrival
from bert_core.measures.probe import Probe
from bert_core.trace import Array


def layer_names(count: int) -> list[str]:
    """'input', '1', ... for L+1 rows of hidden states; the input is the embeddings' output."""
    return ["input", *(str(n) for n in range(1, count))]


def numbered(tokens: Sequence[str], first: int = 0) -> list[str]:
    """Tokens with their position, so that repeated ones stay apart; plotly shows them literally.

    Args:
        first: position of the first; 1 where [CLS], at 0, is not among them.
    """
    return [f"{n} {escape(token)}" for n, token in enumerate(tokens, first)]


def probe_figure(probe: Probe, reading: Array) -> go.Figure:
    """What a linear probe reads off [CLS] in each layer, beside how far it can be trusted.

    Args:
        reading: (L+1,) probability of the probe's second label for one sentence.
    """
    x = layer_names(len(reading))
    figure = go.Figure()
    shares = (f"share right of {probe.sentences} shipped<br>sentences it was not fitted<br>"
              "on (bars: one sd of the folds)")
    spread = {"array": np.minimum(probe.spread, 1 - probe.accuracy), "symmetric": False,  # no share is above 1
              "arrayminus": np.minimum(probe.spread, probe.accuracy), "color": theme.NEUTRAL, "thickness": 1}
    figure.add_scatter(
        x=x, y=probe.accuracy, name=shares, error_y=spread, mode="lines+markers",
        line={"color": theme.NEUTRAL, "dash": "dot"}, hovertemplate="layer %{x}: %{y:.0%} right<extra></extra>")
    figure.add_scatter(
        x=x, y=reading, name=f"this sentence: probability of “{probe.labels[1]}”", mode="lines+markers",
        line={"color": theme.BOTH_WAYS, "width": 4}, marker={"size": 10},
        hovertemplate="layer %{x}: %{y:.1%} " + probe.labels[1] + "<extra></extra>")
    theme.mark(figure, "y", 0.5, line={"color": theme.NEUTRAL, "width": 1}, opacity=0.6)
    theme.style(figure, "layer", "probability; share right", height=400)
    return theme.put(figure, xaxis={"type": "category"}, yaxis={"range": [-0.02, 1.02], "tickformat": ".0%"})


def attention_figure(
    weights: Array, tokens: Sequence[str], rows: Sequence[str], y: str, name: str = "[CLS]"
) -> go.Figure:
    """Weights from [CLS] as a map, rows (layers or heads) against the tokens it looks at.

    Where a narrow page has too few pixels for them, neighbouring tokens share a column that shows the largest weight.

    Args:
        weights: (rows, T), each row sums to 1.
        rows: names of the rows.
        y: what the rows are.
        name: what the model calls [CLS].
    """
    shown = columns(weights, tokens)
    largest = "largest " if joined(len(tokens)) > 1 else ""
    figure = go.Figure(go.Heatmap(
        z=shown.values, x=shown.names, y=list(rows), zmin=0, zmax=1, colorscale=theme.PROBABILITY, xgap=shown.gap,
        ygap=1, customdata=[shown.said] * len(rows), colorbar={"title": "weight", "thickness": 12},
        hovertemplate=f"{y} %{{y}} → %{{customdata}}: {largest}%{{z:.3f}}<extra></extra>"))
    theme.style(figure, f"token that {escape(name)} looks at", y, height=150 + 30 * len(rows))
    return theme.put(figure, yaxis={"type": "category", "autorange": "reversed", "showgrid": False},
                     xaxis={"type": "category", "tickangle": -45 if len(tokens) > 8 else 0, "showgrid": False})


def arrival_figure(found: Arrival, name: str = "[CLS]") -> go.Figure:
    """How far apart the two [CLS] vectors are by layer, beside two unrelated sentences: where a changed word arrives.

    All [CLS] of a layer share a large part, in the first layers nearly all of it; a bare cosine would show that.

    Args:
        name: what the model calls [CLS].
    """
    x, figure = layer_names(len(found.relative)), go.Figure()
    figure.add_scatter(
        x=x, y=found.relative, name="old and new", mode="lines+markers", fill="tozeroy",
        line={"color": theme.BOTH_WAYS, "width": 3}, marker={"size": 9}, cliponaxis=False,
        customdata=np.stack([found.apart, found.usual], axis=-1),
        hovertemplate="layer %{x}: %{y:.2f} times as far as two unrelated sentences<br>"
                      "1 − cosine: %{customdata[0]:.2g}, of two unrelated ones %{customdata[1]:.2g}<extra></extra>")
    figure.add_scatter(x=x, y=np.ones(len(x)), name="two unrelated sentences", mode="lines", hoverinfo="skip",
                       line={"color": theme.NEUTRAL, "width": 3, "dash": "dash"})
    theme.style(figure, "layer", f"distance of the two {escape(name)}", height=340)
    return theme.put(figure, xaxis={"type": "category"}, yaxis={"rangemode": "tozero"})
