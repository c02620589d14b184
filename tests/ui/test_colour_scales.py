"""One weight, one colour: plotly's scale against the canvases', on a light and on a dark page."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest

from bert_core.figures import cls, finetune, meaning, tasks, theme
from bert_core.measures.meaning import Occurrence, Projection
from bert_core.measures.similarity import RandomPairs

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


@pytest.mark.parametrize("mode", MODES)
def test_a_range_of_its_own_has_the_upper_half_of_the_signed_colours(mode: str):
    ink, values = theme.INK[mode], np.array([[0.4, 0.45, 0.6, 0.9]])
    figure = theme.on_page(tasks.token_pairs_figure(values, ["a"], list("bcde")), ink)
    found = theme._cell_colours(figure.data[0], theme.PAPER[ink])[0]
    for value, colour in zip(values[0], found, strict=True):
        assert colour == pytest.approx(signed((value - 0.4) / 0.5, mode), abs=0.25)


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
    assert dark.keys() == {"token", "segment", "position", "both", "oneway", "mask", "off"}
    for name in dark.keys() - {"mask", "off"}:  # the canvases' mask is a deeper pink on light; charts cut nothing
        assert theme.ON_DARK[light[name]] == dark[name]
    assert theme.ON_DARK[theme.MASK] == dark["mask"]


def test_a_dark_page_lightens_every_part_of_a_trace_and_nothing_else():
    def drawn() -> go.Figure:
        figure = go.Figure(go.Scatter(x=[1, 2], y=[3, 4], line={"color": theme.BOTH_WAYS},
                                      marker={"color": [theme.ONE_WAY, "#123456"], "line": {"color": theme.MASK}},
                                      error_y={"array": [1, 1], "color": theme.POSITION}))
        return figure.add_bar(x=["a"], y=[1], marker_color=theme.SEGMENT)

    assert theme.on_page(drawn(), theme.INK["light"]).data == drawn().data
    scatter, bar = theme.on_page(drawn(), theme.INK["dark"]).data
    assert (scatter.line.color, scatter.marker.line.color, scatter.error_y.color) == ("#56B4E9", "#E29BC4", "#2CC79B")
    assert tuple(scatter.marker.color) == ("#F0894A", "#123456")
    assert bar.marker.color == "#F0B840"
    assert list(scatter.y) == [3, 4]


@pytest.mark.parametrize("ink", theme.INK.values())
def test_what_one_points_at_is_read_in_the_pages_own_ink(ink):
    label = theme.on_page(go.Figure(), ink).layout.hoverlabel
    assert (label.font.color, label.bgcolor) == (ink, f"rgb({','.join(map(str, theme.PAPER[ink]))})")


def test_colours_on_a_dark_page_differ_and_stand_out():
    assert len(set(theme.ON_DARK.values())) == len(theme.ON_DARK)
    colours = np.array([list(bytes.fromhex(name[1:])) for name in theme.ON_DARK.values()])
    paper = theme._luminance(theme.PAPER[theme.INK["dark"]])
    assert ((theme._luminance(colours) + 0.05) / (paper + 0.05)).min() >= 4.5


def test_kinds_have_one_set_of_colours_in_charts_and_components():
    light, dark = (re.findall(r"#\w{6}", re.search(rf'{name}: \[("#.+?)\]', BASE)[1]) for name in MODES)
    assert tuple(light) == theme.KINDS
    assert dark == [theme.ON_DARK[name] for name in light]


#: What the colour-blind see of linear sRGB: Machado, Oliveira and Fernandes 2009, severity 1.
SEEN = {
    "by most": np.eye(3),
    "without long waves": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                                    [-0.003882, -0.048116, 1.051998]]),
    "without middle waves": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                                      [-0.011820, 0.042940, 0.968881]]),
}
#: Colours that mean something wherever they stand.
FIXED = (theme.TOKEN, theme.SEGMENT, theme.POSITION, theme.ONE_WAY, theme.MASK, theme.NEUTRAL)


def seen(colour: str, how: np.ndarray) -> np.ndarray:
    """CIELAB of a colour as somebody sees it."""
    parts = np.array([int(colour[n:n + 2], 16) / 255 for n in (1, 3, 5)])
    linear = np.clip(how @ np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4), 0, 1)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(to_xyz @ linear / np.array([0.95047, 1.0, 1.08883]))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def distance(first: str, second: str, how: str) -> float:
    """Difference of two colours in CIELAB (1976): about 2 is seen side by side, 10 at a glance."""
    return float(np.linalg.norm(seen(first, SEEN[how]) - seen(second, SEEN[how])))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("how", SEEN)
def test_what_stands_in_one_chart_of_meaning_can_be_told_apart(mode: str, how: str):
    named = (theme.SAME_SENSE, theme.OTHER_SENSE, theme.TOKEN, theme.NEUTRAL, *theme.KINDS[:3])
    colours = [theme.ON_DARK.get(name, name) if mode == "dark" else name for name in named]
    for n, first in enumerate(colours):
        assert all(distance(first, second, how) > 5 for second in colours[n + 1:])
    for first, second in ((0, 1), (4, 5), (4, 6), (5, 6)):  # same and other sense; senses
        assert distance(colours[first], colours[second], how) > 10


@pytest.mark.parametrize("mode", MODES)
def test_no_kind_or_sense_looks_like_a_colour_that_means_something_else(mode: str):
    def of_mode(name: str) -> str:
        return theme.ON_DARK.get(name, name) if mode == "dark" else name

    for name in (theme.SAME_SENSE, theme.OTHER_SENSE, *theme.KINDS):
        least = min(distance(of_mode(name), of_mode(fixed), "by most") for fixed in FIXED)
        assert least > 20, (name, least)


def test_meaning_names_its_static_vector_by_the_token_embedding_and_senses_by_their_own():
    line = [meaning.Line("same sense", np.ones(3), 3), meaning.Line("different senses", np.ones(3), 3),
            meaning.Line("your sentence and “money”", np.ones(3), 3, 1, "money"),
            meaning.Line("your sentence and “river”", np.ones(3), 3, 1, "river")]
    base = RandomPairs(np.zeros(3), np.ones(3), 10)
    drawn = {trace.name.split(" (")[0]: trace.line.color for trace in meaning.layer_figure(line, np.ones(3), base).data}
    assert drawn["with its own static vector"] == theme.TOKEN
    assert (drawn["same sense"], drawn["different senses"]) == (theme.SAME_SENSE, theme.OTHER_SENSE)
    found = [Occurrence("bank", 0, "bank", 0, 4, (1,), np.zeros((3, 2)), np.zeros(2))] * 2
    points = meaning.map_figure(Projection(np.zeros((2, 2)), np.array([0.6, 0.3])), found, ["river", "money"])
    assert {trace.name: trace.marker.color for trace in points.data} == {
        "money": drawn["your sentence and “money”"], "river": drawn["your sentence and “river”"]}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["token", "segment", "position"])
def test_the_words_beside_the_strips_of_the_sum_can_be_read(name: str, mode: str):
    """A contrast of 4.5 (WCAG 2.2, 1.4.3)."""
    strips = (ROOT / "assets" / "components" / "embeddings.js").read_text(encoding="utf-8")
    part = float(re.search(r"mix\(MEANING\[strip\], look\.ink, ([\d.]+)\)", strips)[1])
    meaning_of = re.search(rf"\b{name}: \[(.+?)\]", BASE[BASE.index("const MEANING"):])[1]
    own, ink = np.fromstring(meaning_of, int, sep=","), np.array(list(bytes.fromhex(theme.INK[mode][1:])))
    word = theme._luminance(own + (ink - own) * part)
    paper = theme._luminance(np.array(theme.PAPER[theme.INK[mode]]))
    assert (max(word, paper) + 0.05) / (min(word, paper) + 0.05) >= 4.5
