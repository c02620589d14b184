"""Tables as HTML, and the charts that carry one: the same numbers, reachable without a mouse."""

from __future__ import annotations

import base64
import html
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

from bert_core.figures.finetune import main_axes
from tests.payloads import is_ready, visit
from ui import components, tables
from ui.views import finetune_more


def read(markup: str) -> list[list[str]]:
    """The cells of a table, its head first."""
    return [[html.unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)]
            for row in re.findall(r"<tr>(.*?)</tr>", markup)]


def behind(at) -> list[list[list[str]]]:
    """Every table of the page that stands behind a disclosure."""
    bodies = [element.proto.body for element in at.get("html")]
    return [read(body) for body in bodies if body.startswith('<details class="bw-behind"')]


def drawn_maps(at) -> list[np.ndarray]:
    """Values of every heatmap on the page, rows as they are drawn."""
    specs = [json.loads(chart.proto.spec) for chart in at.get("plotly_chart")]
    return [np.array(decoded(trace["z"])) for spec in specs for trace in spec["data"] if trace["type"] == "heatmap"]


def decoded(z: list | dict) -> list | np.ndarray:
    """The numbers of a heatmap: a list, or an array that plotly wrote as base64."""
    if isinstance(z, list):
        return z
    shape = tuple(int(n) for n in z["shape"].split(","))
    return np.frombuffer(base64.b64decode(z["bdata"]), dtype=z["dtype"]).reshape(shape)


def test_a_table_escapes_its_words_and_names_its_rows():
    made = tables.table("a < b", ["", "p"], [["<i>", "1"]], numbers=(1,), named=True)
    assert "<i>" not in made
    assert '<th scope="row">&lt;i&gt;</th>' in made
    assert 'class="bw-number">1</td>' in made
    assert 'aria-label="a &lt; b"' in made
    assert "<thead><tr><td></td>" in made
    assert 'scope="row"' not in tables.table("a", ["x"], [["1"]])


def test_layers_of_cls_have_their_numbers_in_tables():
    at = visit("cls", view="Layers", text="A warm and funny film.")
    is_ready(at)
    probe, layers, heads = behind(at)
    assert [row[0] for row in probe[1:]] == ["input", *(str(n) for n in range(1, len(probe) - 1))]
    for table, weights in zip((layers, heads), drawn_maps(at), strict=True):
        shown = np.array([row[1:] for row in table[1:]], dtype=float)
        assert shown == pytest.approx(weights, rel=1e-3)
        assert table[0][1:3] == ["0 [CLS]", "1 a"]


def test_where_a_change_arrives_and_how_tokens_compare_are_tables_too():
    at = visit("cls", view="Change a word", text="A warm film.", changed="A cold film.")
    is_ready(at)
    (arrival,) = behind(at)
    assert arrival[1] == ["input", "0", "0", "0"]
    for layer in arrival[2:]:
        relative, apart, usual = map(float, layer[1:])
        assert relative == pytest.approx(apart / usual, rel=5e-3)
    at = visit("tasks", view="Sentence pairs", text="A dog ran.", pair="The cat sat down.")
    is_ready(at)
    (table,), (cosines,) = behind(at), drawn_maps(at)
    assert np.array([row[1:] for row in table[1:]], dtype=float) == pytest.approx(cosines, rel=1e-3)
    assert [row[0] for row in table[1:]] == ["1 a", "2 dog", "3 ran", "4 ."]


def layouts(at) -> list[dict]:
    """Layout of every chart of the page, as the browser gets it."""
    return [json.loads(chart.proto.spec)["layout"] for chart in at.get("plotly_chart")]


def test_words_that_are_numbers_are_names_on_every_axis():
    """Streamlit takes out the template in which plotly.py says so; a third of such words made an axis of numbers."""
    at = visit("family", view="Side by side", text="In 1990, 12 of 30 came, 5 left.")
    is_ready(at)
    maps = [layout for layout in layouts(at) if layout["yaxis"].get("autorange") == "reversed"]
    assert len(maps) == 2
    for layout in layouts(at):
        assert layout["autotypenumbers"] == "strict"
    for layout in maps:
        assert (layout["xaxis"]["type"], layout["yaxis"]["type"]) == ("category", "category")


def test_a_chart_is_named_by_its_table_or_by_what_stands_for_one():
    def names(at) -> list[str]:
        return [layout["meta"]["name"] for layout in layouts(at)]

    assert names(visit("cls", view="Change a word", text="A warm film.", changed="A cold film.")) == [
        "Where the change arrives"]
    assert names(visit("family", view="Cost")) == ["Operations of one pass by the length of a sentence"]


@pytest.fixture
def charts(monkeypatch) -> dict[str, tables.Numbers]:
    """Key -> table of every chart that is drawn from here on."""
    found = {}
    monkeypatch.setattr(components, "chart", lambda figure, key, numbers: found.__setitem__(key, numbers))
    return found


def test_fine_tuning_loss_and_cls_space_have_their_numbers(charts, monkeypatch):
    vectors = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    arrays = {"curves": {"loss": np.array([2.0, 1.5])}, "epoch-0": {"cls": vectors}, "epoch-2": {"cls": -vectors}}
    run = SimpleNamespace(folder=SimpleNamespace(arrays=arrays.get, frames=lambda: (0, 2)),
                          spec=SimpleNamespace(way="full"))
    data = SimpleNamespace(labels=("bad", "good"), indices=lambda part: np.array([1, 0, 1]),
                           texts=lambda part: ["x", "y", "z"])
    monkeypatch.setattr(finetune_more.runs, "data_of", lambda run: data)
    finetune_more.loss(run, 2)
    finetune_more.space(run, 2)
    assert charts["tune_loss"].rows == [(1, 2.0), (2, 1.5)]
    after = charts["space_after"].rows
    assert [row[:2] for row in after] == [("x", "good"), ("y", "bad"), ("z", "good")]
    assert [row[2:] for row in after] == [tuple(place) for place in main_axes(-vectors).tolist()]
