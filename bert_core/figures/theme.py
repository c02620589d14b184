"""Colours and layout of every chart: one meaning, one colour (Okabe-Ito).

Figures carry no background and no text colour of their own, so that Streamlit's
light or dark theme shows through.
"""

from __future__ import annotations

import plotly.graph_objects as go

TOKEN, SEGMENT, POSITION = "#0072B2", "#E69F00", "#009E73"
BOTH_WAYS, ONE_WAY = "#0072B2", "#D55E00"
MASK = "#CC79A7"
NEUTRAL = "#8A8F98"

#: One hue for probability and attention; always with zmin=0, zmax=1.
PROBABILITY = [[0.0, "rgba(0,114,178,0)"], [0.25, "rgba(0,114,178,0.45)"], [1.0, "rgba(0,114,178,1)"]]
#: Signed values, blue - clear - red; always symmetric about 0 (`signed_range`).
SIGNED = [[0.0, "rgba(33,102,172,1)"], [0.5, "rgba(128,128,128,0)"], [1.0, "rgba(178,24,43,1)"]]


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
