"""What is said of a figure's layout joins what was said before, and goes round plotly's slow updates."""

import contextlib

import plotly.graph_objects as go
import pytest
from plotly.subplots import make_subplots

from bert_core.figures import theme


def _with_much_said() -> go.Figure:
    axis = {"title": {"text": "old", "standoff": 3}, "type": "category", "tickfont": {"color": "red", "size": 9}}
    return go.Figure(go.Scatter(x=["a"], y=[1]), layout={
        "xaxis": axis, "margin": {"pad": 4, "t": 50}, "legend": {"title": "kinds"}, "hoverlabel": {"bgcolor": "red"}})


def _two_pictures() -> go.Figure:
    figure = make_subplots(rows=1, cols=2)
    for column in (1, 2):
        figure.add_bar(x=["a"], y=[1], row=1, col=column)
    return figure


@pytest.mark.parametrize("make", [go.Figure, _with_much_said, _two_pictures])
def test_put_says_what_plotlys_own_updates_say(make):
    own = make().update_layout(height=300, margin_r=40, title={"text": "t", "font": {"size": 16}})
    own.update_layout(xaxis={"range": [0, 1], "tickfont": {"size": 16}}, yaxis={"type": "log", "dtick": None})
    put = theme.put(make(), height=300, margin={"r": 40}, title={"text": "t", "font": {"size": 16}},
                    xaxis={"range": [0, 1], "tickfont": {"size": 16}}, yaxis={"type": "log", "dtick": None})
    assert put.to_plotly_json() == own.to_plotly_json()


def test_style_keeps_what_it_does_not_speak_of_and_reaches_every_axis():
    layout = theme.style(_with_much_said(), "x", "y").layout
    assert (layout.xaxis.title.text, layout.xaxis.title.standoff, layout.xaxis.type) == ("x", 3, "category")
    assert (layout.xaxis.tickfont.color, layout.xaxis.tickfont.size) == ("red", 15)
    assert (layout.margin.pad, layout.margin.t, layout.hoverlabel.bgcolor) == (4, 30, "red")
    both = theme.style(_two_pictures(), "x", "y").layout
    assert {both.xaxis.title.text, both.xaxis2.title.text} == {"x"}
    assert {both.yaxis.title.text, both.yaxis2.title.text} == {"y"}


def test_marks_are_those_of_plotlys_own_methods():
    line = {"dash": "dot", "color": "red", "width": 2}
    own = _with_much_said()
    own.add_vline(x=0.5, line=line)
    own.add_hline(y=0.4, line=line, opacity=0.6)
    own.add_vrect(x0=1, x1=2, fillcolor="red", opacity=0.2, line_width=0, layer="below")
    for y, where in ((0.3, "top right"), (0.2, "bottom right")):
        own.add_hline(y=y, line=line, annotation={"text": where, "font": {"size": 15}}, annotation_position=where)
    marked = theme.mark(_with_much_said(), "x", 0.5, line=line)
    theme.mark(marked, "y", 0.4, line=line, opacity=0.6)
    theme.mark(marked, "x", 1, 2, fillcolor="red", opacity=0.2, line={"width": 0}, layer="below")
    for y, where, anchor in ((0.3, "top right", "bottom"), (0.2, "bottom right", "top")):
        theme.mark(marked, "y", y, line=line, text={"text": where, "font": {"size": 15}, "yanchor": anchor})
    assert marked.to_plotly_json() == own.to_plotly_json()


def test_a_charts_look_takes_none_of_plotlys_batches(monkeypatch):
    @contextlib.contextmanager
    def slow(figure):
        raise AssertionError("a batch takes ten times as long")
        yield

    monkeypatch.setattr(go.Figure, "batch_update", slow)
    theme.on_page(theme.style(_with_much_said(), "x", "y"), theme.INK["light"])
