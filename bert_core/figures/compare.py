"""Compare page: what each reader may see, and where its heads look."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from bert_core.figures import theme
from bert_core.measures.compare import visible
from bert_core.trace import Trace

Array = np.ndarray

#: Colour of each reader: one meaning, one colour; one-way readers differ by dash.
COLOURS = {"both": theme.BOTH_WAYS, "left": theme.ONE_WAY, "hidden": theme.ONE_WAY, "right": theme.ONE_WAY,
           "elmo": theme.NEUTRAL}
DASHES = {"both": "solid", "left": "solid", "hidden": "dot", "right": "dash", "elmo": "longdashdot"}
MARKERS = {"both": "circle", "left": "triangle-left", "hidden": "x", "right": "triangle-right", "elmo": "diamond"}
NAMES = {"both": "BERT, both ways", "left": "GPT, left only", "hidden": "BERT, right side hidden",
         "right": "Right to left", "elmo": "ELMo's way: the product"}
#: Tokens drawn in a map; of longer inputs a window around the chosen place.
MAX_DRAWN = 32


def window_around(length: int, place: int, limit: int = MAX_DRAWN) -> tuple[int, int]:
    """[start, end) of at most `limit` tokens around `place`."""
    start = max(0, min(place - limit // 2, length - limit))
    return start, min(length, start + limit)


def labels(tokens: Sequence[str]) -> list[str]:
    """Token texts with their positions, so that repeated ones stay apart."""
    return [f"{token} <sub>{n}</sub>" for n, token in enumerate(map(escape, tokens))]


def escape(token: str) -> str:
    """A token as plotly shows it literally: it reads a little HTML in labels."""
    return token.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def allowed_pairs(trace: Trace) -> Array:
    """(Tq, Tk) bool in reading order: what this run's mask lets each query see."""
    return visible(trace.attention_kind, trace.config.reading_order, len(trace))


def map_figure(trace: Trace, values: Array, place: int, colour: str, what: str, height: int = 330) -> go.Figure:
    """A query x key map; pairs that the mask blocks are gaps.

    Args:
        values: (Tq, Tk), 0 to 1.
        place: the chosen token, whose row is framed.
        what: of the values, for the hover text.
    """
    low, high = window_around(len(trace), place)
    shown = np.where(allowed_pairs(trace), values, np.nan)[low:high, low:high]
    names = labels(trace.encoding.tokens)[low:high]
    figure = go.Figure(go.Heatmap(
        z=shown, x=names, y=names, zmin=0, zmax=1, showscale=False, xgap=1, ygap=1, hoverongaps=False,
        colorscale=[[0.0, _faded(colour, 0.06)], [0.25, _faded(colour, 0.5)], [1.0, colour]],
        hovertemplate=f"from %{{y}}<br>to %{{x}}<br>{what} %{{z:.3f}}<extra></extra>",
    ))
    figure.add_shape(type="rect", x0=-0.5, x1=high - low - 0.5, y0=place - low - 0.5, y1=place - low + 0.5,
                     line={"color": theme.MASK, "width": 2})
    theme.style(figure, height=height)
    figure.update_xaxes(side="top", tickangle=-60, showgrid=False, tickfont={"size": 12})
    figure.update_yaxes(autorange="reversed", showgrid=False, tickfont={"size": 12})
    return figure


def _faded(colour: str, alpha: float) -> str:
    red, green, blue = (int(colour[n:n + 2], 16) for n in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"


def mask_figure(trace: Trace, place: int, reader: str) -> go.Figure:
    """Who may see whom: 1 where the mask lets a query see a key."""
    return map_figure(trace, np.ones((len(trace), len(trace))), place, COLOURS[reader], "may see")


def attention_figure(trace: Trace, layer: int, head: int, place: int, reader: str) -> go.Figure:
    """One head's attention under this reader, rows the query."""
    return map_figure(trace, trace.attention_probs[layer, head], place, COLOURS[reader], "attention")


def side_shares(trace: Trace, places: Sequence[int]) -> dict[str, Array]:
    """How each head splits the chosen place's attention.

    Args:
        places: positions of the word, in reading order.

    Returns:
        'left', 'itself', 'right', each (L, H), which sum to 1; the mean over
        the word's pieces. [CLS] counts as left, the last [SEP] as right.
    """
    rows = trace.attention_probs[:, :, list(places)].mean(axis=2)  # (L, H, Tk)
    first, last = min(places), max(places)
    return {"left": rows[..., :first].sum(-1), "itself": rows[..., first:last + 1].sum(-1),
            "right": rows[..., last + 1:].sum(-1)}


def right_share_figure(shares: Array, reader: str, chosen: tuple[int, int], height: int = 300) -> go.Figure:
    """(L, H) share of the chosen word's attention that goes to its right."""
    layers, heads = shares.shape
    figure = go.Figure(go.Heatmap(
        z=shares, x=[str(h + 1) for h in range(heads)], y=[str(n + 1) for n in range(layers)], zmin=0, zmax=1,
        showscale=False, xgap=2, ygap=2, colorscale=[[0.0, _faded(COLOURS[reader], 0.06)], [1.0, COLOURS[reader]]],
        hovertemplate="layer %{y}, head %{x}<br>to the right %{z:.3f}<extra></extra>",
    ))
    layer, head = chosen
    figure.add_shape(type="rect", x0=head - 0.5, x1=head + 0.5, y0=layer - 0.5, y1=layer + 0.5,
                     line={"color": theme.MASK, "width": 3})
    theme.style(figure, "head", "layer", height)
    figure.update_xaxes(type="category", showgrid=False)
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False)
    return figure
