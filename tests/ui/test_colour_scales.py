"""One weight, one colour: plotly's scale against the canvases', on a light and on a dark page."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest

from bert_core.figures import cls, finetune, meaning, tasks, theme

ROOT = Path(__file__).resolve().parents[2]
BASE = (ROOT / "assets" / "components" / "_base.js").read_text(encoding="utf-8")
MODES = ("light", "dark")


def certain(mode: str) -> np.ndarray:
    """The colour of probability 1 by _base.js."""
    dark, light = re.search(r"const top = look\.dark \? \[(.+?)\] : \[(.+?)\]", BASE).groups()
    return np.array([int(part) for part in (dark if mode == "dark" else light).split(",")])


def canvas(p: float, mode: str) -> np.ndarray:
    """probabilityColour of _base.js, before it is rounded."""
    paper = np.array(theme.PAPER[theme.INK[mode]])
    return paper + (certain(mode) - paper) * np.sqrt(p)


@pytest.mark.parametrize("mode", MODES)
def test_paper_and_ink_are_the_themes_own(mode: str):
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["theme"][mode]
    assert config["textColor"] == theme.INK[mode]
    assert bytes(theme.PAPER[theme.INK[mode]]).hex().upper() == config["backgroundColor"].removeprefix("#")


@pytest.mark.parametrize("mode", MODES)
def test_plotly_gives_a_weight_the_colour_that_the_canvases_give_it(mode: str):
    weights = np.array([[0, 0.01, 0.04, 0.09, 0.25, 0.49, 0.81, 1]])
    figure = theme.on_page(cls.attention_figure(weights, list("abcdefgh"), ["1"], "layer"), theme.INK[mode])
    found = theme._cell_colours(figure.data[0], theme.PAPER[theme.INK[mode]])[0]
    for p, colour in zip(weights[0], found, strict=True):
        assert colour == pytest.approx(canvas(p, mode), abs=1e-6)


def signed(value: float, mode: str) -> np.ndarray:
    """signedColour of _base.js at limit 1, before it is rounded."""
    ends = re.search(r"const end = t < 0 \? \(look\.dark \? \[(.+?)\] : \[(.+?)\]\) "
                     r": \(look\.dark \? \[(.+?)\] : \[(.+?)\]\)", BASE).groups()
    end = ends[(0 if value < 0 else 2) + (mode == "light")]
    paper = np.array(theme.PAPER[theme.INK[mode]])
    return paper + (np.array([int(part) for part in end.split(",")]) - paper) * abs(value) ** 0.8


@pytest.mark.parametrize("mode", MODES)
def test_plotly_gives_a_signed_value_the_colour_that_the_canvases_give_it(mode: str):
    values = np.array([[-1, -0.7, -0.1, 0, 0.1, 0.3, 1]])
    ink = theme.INK[mode]
    pairs = theme.on_page(tasks.token_pairs_figure(values, ["a"], list("bcdefgh")), ink)
    squares = theme.on_page(meaning.matrix_figure(values, list("bcdefgh"), "title", ink), ink)
    for figure in (pairs, squares):
        found = theme._cell_colours(figure.data[0], theme.PAPER[ink])[0]
        for value, colour in zip(values[0], found, strict=True):
            assert colour == pytest.approx(signed(value, mode), abs=0.25)  # alpha has three digits


def test_a_scale_that_is_neither_does_not_follow_the_page():
    figure = theme.on_page(go.Figure(go.Heatmap(z=[[0, 1]], colorscale="Viridis")), theme.INK["dark"])
    assert figure.data[0].colorscale == go.Figure(go.Heatmap(z=[[0, 1]], colorscale="Viridis")).data[0].colorscale


@pytest.mark.parametrize("mode", MODES)
def test_numbers_in_cells_can_be_read(mode: str):
    ink, labels = theme.INK[mode], [f"class {n}" for n in range(11)]
    table = np.array([[n, 10 - n, *[0] * 9] for n in range(11)])
    confusion = finetune.confusion_figure(table, labels, ink)
    cosines = np.linspace(-1, 1, 81).reshape(9, 9)
    matrix = meaning.matrix_figure(cosines, [str(n) for n in range(9)], "cosines", ink)
    for figure in (confusion, matrix):
        cells = theme._luminance(theme._cell_colours(figure.data[0], theme.PAPER[ink]))
        names = list(figure.data[0].x), list(figure.data[0].y)
        written = 0
        for trace in figure.data[1:]:
            text = 1.0 if trace.textfont.color == "#FFFFFF" else 0.0
            for x, y in zip(trace.x, trace.y, strict=True):
                cell = cells[names[1].index(y), names[0].index(x)]
                assert (max(text, cell) + 0.05) / (min(text, cell) + 0.05) >= 4.5
                written += 1
        assert written == cells.size


def test_colours_of_meaning_on_a_dark_page_are_the_canvases():
    tokens = (ROOT / "assets" / "components" / "tokens.css").read_text(encoding="utf-8")
    parts = tokens.split(':host([data-theme="dark"])')
    light, dark = (dict(re.findall(r"--bw-(\w+): (#\w{6})", part)) for part in parts)
    assert dark.keys() == {"token", "segment", "position", "both", "oneway", "mask"}
    for name in dark.keys() - {"mask"}:  # the canvases' mask is a deeper pink on a light page
        assert theme.ON_DARK[light[name]] == dark[name]
    assert theme.ON_DARK[theme.MASK] == dark["mask"]


def test_a_dark_page_lightens_every_part_of_a_trace_and_nothing_else():
    def drawn() -> go.Figure:
        figure = go.Figure(go.Scatter(x=[1, 2], y=[3, 4], line={"color": theme.BOTH_WAYS},
                                      marker={"color": [theme.ONE_WAY, "#123456"], "line": {"color": theme.MASK}},
                                      error_y={"array": [1, 1], "color": theme.POSITION}))
        return figure.add_bar(x=["a"], y=[1], marker_color=theme.SEGMENT)

    assert theme.on_page(drawn(), theme.INK["light"]) == drawn()
    scatter, bar = theme.on_page(drawn(), theme.INK["dark"]).data
    assert (scatter.line.color, scatter.marker.line.color, scatter.error_y.color) == ("#56B4E9", "#E29BC4", "#2CC79B")
    assert tuple(scatter.marker.color) == ("#F0894A", "#123456")
    assert bar.marker.color == "#F0B840"
    assert list(scatter.y) == [3, 4]


def test_colours_on_a_dark_page_differ_and_stand_out():
    assert len(set(theme.ON_DARK.values())) == len(theme.ON_DARK)
    colours = np.array([list(bytes.fromhex(name[1:])) for name in theme.ON_DARK.values()])
    paper = theme._luminance(theme.PAPER[theme.INK["dark"]])
    assert ((theme._luminance(colours) + 0.05) / (paper + 0.05)).min() >= 4.5


def test_the_films_words_change_colour_as_the_charts_do():
    script = (ROOT / "assets" / "components" / "live_film.js").read_text(encoding="utf-8")
    light, dark = (re.findall(r"#\w{6}", re.search(rf"const {name} = \[(.+?)\]", script)[1])
                   for name in ("GROUP_COLOURS", "GROUPS_ON_DARK"))
    assert tuple(light) == finetune.CLASS_COLOURS
    assert dark == [theme.ON_DARK.get(name, name) for name in light]
