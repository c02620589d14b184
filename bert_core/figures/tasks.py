"""What the Tasks page draws of labels and of pairs of sentences, and what its numbers say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import plotly.graph_objects as go

from bert_core.figures import theme
from bert_core.figures.cls import numbered
from bert_core.figures.theme import escape
from bert_core.tasks.sentences import told_apart
from bert_core.trace import Array


class PairCosines(NamedTuple):
    """What one model makes of a pair of sentences, beside two shipped pairs: cosines of the mean vectors.

    Attributes:
        model: its name.
        own: of the visitor's pair.
        alike, unlike: of a pair that says the same in other words, and of one that doesn't.
        static: of the visitor's pair, by static vectors.
    """

    model: str
    own: float
    alike: float
    unlike: float
    static: float

    @property
    def is_in_order(self) -> bool:
        """Whether the pair that is alike comes above the other."""
        return self.alike > self.unlike

    @property
    def place(self) -> str:
        """Where the visitor's pair stands among the two."""
        low, high = sorted((self.alike, self.unlike))
        return "above both" if self.own > high else "below both" if self.own < low else "between the two"


def order_line(tuned: PairCosines, other: PairCosines | None) -> str:
    """Which of the models has the two shipped pairs in the right order, and what that says."""
    if other is None:
        word = "right" if tuned.is_in_order else "wrong"
        return f"{_alike_and_not(tuned)}: the {word} order."
    both = f"{_alike_and_not(tuned)}; {_alike_and_not(other, short=True)}."
    if tuned.is_in_order != other.is_in_order:
        right = tuned if tuned.is_in_order else other
        why = ": that is what the tuning did" if right is tuned else ", which the tuning did not bring"
        return f"{both} Only {right.model} has them in the right order{why}."
    if not tuned.is_in_order:
        return f"{both} Neither has them in the right order."
    wider = max((tuned, other), key=lambda one: one.alike - one.unlike)
    return f"{both} Both have them in the right order; {wider.model} sets them further apart."


def _alike_and_not(one: PairCosines, short: bool = False) -> str:
    pairs = ("the one", "the other") if short else ("the pair that is alike", "the pair that is not")
    return f"{one.model} gives {pairs[0]} {_cosine(one.alike)} and {pairs[1]} {_cosine(one.unlike)}"


def own_line(known: Sequence[PairCosines]) -> str:
    """Where the visitor's pair stands among the two shipped ones, by each model."""
    said = (f"{one.model} gives it {_cosine(one.own)}, {one.place}" for one in known)
    return f"Your pair beside the two shipped ones: {'; '.join(said)}."


def _cosine(value: float) -> str:
    return f"{'−' if round(value, 2) < 0 else ''}{abs(value):.2f}"


def own_range(cosines: Array) -> tuple[float, float] | None:
    """The least and the greatest cosine of a map that has none below 0: what its colours run from and to; else None."""
    low, high = float(cosines.min()), float(cosines.max())
    return (low, high) if 0 <= low < high else None


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
    return theme.put(figure, yaxis={"type": "category", "autorange": "reversed", "showgrid": False},
                     xaxis={"type": "category", "tickangle": -45 if len(tokens) > 4 else 0, "showgrid": False})


def token_pairs_figure(cosines: Array, first: Sequence[str], second: Sequence[str]) -> go.Figure:
    """Cosine of each token of one sentence to each of another.

    Args:
        cosines: (tokens of the first, tokens of the second), -1 to 1; the colours follow `own_range`.
        first, second: names of the tokens, all different within a sentence.
    """
    rows, columns = [escape(name) for name in first], [escape(name) for name in second]
    found = own_range(cosines)
    low, high = found or (-1, 1)
    figure = go.Figure(go.Heatmap(
        z=cosines, x=columns, y=rows, zmin=low, zmax=high, colorscale=theme.RISING if found else theme.SIGNED,
        xgap=1, ygap=1,
        colorbar={"title": "cosine", "thickness": 12}, hovertemplate="%{y} and %{x}: %{z:.3f}<extra></extra>"))
    theme.style(figure, "second sentence", "sentence", height=170 + 26 * len(first))
    return theme.put(figure, yaxis={"type": "category", "autorange": "reversed", "showgrid": False},
                     xaxis={"type": "category", "tickangle": -45 if len(second) > 4 else 0, "showgrid": False})
