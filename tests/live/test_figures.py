"""Charts of both pages hold the numbers they are given, on fixed scales."""

import numpy as np
import pytest

from bert_core.figures import finetune, pretrain
from bert_core.measures.classification import calibration
from bert_core.training.live import film

CURVES = {
    "loss": np.array([6.0, 5.0, 4.0]), "nsp_loss": np.array([np.nan, 0.7, 0.6]), "lr": np.array([1e-4, 2e-4, 3e-4]),
    "gradient": np.array([2.0, 1.0, 1.5]), "held_step": np.array([0.0, 3.0]), "held_loss": np.array([6.1, 4.2]),
    "held_accuracy": np.array([0.0, 0.3]),
}


def test_accuracy_stands_beside_its_levels_on_a_scale_of_0_to_1():
    runs = [pretrain.RunCurves("this run", CURVES), pretrain.RunCurves("the run before", CURVES)]
    figure = pretrain.accuracy_figure(runs, [pretrain.Level("lookup 55%", 0.55)], 100)
    assert [trace.name for trace in figure.data] == ["this run", "the run before"]
    assert list(figure.data[0].y) == [0.0, 0.3]
    assert figure.layout.shapes[0].y0 == 0.55
    assert tuple(figure.layout.yaxis.range) == (0, 1)
    assert tuple(figure.layout.xaxis.range) == (0, 100)


def test_a_legend_begins_with_what_tells_its_lines_apart():
    """A telephone has room for some thirty characters of it."""
    runs = [pretrain.RunCurves("As in the paper, seed 0", CURVES, before=before) for before in (False, True)]
    losses, accuracy = pretrain.loss_figure(runs, [], 3), pretrain.accuracy_figure(runs, [], 3)
    begin = [[trace.name.partition(":")[0] for trace in figure.data] for figure in (losses, accuracy)]
    assert begin == [["training", "held out", "training, before", "held out, before"],
                     ["As in the paper, seed 0", "before"]]


def test_losses_show_training_smoothed_and_held_out_as_measured():
    figure = pretrain.loss_figure([pretrain.RunCurves("this run", CURVES)], [], 3)
    assert figure.data[0].y == pytest.approx([6.0, 5.5, 5.0])
    assert list(figure.data[0].customdata) == [6.0, 5.0, 4.0]
    assert figure.layout.xaxis.title.text == "optimiser steps; training: running average"
    assert list(figure.data[1].y) == [6.1, 4.2]


def test_a_running_average_begins_at_the_first_number_and_skips_steps_without_a_pair():
    found = pretrain.smooth(np.array([np.nan, 1.0, np.nan, 2.0]))
    assert np.isnan(found[0])
    assert found[1:] == pytest.approx([1.0, 1.0, 1.5])
    assert len(pretrain.smooth(np.zeros(0))) == 0
    assert np.isnan(pretrain.smooth(np.full(50, np.nan))).all()


def test_a_running_average_is_the_mean_of_the_last_twenty_steps_and_no_slower():
    values = np.linspace(7, 3, 60, dtype=np.float32)
    expected = [values[max(0, n - 19) : n + 1].mean() for n in range(60)]
    assert pretrain.smooth(values) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("curve", "averaged"), [("gradient", True), ("nsp_loss", True), ("lr", False)])
def test_a_small_curve_says_that_it_is_a_running_average(curve, averaged):
    figure = pretrain.small_figure([pretrain.RunCurves("this run", CURVES)], curve, "size", 3)
    assert ("running average" in figure.layout.xaxis.title.text) == averaged
    assert ("this step alone" in figure.data[0].hovertemplate) == averaged
    assert figure.data[0].customdata == pytest.approx(CURVES[curve], nan_ok=True)


def test_the_learning_rate_is_drawn_as_it_was():
    figure = pretrain.small_figure([pretrain.RunCurves("this run", CURVES)], "lr", "learning rate", 3)
    assert list(figure.data[0].y) == [1e-4, 2e-4, 3e-4]


def test_fine_tuning_stands_beside_both_baselines_and_chance():
    run = finetune.WayCurve("full", "Everything", np.array([0, 1]), np.array([0.25, 0.9]))
    figure = finetune.accuracy_figure([run], {"words": 0.7, "lstm": 0.6}, ("chance", 0.25), 4)
    assert [shape.y0 for shape in figure.layout.shapes] == [0.7, 0.6, 0.25]
    assert list(figure.data[0].y) == [0.25, 0.9]


def test_every_way_is_drawn_at_its_epochs_on_one_axis():
    runs = [finetune.WayCurve("full", "Everything", np.arange(5), np.linspace(0.2, 0.9, 5)),
            finetune.WayCurve("frozen", "Head only", np.arange(41), np.linspace(0.2, 0.8, 41))]
    figure = finetune.accuracy_figure(runs, {}, ("chance", 0.25), 40)
    ticks = dict(zip(figure.layout.xaxis.ticktext, figure.layout.xaxis.tickvals, strict=True))
    assert list(ticks) == ["0", "1", "2", "3", "4", "6", "10", "20", "40"]
    for trace, run in zip(figure.data, runs, strict=True):
        assert list(trace.customdata) == list(run.epochs)
        assert [trace.x[n] for n in (0, 1, 4)] == [ticks["0"], ticks["1"], ticks["4"]]
        assert "epoch %{customdata}" in trace.hovertemplate
    assert figure.data[1].x[-1] == ticks["40"] <= figure.layout.xaxis.range[1]
    assert np.all(np.diff(figure.data[1].x) > 0)
    short = finetune.accuracy_figure(runs[:1], {}, ("chance", 0.25), 4)
    assert list(short.layout.xaxis.ticktext) == ["0", "1", "2", "3", "4"]


def test_levels_at_one_height_share_one_label():
    found = finetune.named_levels({"words": 0.5, "lstm": 0.51}, ("chance", 0.5))
    assert [value for _, value in found] == [0.51, 0.5, 0.5]
    assert [label for label, _ in found] == ["", "", "LSTM 51 %, bag of words 50 %, chance 50 %"]


def test_confusion_is_shaded_by_row_and_shows_counts():
    figure = finetune.confusion_figure(np.array([[3, 1], [0, 4]]), ["<b>a</b>", "b"])
    assert figure.data[0].z.tolist() == [[0.75, 0.25], [0.0, 1.0]]
    written = {(y, x): text for trace in figure.data[1:]
               for x, y, text in zip(trace.x, trace.y, trace.text, strict=True)}
    assert [written[y, x] for y in figure.data[0].y for x in figure.data[0].x] == ["3", "1", "0", "4"]
    white = [trace for trace in figure.data[1:] if trace.textfont.color == "#FFFFFF"]
    assert [list(trace.text) for trace in white] == [["3", "4"]]
    assert figure.data[0].x[0] == "&lt;b&gt;a&lt;/b&gt;"
    assert (figure.data[0].zmin, figure.data[0].zmax) == (0, 1)


def test_classes_named_by_numbers_stand_side_by_side_each_with_its_count():
    figure = finetune.confusion_figure(np.array([[3, 1], [0, 4]]), ["1", "10"])
    assert [figure.layout.xaxis.type, figure.layout.yaxis.type] == ["category"] * 2


def test_calibration_puts_how_sure_on_x_and_how_right_on_y():
    found = calibration(np.array([[0.95, 0.05], [0.55, 0.45]]), np.array([0, 1]))
    figure = finetune.calibration_figure(found)
    assert figure.data[1].x == pytest.approx([0.55, 0.95])
    assert figure.data[1].y == pytest.approx([0.0, 1.0])


def test_cls_space_keeps_every_point_with_its_class_and_text():
    vectors = np.random.default_rng(0).normal(size=(7, 5))
    texts = [f"text {n}" for n in range(7)]
    figure = finetune.space_figure(vectors, np.array([0, 1, 0, 1, 1, 0, 0]), ["x", "y"], texts)
    assert [len(trace.x) for trace in figure.data] == [4, 3]
    assert figure.data[1].text == ("text 1", "text 3", "text 4")
    places = finetune.main_axes(vectors)
    assert places.mean(axis=0) == pytest.approx([0, 0], abs=1e-6)
    assert places[:, 0].var() >= places[:, 1].var()


def test_attention_is_the_cls_row_averaged_over_heads():
    probs = np.zeros((2, 2, 3, 3))
    probs[1, :, 0] = [[0.2, 0.8, 0.0], [0.6, 0.0, 0.4]]
    figure = finetune.attention_figure(probs, ["[CLS]", "a", "[SEP]"])
    assert figure.data[0].z[1] == pytest.approx([0.4, 0.4, 0.2])


@pytest.mark.parametrize("words", [0, 1, 2, 5])
def test_few_words_have_a_place_too(words):
    vectors = np.random.default_rng(0).normal(size=(3, words, 8)).astype(np.float32)
    shots = [film.Shot(n, (), (), [], None, (), (), table, 0, 0) for n, table in enumerate(vectors)]
    places = film.project(shots)
    assert places.shape == (3, words, 2)
    assert np.isfinite(places).all()
