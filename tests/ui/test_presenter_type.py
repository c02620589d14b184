"""Presenter mode's larger type reaches the words of the charts."""

from __future__ import annotations

import json

import plotly.graph_objects as go

from bert_core.figures import theme
from tests.payloads import page, visit


def layout_of(at) -> dict:
    """Layout of the first chart on a page."""
    assert not at.exception
    return json.loads(at.get("plotly_chart")[0].proto.spec)["layout"]


def test_charts_grow_with_the_presenters_type_and_shrink_back():
    usual = layout_of(visit("family", view="Cost"))
    at = page("family", view="Cost", present="1").run()
    large = layout_of(at)
    assert usual["xaxis"]["tickfont"]["size"] == 15
    assert large["xaxis"]["tickfont"]["size"] == round(15 * 23 / 18)
    assert [note["font"]["size"] for note in large["annotations"]] == [
        round(note["font"]["size"] * 23 / 18) for note in usual["annotations"]]
    assert large["height"] > usual["height"]
    at.query_params["present"] = "0"
    assert layout_of(at.run())["xaxis"]["tickfont"]["size"] == 15


def test_bertviz_grows_with_it():
    usual, large = (visit("attention", view="bertviz", **mode).get("iframe")[0].proto
                    for mode in ({}, {"present": "1"}))
    assert "zoom:1}" in usual.srcdoc
    assert f"zoom:{23 / 18:g}}}" in large.srcdoc


def test_an_enlarged_figure_keeps_its_numbers_and_marks():
    figure = go.Figure(go.Scatter(x=[1, 2], y=[3, 4], text=["a", "b"], textfont={"size": 10}, marker={"size": 9}))
    larger = theme.enlarge(theme.style(figure, "x", "y"), 1.5)
    assert (larger.data[0].textfont.size, larger.data[0].marker.size) == (15, 9)
    assert (list(larger.data[0].x), list(larger.data[0].y)) == ([1, 2], [3, 4])
    assert larger.layout.yaxis.title.font.size == 24


def test_a_figure_is_as_high_as_the_window_bears_unless_its_rows_need_more():
    def height(pixels: int) -> int:
        return theme.enlarge(go.Figure(layout={"height": pixels}), 1.1, highest=460).layout.height

    assert (height(300), height(560), height(1400)) == (round(300 * 1.1 ** 0.5), 460, round(1400 * 1.1 ** 0.5))
