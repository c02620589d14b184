"""Figure of the Tasks page: every label's probability for every token."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from bert_core.figures import theme
from bert_core.figures.cls import numbered
from bert_core.figures.theme import escape
from bert_core.tasks.sentences import told_apart
from bert_core.trace import Array


def label_figure(probabilities: Array, tokens: Sequence[str], labels: Sequence[str]) -> go.Figure:
    """Label x token map of a token classifier.

    Args:
        probabilities: (T, C), rows sum to 1; the specials are not among them.
    """
    names = [escape(name) for name in told_apart(labels)]
    figure = go.Figure(go.Heatmap(
        z=probabilities.T, x=numbered(tokens, 1), y=names, zmin=0, zmax=1, colorscale=theme.PROBABILITY,
        xgap=1, ygap=1, colorbar={"title": "p", "thickness": 12},
        hovertemplate="%{x}<br>%{y}: %{z:.3f}<extra></extra>"))
    theme.style(figure, "token", "label", height=140 + 30 * len(labels))
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False)
    return figure.update_xaxes(type="category", tickangle=-45 if len(tokens) > 4 else 0, showgrid=False)


def token_pairs_figure(cosines: Array, first: Sequence[str], second: Sequence[str]) -> go.Figure:
    """Cosine of each token of one sentence to each of another.

    Args:
        cosines: (tokens of the first, tokens of the second), -1 to 1.
        first, second: names of the tokens, all different within a sentence.
    """
    rows, columns = [escape(name) for name in first], [escape(name) for name in second]
    figure = go.Figure(go.Heatmap(
        z=cosines, x=columns, y=rows, zmin=-1, zmax=1, colorscale=theme.SIGNED, xgap=1, ygap=1,
        colorbar={"title": "cosine", "thickness": 12}, hovertemplate="%{y} and %{x}: %{z:.3f}<extra></extra>"))
    theme.style(figure, "second sentence", "sentence", height=170 + 26 * len(first))
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False)
    return figure.update_xaxes(type="category", tickangle=-45 if len(second) > 4 else 0, showgrid=False)
