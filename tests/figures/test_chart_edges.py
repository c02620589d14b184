"""Edges of the charts: what is drawn at one end of a range, in the order, colour and words that were given."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest

from bert_core.config import BertConfig
from bert_core.figures import cost, embeddings, family, finetune, meaning, pretrain, tasks, theme
from bert_core.measures.classification import Calibration
from bert_core.measures.cost import Fit, Timing, activation_memory, forward_work
from bert_core.measures.meaning import ByLayer, Occurrence
from bert_core.measures.similarity import RandomPairs


def test_quotation_marks_stay_what_they_are_and_markup_does_not():
    """Plotly reads no entity for a quotation mark: it would show its letters."""
    assert theme.escape('"so" it\'s <b> & more') == '"so" it\'s &lt;b&gt; &amp; more'
    told = finetune.space_figure(np.eye(3), np.array([0, 0, 1]), ['say "a"', "b"], ['"no"', "<i>", "c"])
    assert told.data[0].name == 'say "a"'
    assert list(told.data[0].text) == ['"no"', "&lt;i&gt;"]


# --- theme ---------------------------------------------------------------------


def test_each_part_of_a_trace_takes_its_dark_colour_lists_and_nested_parts_too():
    figure = go.Figure(go.Bar(x=[1, 2], y=[3, 4], error_y={"array": [1, 1], "color": theme.MASK}, textfont={
        "color": theme.ONE_WAY}, marker={"color": [theme.TOKEN, "#123456"], "line": {"color": theme.SEGMENT}}))
    figure.add_scatter(x=[1, 2], y=[3, 4], fillcolor=theme.POSITION, line={"color": theme.TOKEN},
                       marker={"color": (theme.TOKEN, theme.MASK)})
    bars, line = theme.on_page(figure, theme.INK["dark"]).data
    assert list(bars.marker.color) == ["#56B4E9", "#123456"]
    assert (bars.marker.line.color, bars.error_y.color, bars.textfont.color) == ("#F0B840", "#E29BC4", "#F0894A")
    assert (line.fillcolor, line.line.color) == ("#2CC79B", "#56B4E9")
    assert list(line.marker.color) == ["#56B4E9", "#E29BC4"]


def test_on_a_light_page_colours_stay():
    figure = go.Figure(go.Scatter(x=[1], y=[2], line={"color": theme.TOKEN}))
    assert theme.on_page(figure, theme.INK["light"]).data[0].line.color == theme.TOKEN


def test_a_map_without_a_scale_of_its_own_stays_without():
    assert theme.on_page(go.Figure(go.Heatmap(z=[[0, 1]])), theme.INK["dark"]).data[0].colorscale is None


def test_numbers_of_cells_stand_on_their_own_cells_in_their_size():
    """2 rows of 3: an axis taken for the other would not fit."""
    figure = go.Figure(go.Heatmap(z=[[0, 0.2, 1], [1, 0, 0]], x=["a", "b", "c"], y=["p", "q"], zmin=0, zmax=1,
                                  colorscale=theme.probability_scale(theme.INK["light"])))
    text = [["1", "2", "3"], ["4", "5", "6"]]
    theme.label_cells(figure, (["a", "b", "c"], ["p", "q"]), text, theme.INK["light"], 11)
    found = {(y, x): t for trace in figure.data[1:] for x, y, t in zip(trace.x, trace.y, trace.text, strict=True)}
    assert found == {("p", "a"): "1", ("p", "b"): "2", ("p", "c"): "3", ("q", "a"): "4", ("q", "b"): "5",
                     ("q", "c"): "6"}
    assert {trace.textfont.size for trace in figure.data[1:]} == {11}


def test_a_larger_type_reaches_annotations_and_gives_them_room():
    figure = theme.style(go.Figure(), "x", "y", 400)
    figure.add_annotation(text="here", x=0, y=0, font={"size": 15})
    larger = theme.enlarge(figure, 2.25)
    assert (larger.layout.annotations[0].font.size, larger.layout.height) == (34, 600)
    assert theme.enlarge(figure, 1) is figure


# --- fine-tuning and pre-training ----------------------------------------------


def test_counts_of_the_confusion_are_under_the_pointer_and_the_classes_on_their_axes():
    figure = finetune.confusion_figure(np.array([[3, 1], [0, 4]]), ["a", "b"])
    assert np.array_equal(figure.data[0].customdata, [[3, 1], [0, 4]])
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == ("class given", "true class")


def test_each_doubling_of_the_passes_takes_the_same_room_from_nought_on():
    assert finetune.along(np.array([0, 1, 3, 7])).tolist() == [0, 1, 2, 3]
    figure = finetune.accuracy_figure([], {}, ("chance", 0.25), 3)
    assert tuple(figure.layout.xaxis.tickvals) == pytest.approx((0, 1, np.log2(3), 2))
    assert figure.layout.xaxis.range == pytest.approx((-0.04, 2.04))
    assert tuple(figure.layout.yaxis.range) == (0, 1.04)  # all right is in sight


def test_the_space_keeps_the_two_largest_spreads():
    vectors = np.random.default_rng(5).normal(size=(11, 4)) * np.array([1, 7, 3, 0.1])
    largest = np.linalg.svd(vectors - vectors.mean(axis=0), compute_uv=False)
    places = finetune.main_axes(vectors)
    assert np.linalg.norm(places, axis=0) == pytest.approx(largest[:2], rel=1e-5)


def test_the_first_step_of_a_loss_is_step_1():
    assert list(finetune.loss_figure(np.array([3.0, 2.0, 1.0])).data[0].x) == [1, 2, 3]
    runs = [pretrain.RunCurves("now", {
        "loss": np.array([3.0, 2.0]), "lr": np.array([0.1, 0.2]), "gradient": np.array([1.0, 2.0]),
        "held_step": np.array([0, 7]), "held_loss": np.array([3.1, 2.1]), "held_accuracy": np.array([0.1, 0.2])})]
    training, held = pretrain.loss_figure(runs, [], 9).data
    assert (list(training.x), list(held.x)) == ([1, 2], [0, 7])
    assert list(pretrain.accuracy_figure(runs, [], 9).data[0].x) == [0, 7]
    small = pretrain.small_figure(runs, "gradient", "gradient norm", 9)
    assert (list(small.data[0].x), list(small.data[0].y)) == ([1, 2], [1.0, 1.5])


@pytest.mark.parametrize(("done", "steps", "every"), [(300, 300, 1), (57, 3000, 8), (2601, 3000, 8), (6000, 6000, 15)])
def test_a_long_run_is_drawn_by_some_of_its_steps_and_the_newest(done, steps, every):
    at = pretrain.drawn_steps(done, steps)
    assert len(at) <= pretrain.MOST_POINTS + 1
    assert list(at) == sorted({*range(1, done + 1, every), done})
    assert every <= pretrain.AVERAGED, "each step is in the average of one that is drawn"
    values = np.random.default_rng(3).random(done).astype(np.float32)
    run = pretrain.RunCurves("now", {"loss": values, "gradient": values, "held_step": [0], "held_loss": [5.0]})
    for trace in (pretrain.loss_figure([run], [], steps).data[0],
                  pretrain.small_figure([run], "gradient", "norm", steps).data[0]):
        assert list(trace.x) == list(at)
        assert list(trace.customdata) == list(values[at - 1])
        assert list(trace.y) == list(pretrain.smooth(values)[at - 1])


def test_a_run_that_has_done_no_step_draws_none():
    assert list(pretrain.drawn_steps(0, 3000)) == []


@pytest.mark.parametrize(("log", "kind", "mode"), [(True, "log", "normal"), (False, "linear", "tozero")])
def test_small_curves_go_from_nought_unless_their_axis_has_none(log, kind, mode):
    run = pretrain.RunCurves("now", {"gradient": np.array([1.0, 2.0])})
    layout = pretrain.small_figure([run], "gradient", "gradient norm", 9, log).layout
    assert (layout.yaxis.type, layout.yaxis.rangemode, tuple(layout.xaxis.range)) == (kind, mode, (0, 9))


def test_levels_of_the_loss_are_drawn_and_named():
    curves = {"loss": np.array([3.0]), "held_step": np.array([0]), "held_loss": np.array([3.1])}
    layout = pretrain.loss_figure([pretrain.RunCurves("now", curves)], [pretrain.Level("uniform", 4.7)], 9).layout
    assert (layout.shapes[0].y0, layout.shapes[0].y1, layout.annotations[0].text) == (4.7, 4.7, "uniform")
    assert (layout.yaxis.rangemode, tuple(layout.xaxis.range)) == ("tozero", (0, 9))


def test_calibration_is_drawn_over_the_diagonal_with_its_counts():
    found = Calibration(np.array([0.55, 0.9]), np.array([0.5, 1.0]), np.array([4, 9]), 0.1)
    diagonal, points = finetune.calibration_figure(found).data
    assert list(diagonal.x) == list(diagonal.y) == [0, 1]
    assert (list(points.customdata), list(points.marker.size)) == ([4, 9], [14, 17])


def test_what_cls_looks_at_is_numbered_from_layer_1_with_each_token_named_once():
    probs = np.zeros((2, 3, 4, 4))
    probs[0, :, 0, 2], probs[1, :, 2, 0] = 0.75, 0.5
    figure = finetune.attention_figure(probs, ["[CLS]", "a", "<", "[SEP]"])
    assert np.array_equal(figure.data[0].z, [[0, 0, 0.75, 0], [0, 0, 0, 0]])
    assert list(figure.data[0].y) == ["layer 1", "layer 2"]
    assert list(figure.layout.xaxis.ticktext) == ["[CLS]", "a", "&lt;", "[SEP]"]
    assert list(figure.layout.xaxis.tickvals) == list(figure.data[0].x) == ["0 [CLS]", "1 a", "2 &lt;", "3 [SEP]"]


# --- family and cost -----------------------------------------------------------


def test_the_treemap_s_parts_stand_in_their_groups_with_name_and_formula():
    nodes = {node.key: node for node in family.anatomy_info(BertConfig(), ("mlm",))}
    part = nodes["layer 2/feed-forward in"]
    assert (part.parent, part.label, nodes["layer 2"].parent) == ("layer 2", "feed-forward in", "all")
    drawn = family.anatomy_figure(tuple(nodes.values())).data[0]
    at = drawn.ids.index(part.key)
    assert (drawn.labels[at], drawn.parents[at], drawn.customdata[at][0]) == (part.label, part.parent, part.formula)
    assert any(char in part.formula for char in "DI")


def test_the_heads_that_are_asked_for_are_counted_in_tree_and_table():
    bare, with_head = (family.anatomy_info(BertConfig(), heads)[0].count for heads in ((), ("pooler",)))
    assert with_head - bare == 768 * 768 + 768
    totals = [sum(row.total for row in family.anatomy_table(BertConfig(), heads)) for heads in ((), ("pooler",))]
    assert totals == [bare, with_head]


@pytest.mark.parametrize("layers", [1, 3])
def test_the_table_counts_every_layer_of_any_number(layers):
    config = replace(BertConfig(), num_hidden_layers=layers, hidden_size=60, num_attention_heads=5)
    rows = family.anatomy_table(config)
    assert sum(row.total for row in rows) == family.anatomy_info(config)[0].count
    assert {row.times for row in rows if row.part.startswith("each layer: ")} == {layers}


def test_a_decoder_of_its_own_has_the_colour_of_the_words():
    node = family.Node("head/decoder", "head", "decoder", "V · D", 5)
    assert family._kind(node) == ("decoder", theme.TOKEN)


def test_the_family_s_map_says_who_looks_at_whom():
    from tests.made import made_trace

    figure = family.attention_figure(made_trace(("a", "b", "c"), attention_probs=np.eye(3)[None, None]))
    assert figure.layout.xaxis.title.text.startswith("to")
    assert figure.layout.yaxis.title.text == "from"


def test_every_part_of_the_cost_is_drawn_in_its_unit_under_its_name():
    config = replace(BertConfig(), num_hidden_layers=3, hidden_size=60, num_attention_heads=5, intermediate_size=77)
    work = {trace.name: trace for trace in cost.work_figure(config).data}
    memory = {trace.name: trace for trace in cost.memory_figure(config).data}
    for at in (0, 7, len(cost.LENGTHS) - 1):
        length = cost.LENGTHS[at]
        made, kept = forward_work(config, length), activation_memory(config, length)
        assert {name: trace.y[at] * 1e9 for name, trace in work.items()} == pytest.approx({
            "feed-forward": made.feed_forward, "attention, its projections": made.projections,
            "attention, the n² part": made.scores})
        assert {name: trace.y[at] * 2**20 for name, trace in memory.items()} == pytest.approx({
            "embeddings": kept.embeddings, "hidden states": kept.hidden, "attention, its projections": kept.projections,
            "feed-forward": kept.feed_forward, "attention maps, n²": kept.attention})
    assert (cost.LENGTHS[0], cost.LENGTHS[-1]) == (16, 4096)


def test_crossings_out_of_sight_are_left_out_and_axes_are_logarithmic():
    figure = cost.work_figure(replace(BertConfig(), intermediate_size=8000, hidden_size=3600, num_attention_heads=12))
    assert {note.text.strip() for note in figure.layout.annotations} == {"n = I − 2D", "positions end at 512"}
    assert (figure.layout.xaxis.type, figure.layout.yaxis.type) == ("log", "log")
    memory = cost.memory_figure(BertConfig()).layout
    assert (memory.xaxis.type, memory.yaxis.type) == ("log", "log")
    assert (memory.shapes[0].x0, memory.shapes[0].x1) == (512, 4096)


def test_positions_end_where_the_last_token_s_does():
    roberta = replace(BertConfig(), model_type="roberta", max_position_embeddings=514, pad_token_id=1)
    assert cost.memory_figure(roberta).layout.shapes[0].x0 == roberta.max_tokens == 512


def test_batches_are_words_and_both_times_are_said():
    figure = cost.batch_figure([Timing(1, 3.0, 1), Timing(5, 10.0, 3)])
    assert (list(figure.data[0].y), list(figure.data[0].customdata)) == (
        [3.0, 2.0], [[3.0, "1 run"], [10.0, "3 runs"]])
    assert figure.layout.xaxis.type == "category"
    linear, *_ = cost.time_figure([Timing(10, 30.0, 3), Timing(20, 100.0, 3)], Fit(1.5, 0.2, 0.0)).data
    assert (linear.y[0], linear.y[-1]) == pytest.approx((15, 30))


# --- meaning, tasks, embeddings ------------------------------------------------


def test_each_place_of_a_visitor_is_compared_with_each_sense_by_itself_and_not_with_another():
    pairs = np.array(np.triu_indices(4, k=1)).T  # 01 02 03 12 13 23
    by_layer = ByLayer(pairs, np.arange(12.0).reshape(2, 6), np.zeros((2, 4)))
    lines = meaning.layer_lines(by_layer, ["money", meaning.YOURS, meaning.YOURS, "money"])
    assert [(line.name, line.values.tolist(), line.count) for line in lines] == [
        ("the word in two sentences", [2.0, 8.0], 1), ("yours 1 and “money”", [2.0, 8.0], 2),
        ("yours 2 and “money”", [3.0, 9.0], 2)]


def test_two_places_of_a_visitor_are_no_pair_of_one_sense():
    pairs = np.array(np.triu_indices(5, k=1)).T  # 01 02 03 04 12 13 14 23 24 34
    by_layer = ByLayer(pairs, np.arange(10.0)[None], np.zeros((1, 5)))
    lines = meaning.layer_lines(by_layer, ["money", meaning.YOURS, meaning.YOURS, "money", "river"])
    assert [(line.name, line.values.tolist(), line.count, line.own, line.sense) for line in lines] == [
        ("same sense", [2.0], 1, 0, ""), ("different senses", [6.0], 2, 0, ""),
        ("yours 1 and “money”", [2.5], 2, 1, "money"), ("yours 1 and “river”", [6.0], 1, 1, "river"),
        ("yours 2 and “money”", [4.0], 2, 2, "money"), ("yours 2 and “river”", [8.0], 1, 2, "river")]


def test_places_of_a_visitor_alone_are_compared_with_one_another():
    pairs = np.array(np.triu_indices(3, k=1)).T
    by_layer = ByLayer(pairs, np.array([[1.0, 2.0, 6.0]]), np.zeros((1, 3)))
    (line,) = meaning.layer_lines(by_layer, [meaning.YOURS] * 3)
    assert (line.name, line.values.tolist(), line.count) == ("the word in two places", [3.0], 3)


def test_of_many_places_the_first_have_lines_of_their_own():
    pairs = np.array(np.triu_indices(9, k=1)).T
    by_layer = ByLayer(pairs, np.zeros((1, 36)), np.zeros((1, 9)))
    lines = meaning.layer_lines(by_layer, ["x", "x", *[meaning.YOURS] * 7])
    assert [line.own for line in lines] == [0, *range(1, meaning.MOST_OWN + 1)]


def test_a_static_vector_with_a_gap_is_not_drawn():
    baseline = RandomPairs(np.array([0.3, 0.2]), np.array([0.1, 0.1]), 7)
    assert len(meaning.layer_figure((), np.array([0.4, np.nan]), baseline).data) == 1


def test_the_third_sense_has_the_third_mark():
    assert [meaning._sense_look(n) for n in (2, 3, 4)] == [
        (theme.KINDS[2], "diamond"), (theme.KINDS[3], "triangle-up"), (theme.KINDS[4], "circle")]


def test_a_sentence_of_240_characters_is_whole_and_markup_is_shown():
    one = Occurrence("bank", 0, "<i> " * 60, 0, 3, (1,), np.zeros((2, 3)), np.zeros(3))
    assert meaning._wrapped(one).replace("<br>", " ").split(" ") == ["&lt;i&gt;"] * 60
    assert meaning._wrapped(one._replace(text="<i> " * 60 + "x")).endswith("…")


@pytest.mark.parametrize("before", [0, 60, 300])
def test_an_excerpt_knows_where_the_word_is(before):
    one = Occurrence("bank", 0, "a" * before + "bank" + "b" * 300, before, before + 4, (1,), np.zeros(1), np.zeros(1))
    text, start, end = meaning.excerpt(one)
    assert text[start:end] == "bank"
    assert len(text) <= 208


def test_the_title_of_a_matrix_is_shown_as_it_is():
    assert meaning.matrix_figure(np.eye(2), ["a", "b"], "a <b>").layout.title.text == "a &lt;b&gt;"


def test_maps_of_tasks_grow_with_their_rows_and_turn_the_names_of_many_columns():
    few, many = (tasks.label_figure(np.zeros((n, 3)), ["a"] * n, ["O", "B", "I"]).layout for n in (4, 5))
    assert (few.height, many.height) == (230, 230)
    assert (few.xaxis.tickangle, many.xaxis.tickangle) == (0, -45)
    assert (many.xaxis.title.text, many.yaxis.title.text) == ("token", "label")
    pairs = tasks.token_pairs_figure(np.zeros((3, 5)), list("abc"), list("defgh")).layout
    assert (pairs.height, pairs.xaxis.tickangle) == (170 + 3 * 26, -45)
    assert (pairs.xaxis.title.text, pairs.yaxis.title.text) == ("second sentence", "sentence")


def test_cosines_of_positions_travel_exactly_in_half_the_bytes():
    cosines = np.random.default_rng(4).uniform(-1, 1, (5, 5)).astype(np.float32)
    _, arrays = embeddings.similarity_data(cosines)
    assert arrays["cosine"].dtype == np.float32
    assert np.array_equal(arrays["cosine"], cosines[np.tril_indices(5)])
