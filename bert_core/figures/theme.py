"""Colours and layout of every chart: one meaning, one colour (Okabe-Ito).

Figures carry no background and no text colour of their own, so that Streamlit's
light or dark theme shows through. What must differ between the two follows the
page's text colour, `ink`, one of INK.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

TOKEN, SEGMENT, POSITION = "#0072B2", "#E69F00", "#009E73"
BOTH_WAYS, ONE_WAY = "#0072B2", "#D55E00"
MASK = "#CC79A7"
NEUTRAL = "#8A8F98"
#: One word in two sentences, in one sense or in two.
SAME_SENSE, OTHER_SENSE = "#55197A", "#8C6D00"
#: Kinds that are only told apart: senses of a word, classes of a data set, names of a text. None of the colours above,
#: and the first ones can be told apart by the colour-blind too.
KINDS = ("#A3123F", "#1E857D", "#5B3A16", "#6A5ACD", "#9A8AC8", "#6B8E23", "#1F2A5A", "#C97B69")

#: The two halves of a layer, in parameters and in cost.
ATTENTION, FEED_FORWARD = KINDS[3], KINDS[5]

#: What stands for a colour on a dark page, where the deep ones sink into it; the first five as in
#: assets/components/tokens.css.
ON_DARK = {TOKEN: "#56B4E9", SEGMENT: "#F0B840", POSITION: "#2CC79B", ONE_WAY: "#F0894A", MASK: "#E29BC4",
           SAME_SENSE: "#E2D2FF", OTHER_SENSE: "#CFC84A",
           **dict(zip(KINDS, ("#E8466F", "#8CEBE2", "#B5895C", "#8F8FFF",
                              "#C9A8FF", "#86B32D", "#7585B0", "#FFC4B5"), strict=True))}
#: The parts of a trace that hold colours of meaning.
_COLOURED = ("marker", "line", "error_x", "error_y", "fillcolor", "textfont")

#: Text of the page, light and dark.
INK = {"light": "#1C1E22", "dark": "#ECEAE4"}
#: The page behind a text of this colour, as in .streamlit/config.toml.
PAPER = {INK["light"]: (252, 251, 248), INK["dark"]: (22, 24, 28)}
#: Colour of probability 1 there, as in assets/components/_base.js (probabilityColour).
_CERTAIN = {INK["light"]: "0,78,130", INK["dark"]: "126,200,246"}
#: Colours of the most negative and the most positive value there (signedColour).
_ENDS = {INK["light"]: ("33,102,172", "178,24,43"), INK["dark"]: ("86,160,233", "240,110,90")}


def probability_scale(ink: str) -> list[list]:
    """One hue for probability and attention, from the page's colour by the root of p; always with zmin=0, zmax=1.

    The colours are the canvases' own at p = 0, 0.01, 0.04, 0.09, ..., 1 and lie on straight lines between.
    """
    return [[round(t * t, 2), f"rgba({_CERTAIN[ink]},{t})"] for t in (n / 10 for n in range(11))]


def signed_scale(ink: str) -> list[list]:
    """Blue, the page's colour at 0, red, by |v| to the power of 0.8; always with zmin=-1, zmax=1."""
    scale = []
    for sign, end in zip((-1, 1), _ENDS[ink], strict=True):
        sizes = [n / 10 for n in range(11)][::sign]
        scale += [[round((1 + sign * size) / 2, 2), f"rgba({end},{size ** 0.8:.3f})"] for size in sizes]
    return scale


def rising_scale(ink: str) -> list[list]:
    """The upper half of `signed_scale`, for values above 0 in a range of their own: zmin is the least of them."""
    return [[n / 10, f"rgba({_ENDS[ink][1]},{(n / 10) ** 0.8:.3f})"] for n in range(11)]


#: The scales of a light page; `on_page` puts the page's own in their place.
PROBABILITY, SIGNED, RISING = (scale(INK["light"]) for scale in (probability_scale, signed_scale, rising_scale))


def on_page(figure: go.Figure, ink: str) -> go.Figure:
    """The figure with the colours and colour scales of the page that it is drawn on, and its labels in the page's ink.

    Streamlit's own grey for what one points at can hardly be read on the light page.
    """
    paper = ",".join(map(str, PAPER[ink]))
    put(figure, hoverlabel={"bgcolor": f"rgb({paper})", "font": {"color": ink}})
    if ink == INK["dark"]:
        for trace in figure.data:
            drawn = trace.to_plotly_json()
            trace.update({part: _on_dark(drawn[part]) for part in _COLOURED if part in drawn})
    for trace in figure.select_traces(selector={"type": "heatmap"}):
        stops = [list(stop) for stop in trace.colorscale or ()]
        for light, of_page in ((PROBABILITY, probability_scale), (SIGNED, signed_scale), (RISING, rising_scale)):
            if stops == light:
                trace.colorscale = of_page(ink)
    return figure


def _on_dark(value: Any) -> Any:
    """A part of a trace with each colour of ON_DARK replaced, lists and parts of parts included."""
    if isinstance(value, dict):
        return {name: _on_dark(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_on_dark(part) for part in value]
    return ON_DARK.get(value, value) if isinstance(value, str) else value


def escape(text: str) -> str:
    """A text as plotly shows it literally: in labels it reads a little HTML, and of `html.escape` no quotation mark."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def css(colour: str) -> str:
    """A colour for the page's own HTML, where the browser knows which theme it shows."""
    return f"light-dark({colour}, {ON_DARK.get(colour, colour)})"


def style(figure: go.Figure, x: str = "", y: str = "", height: int = 420) -> go.Figure:
    """Calm layout for a chart.

    Args:
        x, y: axis titles with units.
        height: pixels; the width follows the page.
    """
    axis = {"automargin": True, "gridcolor": "rgba(128,128,128,0.18)", "zeroline": False, "tickfont": {"size": 15}}
    axes = {name: {"title": {"text": text, "font": {"size": 16}}, **axis} for kind, text in (("xaxis", x), ("yaxis", y))
            for name in figure.layout if name.startswith(kind)}
    calm = {
        "height": height, "margin": {"l": 10, "r": 10, "t": 30, "b": 10}, "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)", "font": {"size": 15}, "hoverlabel": {"font": {"size": 15}},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "xanchor": "left", "font": {"size": 15}},
    }
    return put(figure, **calm, **axes)


def put(figure: go.Figure, **parts: Any) -> go.Figure:
    """Say more of a figure's layout, beside what is said of it: `put(figure, height=300, xaxis={"type": "category"})`.

    It is what plotly's update_layout, update_xaxes and update_yaxes do, in a tenth of their time.
    """
    for name, value in parts.items():
        given = figure.layout[name]
        figure.layout[name] = _joined(given.to_plotly_json(), value) if isinstance(value, dict) else value
    return figure


def mark(figure: go.Figure, axis: str, at: float, to: float | None = None, text: dict[str, Any] | None = None,
         **look: Any) -> go.Figure:
    """Draw a line, or a band, across the whole picture: what plotly's add_hline, add_vrect and so on do, in a tenth of
    their time.

    Args:
        axis: 'x' or 'y', on which it stands.
        at, to: where, in the axis's own units; a band ends at `to`.
        text: of a line on y, an annotation at its right end: its text, font and yanchor.
        look: of the shape: line, fillcolor, opacity, layer.
    """
    along, end = "y" if axis == "x" else "x", at if to is None else to
    place = {f"{axis}ref": axis, f"{along}ref": f"{along} domain"}
    shape = {"type": "line" if to is None else "rect", f"{axis}0": at, f"{axis}1": end, f"{along}0": 0, f"{along}1": 1}
    figure.layout.shapes += ({**shape, **place, **look},)
    if text is not None:
        figure.layout.annotations += ({"x": 1, "y": at, "xanchor": "right", "showarrow": False, **place, **text},)
    return figure


def _joined(given: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    """A part of a layout with what is said of it, parts of parts included."""
    return given | {name: _joined(given.get(name, {}), part) if isinstance(part, dict) else part
                    for name, part in value.items()}


def enlarge(figure: go.Figure, scale: float, highest: int | None = None) -> go.Figure:
    """The figure with every type size times `scale`, as the page's own type, and room for it: at most `highest` pixels.

    One that is more than half as high again has its height for its many rows, and keeps it.
    """
    if scale == 1:
        return figure
    larger = go.Figure(_larger(figure.to_plotly_json(), scale))
    height = round((larger.layout.height or 420) * scale ** 0.5)
    return larger.update_layout(height=min(height, highest) if highest and height <= 1.5 * highest else height)


def _larger(part: Any, scale: float) -> Any:
    """A part of a figure as plain data with the sizes of its fonts times `scale`."""
    if isinstance(part, list | tuple) and part and isinstance(part[0], dict):
        return [_larger(one, scale) for one in part]
    if not isinstance(part, dict):
        return part
    sized = {name: _larger(value, scale) for name, value in part.items()}
    for name, value in sized.items():
        if name.endswith("font") and isinstance(value, dict) and "size" in value:
            sized[name] = value | {"size": round(value["size"] * scale)}
    return sized


def label_cells(
    figure: go.Figure, names: tuple[Sequence[str], Sequence[str]], text: Sequence[Sequence[str]], ink: str, size: int,
) -> go.Figure:
    """A number on each cell of a heatmap, in black or white, whichever can be read there (as inkOn of _base.js).

    Plotly chooses by the colour alone and does not know the page behind a
    transparent one, so in the dark it writes black on black.

    Args:
        figure: its first trace is the heatmap.
        names: of the columns and of the rows.
        text: [row][column], what stands there.
        ink: colour of the page's text.
    """
    dark = _luminance(_cell_colours(figure.data[0], PAPER[ink])) < 0.179  # equal contrast with black and white
    for cells, colour in ((dark, "#FFFFFF"), (~dark, "#000000")):
        rows, columns = np.nonzero(cells)
        figure.add_scatter(
            x=[names[0][c] for c in columns], y=[names[1][r] for r in rows], mode="text",
            text=[text[r][c] for r, c in zip(rows, columns, strict=True)], textfont={"size": size, "color": colour},
            hoverinfo="skip", showlegend=False)
    return put(figure, xaxis={"showgrid": False}, yaxis={"showgrid": False})


def _cell_colours(heatmap: go.Heatmap, paper: tuple[int, int, int]) -> np.ndarray:
    """(rows, columns, 3) of 0 to 255: a heatmap's cells as they stand on the page."""
    stops = np.array([stop for stop, _ in heatmap.colorscale])
    colours = np.array([[float(part) for part in re.findall(r"[\d.]+", name)] for _, name in heatmap.colorscale])
    places = (np.asarray(heatmap.z) - heatmap.zmin) / (heatmap.zmax - heatmap.zmin)
    red, green, blue, alpha = (np.interp(places, stops, part) for part in colours.T)
    alpha = alpha[..., None]
    return np.stack([red, green, blue], axis=-1) * alpha + np.array(paper) * (1 - alpha)


def _luminance(colours: np.ndarray) -> np.ndarray:
    """Relative luminance of sRGB colours (..., 3) of 0 to 255, 0 to 1 (WCAG 2.2)."""
    parts = np.asarray(colours) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return linear @ np.array([0.2126, 0.7152, 0.0722])
