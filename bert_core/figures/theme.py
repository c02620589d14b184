"""Colours and layout of every chart: one meaning, one colour (Okabe-Ito).

Figures carry no background and no text colour of their own, so that Streamlit's
light or dark theme shows through.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

TOKEN, SEGMENT, POSITION = "#0072B2", "#E69F00", "#009E73"
BOTH_WAYS, ONE_WAY = "#0072B2", "#D55E00"
MASK = "#CC79A7"
NEUTRAL = "#8A8F98"

#: One hue for probability and attention; always with zmin=0, zmax=1.
PROBABILITY = [[0.0, "rgba(0,114,178,0)"], [0.25, "rgba(0,114,178,0.45)"], [1.0, "rgba(0,114,178,1)"]]
#: Signed values, blue - clear - red; always symmetric about 0 (`signed_range`).
SIGNED = [[0.0, "rgba(33,102,172,1)"], [0.5, "rgba(128,128,128,0)"], [1.0, "rgba(178,24,43,1)"]]
#: Text of the page, light and dark, for the few places where a figure must name it.
INK = {"light": "#1C1E22", "dark": "#ECEAE4"}
#: Opacity above which a cell is dark enough for white numbers in both themes.
_STRONG = 0.65


def signed_range(low: float, high: float) -> tuple[float, float]:
    """The smallest range about 0 that holds low and high."""
    limit = max(abs(low), abs(high), 1e-12)
    return -limit, limit


def style(figure: go.Figure, x: str = "", y: str = "", height: int = 420) -> go.Figure:
    """Calm layout for a chart.

    Args:
        x, y: axis titles with units.
        height: pixels; the width follows the page.
    """
    figure.update_layout(
        height=height, margin={"l": 10, "r": 10, "t": 30, "b": 10}, paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)", font={"size": 15}, hoverlabel={"font": {"size": 15}},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "xanchor": "left", "font": {"size": 15}},
    )
    axis = {"automargin": True, "gridcolor": "rgba(128,128,128,0.18)", "zeroline": False, "tickfont": {"size": 15}}
    figure.update_xaxes(title={"text": x, "font": {"size": 16}}, **axis)
    figure.update_yaxes(title={"text": y, "font": {"size": 16}}, **axis)
    return figure


def label_cells(
    figure: go.Figure, names: tuple[Sequence[str], Sequence[str]], text: Sequence[Sequence[str]], strength: np.ndarray,
    ink: str, size: int,
) -> go.Figure:
    """A number on each cell of a heatmap: white on strong colours, `ink` on faint ones.

    Plotly chooses by the colour alone and does not know the page behind a
    transparent one, so in the dark it writes black on black.

    Args:
        names: of the columns and of the rows.
        text: [row][column], what stands there.
        strength: (rows, columns), how opaque a cell is, 0 to 1.
        ink: colour of the page's text.
    """
    strong = np.asarray(strength) > _STRONG
    for cells, colour in ((strong, "#FFFFFF"), (~strong, ink)):
        rows, columns = np.nonzero(cells)
        figure.add_scatter(
            x=[names[0][c] for c in columns], y=[names[1][r] for r in rows], mode="text",
            text=[text[r][c] for r, c in zip(rows, columns, strict=True)], textfont={"size": size, "color": colour},
            hoverinfo="skip", showlegend=False)
    return figure.update_xaxes(showgrid=False).update_yaxes(showgrid=False)
