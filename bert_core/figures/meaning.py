"""Figures of the Meaning page: cosines by layer, a map of occurrences, sentence matrices."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from bert_core.counting import counted
from bert_core.figures import theme
from bert_core.figures.cls import layer_names
from bert_core.figures.theme import escape
from bert_core.measures.meaning import ByLayer, Occurrence, Projection
from bert_core.measures.similarity import RandomPairs
from bert_core.trace import Array

#: Marks of senses, in the order of their names, as theme.KINDS are their colours.
SYMBOLS = ("circle", "square", "diamond", "triangle-up")
YOURS = "yours"
#: Colour and mark of the lines by layer that are pairs of no one sense and occurrence.
PAIR_LINES = {"same sense": (theme.SAME_SENSE, "circle"), "the word in two sentences": (theme.SAME_SENSE, "circle"),
              "the word in two places": (theme.SAME_SENSE, "circle"),
              "different senses": (theme.OTHER_SENSE, "circle-open")}
#: Occurrences in the visitor's sentences that have lines of their own.
MOST_OWN = 3

#: Most sentences whose matrix has room for numbers.
MOST_NUMBERED = 9


class Line(NamedTuple):
    """One line of the chart by layer.

    Attributes:
        values: (L+1,) cosines.
        count: how many pairs it is the mean of.
        own: which of the visitor's occurrences is compared, counted from 1; 0 for pairs of others.
        sense: what it is compared with.
    """

    name: str
    values: Array
    count: int
    own: int = 0
    sense: str = ""


def layer_lines(by_layer: ByLayer, senses: Sequence[str]) -> list[Line]:
    """The lines that the chart shows, as means over pairs.

    Args:
        senses: of each occurrence; YOURS for those in the visitor's own sentences. Each of these, up to MOST_OWN, is
            compared with each sense by itself, and with one another where there is nothing else.
    """
    left, right = by_layer.pairs.T
    mine = np.array([sense == YOURS for sense in senses])
    known = ~mine[left] & ~mine[right]
    named = sorted(set(senses) - {YOURS})
    if len(named) > 1:
        same = np.array([senses[a] == senses[b] for a, b in zip(left, right)])
        lines = [*_mean_line("same sense", by_layer.cosines, known & same),
                 *_mean_line("different senses", by_layer.cosines, known & ~same)]
    elif named:
        lines = _mean_line("the word in two sentences", by_layer.cosines, known)
    else:
        lines = _mean_line("the word in two places", by_layer.cosines, ~known)
    for own, one in enumerate(np.flatnonzero(mine)[:MOST_OWN], 1):
        name = own_name(own) if mine.sum() > 1 else "your sentence"
        for sense in named:
            of_sense = np.array([s == sense for s in senses])
            compared = ((left == one) & of_sense[right]) | ((right == one) & of_sense[left])
            lines += _mean_line(f"{name} and “{sense}”", by_layer.cosines, compared, own, sense)
    return lines


def own_name(own: int) -> str:
    """What one of several occurrences in the visitor's sentences is called; they are counted from 1."""
    return f"yours {own}"


def _mean_line(name: str, cosines: Array, chosen: Array, own: int = 0, sense: str = "") -> list[Line]:
    return [Line(name, cosines[:, chosen].mean(axis=1), int(chosen.sum()), own, sense)] if chosen.any() else []


def layer_figure(lines: Sequence[Line], to_static: Array, baseline: RandomPairs) -> go.Figure:
    """Cosine by layer: pairs of occurrences, the static vector, the random pair.

    Args:
        to_static: (L+1,) mean cosine of the occurrences to their static vector; NaN leaves the line out.
    """
    x = layer_names(len(to_static))
    figure = go.Figure()
    figure.add_scatter(
        x=x, y=baseline.mean, name=f"two random words<br>({baseline.pairs:,} pairs, bars: one sd)", mode="lines",
        line={"color": theme.NEUTRAL, "dash": "dash", "width": 3}, hovertemplate=_hover("two random words"),
        error_y={"array": baseline.spread, "color": theme.NEUTRAL, "thickness": 1, "width": 3})
    if np.isfinite(to_static).all():
        figure.add_scatter(
            x=x, y=to_static, name="with its own static vector", mode="lines",
            hovertemplate=_hover("its static vector"), line={"color": theme.TOKEN, "dash": "dot", "width": 2.5})
    senses = sorted({line.sense for line in lines if line.own})
    several = any(line.own > 1 for line in lines)
    for line in lines:
        look = _sense_look(senses.index(line.sense)) if line.own else PAIR_LINES[line.name]
        figure.add_scatter(x=x, y=line.values, **_look(line, look) | (_end_mark(line, look) if several else {}))
    theme.style(figure, "layer", "cosine", height=480)
    if several:  # room for the numbers behind the lines, and for the longer legend of a narrow page
        theme.put(figure, margin={"r": 40}, height=480 + 20 * sum(line.own > 0 for line in lines))
    drawn = (baseline.mean - baseline.spread, to_static, *(line.values for line in lines))
    lowest = min(float(np.nanmin(values, initial=1.0)) for values in drawn)
    return theme.put(figure, xaxis={"type": "category"}, yaxis={"range": [min(-0.02, lowest - 0.03), 1.03]})


def _sense_look(n: int) -> tuple[str, str]:
    """Colour and mark of the sense that is the n-th by name."""
    return theme.KINDS[n % len(theme.KINDS)], SYMBOLS[n % len(SYMBOLS)]


def _look(line: Line, look: tuple[str, str]) -> dict:
    """How a line is drawn: the visitor's thinner, dashed, with the mark of the sense beside it."""
    colour, symbol = look
    own = line.own > 0
    return {
        "name": line.name if own else f"{line.name} ({counted(line.count, 'pair')})", "mode": "lines+markers",
        "line": {"color": colour, "width": 2.5 if own else 4, "dash": "dashdot" if own else "solid"},
        "marker": {"size": 9, "symbol": symbol, "line": {"width": 2.5, "color": colour}},
        "hovertemplate": _hover(line.name),
    }


def _end_mark(line: Line, look: tuple[str, str]) -> dict:
    """The number at the end of a line that tells one of the visitor's occurrences from another, each in its column."""
    if not line.own:
        return {}
    number = "\u00a0" * (3 * line.own - 2) + str(line.own)
    return {"mode": "lines+markers+text", "text": [*[""] * (len(line.values) - 1), number],
            "textposition": "middle right", "textfont": {"size": 16, "color": look[0]}, "cliponaxis": False}


def _hover(name: str) -> str:
    return f"{name}<br>layer %{{x}}: %{{y:.3f}}<extra></extra>"


def map_figure(
    projection: Projection, found: Sequence[Occurrence], senses: Sequence[str], ink: str = theme.INK["light"]
) -> go.Figure:
    """Occurrences on the two main directions of exactly these vectors, each with its number, counted from 1.

    Args:
        ink: colour of the page's text.
    """
    figure = go.Figure()
    order = [*sorted(set(senses) - {YOURS}), *([YOURS] if YOURS in senses else [])]
    for n, sense in enumerate(order):
        rows = [i for i, s in enumerate(senses) if s == sense]
        mine = sense == YOURS
        colour, symbol = (theme.NEUTRAL, "star") if mine else _sense_look(n)
        figure.add_scatter(
            x=projection.points[rows, 0], y=projection.points[rows, 1], name="your sentence" if mine else sense,
            mode="markers+text", text=[f" {i + 1}" for i in rows], textposition="middle right",
            textfont={"size": 16, "color": ink},
            marker={"size": 22 if mine else 16, "symbol": symbol, "color": colour, "opacity": 0.9},
            customdata=[_wrapped(found[i]) for i in rows], hovertemplate="%{customdata}<extra></extra>")
    first, second = (f"{100 * share:.0f} % of the variance" for share in projection.explained)
    theme.style(figure, f"first component<br>({first})", f"second component<br>({second})", height=560)
    return theme.put(figure, yaxis={"scaleanchor": "x", "scaleratio": 1})  # else one direction's distances look longer


def excerpt(one: Occurrence) -> tuple[str, int, int]:
    """The sentence, of a long one what stands around the word, and the word's start and end in it."""
    if len(one.text) <= 240:
        return one.text, one.start, one.end
    first = max(0, one.start - 100)
    return f"… {one.text[first:one.end + 100]} …", one.start - first + 2, one.end - first + 2


def _wrapped(one: Occurrence) -> str:
    """The sentence for a hover label, wrapped, and escaped because plotly reads a little HTML."""
    text, _, _ = excerpt(one)
    return "<br>".join(escape(line) for line in textwrap.wrap(text, 48))


def short_number(value: float) -> str:
    """Two places without a zero before the point, as statistics writes correlations: .47, −.05, 1, −10.17.

    What is not 1, but for rounding of float32, does not become it: >.99, <−.99.
    """
    size = f"{abs(value):.2f}"
    sign = "−" if value < 0 < float(size) else ""
    if size == "1.00" and abs(value) < 1 - 1e-5:
        return f"{'<' if sign else '>'}{sign}.99"
    return sign + ("1" if size == "1.00" else size.removeprefix("0"))


def matrix_figure(cosines: Array, names: Sequence[str], title: str, ink: str = theme.INK["light"]) -> go.Figure:
    """Cosine of every sentence to every other.

    Args:
        cosines: (N, N).
        names: short names of the sentences, all different.
        ink: colour of the page's text.
    """
    figure = go.Figure(go.Heatmap(
        z=cosines, x=list(names), y=list(names), zmin=-1, zmax=1, colorscale=theme.signed_scale(ink), showscale=False,
        xgap=2, ygap=2, hovertemplate="%{y} and %{x}: %{z:.3f}<extra></extra>"))
    if len(names) <= MOST_NUMBERED:
        written = [[short_number(value) for value in row] for row in cosines]
        theme.label_cells(figure, (names, names), written, ink, 14)
    theme.style(figure, "", "", height=390)
    return theme.put(figure, title={"text": escape(title), "font": {"size": 16}}, margin={"t": 46},
                     xaxis={"type": "category", "side": "bottom"},
                     yaxis={"type": "category", "autorange": "reversed"})
