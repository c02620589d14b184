"""Charts hold the numbers they are given: the right axis, order, scale and colour of each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest

from bert_core.config import BertConfig
from bert_core.figures import class_poll, cls, cost, family, finetune, meaning, tasks, theme
from bert_core.measures import poll
from bert_core.measures.cls import Arrival
from bert_core.measures.cost import Fit, Timing
from bert_core.measures.meaning import Occurrence, Projection
from bert_core.measures.probe import Probe
from bert_core.measures.similarity import RandomPairs
from tests.made import made_trace

# --- [CLS] ---------------------------------------------------------------------


def test_layers_begin_with_the_input():
    assert cls.layer_names(3) == ["input", "1", "2"]
    assert cls.numbered(["a", "<"], 1) == ["1 a", "2 &lt;"]


def test_a_probe_s_reading_stands_beside_how_often_it_is_right():
    probe = Probe(("no", "yes"), (), np.array([0.5, 0.75]), np.array([0.1, 0.2]), 40)
    right, reading = cls.probe_figure(probe, np.array([0.3, 0.9])).data
    assert (list(right.y), list(right.error_y.array)) == ([0.5, 0.75], [0.1, 0.2])
    assert (list(reading.x), list(reading.y)) == (["input", "1"], [0.3, 0.9])
    sure = cls.probe_figure(probe._replace(accuracy=np.array([0.97, 1.0])), np.array([0.3, 0.9])).data[0]
    assert list(sure.error_y.array) == pytest.approx([0.03, 0.0])  # no share is above 1
    assert list(sure.error_y.arrayminus) == [0.1, 0.2]
    assert right.name.startswith("share right of 40 shipped<br>sentences it was not fitted<br>on (bars: ")
    assert "“yes”" in reading.name
    assert (right.line.color, reading.line.color) == (theme.NEUTRAL, theme.BOTH_WAYS)
    layout = cls.probe_figure(probe, np.array([0.3, 0.9])).layout
    assert (layout.shapes[0].y0, layout.yaxis.title.text) == (0.5, "probability; share right")
    assert layout.yaxis.range == pytest.approx((-0.02, 1.02))


def test_what_cls_looks_at_is_a_map_of_rows_against_tokens():
    weights = np.arange(6).reshape(2, 3) / 10
    heat = cls.attention_figure(weights, ["[CLS]", "a", "a"], ["1", "2"], "layer").data[0]
    assert np.array_equal(heat.z, weights)
    assert (list(heat.x), list(heat.y)) == (["0 [CLS]", "1 a", "2 a"], ["1", "2"])
    assert (heat.zmin, heat.zmax) == (0, 1)
    assert [list(stop) for stop in heat.colorscale] == theme.PROBABILITY


@pytest.mark.parametrize(("count", "gap", "joined"), [(64, 1, 1), (65, 0, 1), (160, 0, 1), (161, 0, 2), (414, 0, 3)])
def test_no_column_of_what_cls_looks_at_is_thinner_than_it_can_be_drawn(count, gap, joined):
    """A gap of a pixel would take all of a thin column, and plotly leaves out what is narrower than a pixel."""
    weights = np.random.default_rng(2).dirichlet(np.ones(count), size=2)
    heat = cls.attention_figure(weights, ["<s>"] * count, ["1", "2"], "layer").data[0]
    assert (heat.xgap, len(heat.x)) == (gap, -(-count // joined))
    assert len(set(heat.x)) == len(heat.x) <= 160
    whole = [weights[:, start:start + joined].max(axis=1) for start in range(0, count, joined)]
    assert np.array_equal(heat.z, np.transpose(whole))


def test_a_column_of_several_tokens_says_which_it_holds():
    tokens = ["[CLS]", "<", *["a"] * 410, "b", "[SEP]"]
    heat = cls.attention_figure(np.ones((2, 414)), tokens, ["1", "2"], "head").data[0]
    assert (heat.x[0], heat.x[-1]) == ("0–2 [CLS] …", "411–413 a …")
    assert [row[0] for row in heat.customdata] == ["0–2 [CLS] &lt; a"] * 2
    assert heat.hovertemplate == "head %{y} → %{customdata}: largest %{z:.3f}<extra></extra>"
    one = cls.attention_figure(np.ones((1, 2)), ["[CLS]", "<"], ["1"], "head").data[0]
    assert (list(one.x), list(one.customdata[0])) == (["0 [CLS]", "1 &lt;"],) * 2
    assert "largest" not in one.hovertemplate


def test_the_first_row_of_every_map_is_on_top():
    maps = (cls.attention_figure(np.eye(2), ["a", "b"], ["1", "2"], "layer"),
            tasks.label_figure(np.eye(2), ["a", "b"], ["O", "B"]),
            tasks.token_pairs_figure(np.eye(2), ["a", "b"], ["c", "d"]),
            meaning.matrix_figure(np.eye(2), ["a", "b"], "title"),
            finetune.confusion_figure(np.eye(2), ["a", "b"]),
            finetune.attention_figure(np.zeros((2, 1, 2, 2)), ["a", "b"]),
            family.attention_figure(made_trace(("a", "b"), attention_probs=np.zeros((2, 1, 2, 2)))))
    assert {figure.layout.yaxis.autorange for figure in maps} == {"reversed"}


def test_where_a_change_arrives_is_a_line_from_nought():
    figure = cls.arrival_figure(Arrival(np.array([0.0, 0.2, 0.1]), np.array([0, 1e-5, 0.1]), np.array([0, 5e-5, 1])))
    assert (list(figure.data[0].x), list(figure.data[0].y)) == (["input", "1", "2"], [0.0, 0.2, 0.1])
    assert (figure.data[0].fill, figure.layout.yaxis.rangemode) == ("tozeroy", "tozero")
    assert list(figure.data[1].y) == [1, 1, 1]  # two unrelated sentences
    assert figure.data[0].customdata.tolist() == [[0, 0], [1e-5, 5e-5], [0.1, 1]]


# --- tasks ---------------------------------------------------------------------


def test_labels_are_rows_and_tokens_columns_counted_behind_cls():
    probabilities = np.array([[0.9, 0.1], [0.3, 0.7], [0.5, 0.5]])  # (T, C)
    heat = tasks.label_figure(probabilities, ["anna", "sang", "."], ["O", "B-PER"]).data[0]
    assert heat.z[1].tolist() == [0.1, 0.7, 0.5]
    assert (list(heat.x), list(heat.y)) == (["1 anna", "2 sang", "3 ."], ["O", "B-PER"])
    assert (heat.zmin, heat.zmax) == (0, 1)
    assert [list(stop) for stop in heat.colorscale] == theme.PROBABILITY


def test_labels_are_shown_as_they_are_and_those_of_one_name_are_rows_of_their_own():
    heat = tasks.label_figure(np.eye(3), list("abc"), ["B-<b>PER</b>", "A&B", "A&B"]).data[0]
    assert list(heat.y) == ["B-&lt;b&gt;PER&lt;/b&gt;", "A&amp;B (1)", "A&amp;B (2)"]


def test_pairs_of_tokens_have_the_first_sentence_as_rows_on_a_signed_scale():
    cosines = np.array([[0.1, 0.2, -0.3], [0.4, 0.5, 0.6]])
    heat = tasks.token_pairs_figure(cosines, ["1 a", "2 <"], ["1 c", "2 d", "3 e"]).data[0]
    assert np.array_equal(heat.z, cosines)
    assert (list(heat.y), list(heat.x)) == (["1 a", "2 &lt;"], ["1 c", "2 d", "3 e"])
    assert (heat.zmin, heat.zmax) == (-1, 1)
    assert [list(stop) for stop in heat.colorscale] == theme.SIGNED


def test_a_map_of_cosines_above_nought_has_colours_of_its_own_range():
    heat = tasks.token_pairs_figure(np.array([[0.46, 0.6], [0.84, 0.5]]), ["a", "b"], ["c", "d"]).data[0]
    assert (heat.zmin, heat.zmax) == (0.46, 0.84)
    assert [list(stop) for stop in heat.colorscale] == theme.RISING
    assert tasks.own_range(np.array([[0.2, 0.2]])) is None  # no range to run through
    assert tasks.own_range(np.array([[-0.01, 0.2]])) is None


def pair(model: str, alike: float, unlike: float, own: float = 0.5) -> tasks.PairCosines:
    return tasks.PairCosines(model, own, alike, unlike, 0.7)


def test_what_pairs_say_of_the_tuning_follows_from_the_cosines():
    tuned, other = pair("tuned", 0.8, 0.4), pair("other", 0.6, 0.9)
    assert tasks.order_line(tuned, other) == (
        "tuned gives the pair that is alike 0.80 and the pair that is not 0.40; other gives the one 0.60 and the other "
        "0.90. Only tuned has them in the right order: that is what the tuning did.")
    assert "Only other has them in the right order, which the tuning did not" in tasks.order_line(
        pair("tuned", 0.4, 0.8), pair("other", 0.9, 0.8))
    assert tasks.order_line(other, pair("third", 0.1, 0.2)).endswith("Neither has them in the right order.")
    assert tasks.order_line(tuned, pair("other", 0.9, 0.8)).endswith("Both have them in the right order; tuned sets "
                                                                     "them further apart.")
    assert tasks.order_line(tuned, None).endswith("0.40: the right order.")
    assert tasks.order_line(other, None).endswith("0.90: the wrong order.")


def test_where_a_pair_stands_among_the_shipped_ones():
    known = [pair("a", 0.8, 0.4, 0.9), pair("b", 0.6, 0.9, -0.1), pair("c", 0.6, 0.9, 0.7)]
    assert tasks.own_line(known) == ("Your pair beside the two shipped ones: a gives it 0.90, above both; "
                                     "b gives it −0.10, below both; c gives it 0.70, between the two.")


# --- meaning -------------------------------------------------------------------


def drawn_lines(to_static=(0.5, 0.4), lines=()) -> go.Figure:
    baseline = RandomPairs(np.array([0.3, 0.2]), np.array([0.1, 0.4]), 2000)
    return meaning.layer_figure(lines, np.array(to_static), baseline)


def test_lines_by_layer_stand_over_the_random_pair_with_its_spread():
    same = meaning.Line("same sense", np.array([0.9, 0.8]), 3)
    apart = meaning.Line("different senses", np.array([0.7, 0.1]), 4)
    mine, more = (meaning.Line(f"your sentence and “{name}”", np.array([0.6, 0.5]), 2, 1, name) for name in ("x", "y"))
    figure = drawn_lines(lines=(same, apart, mine, more))
    random, static, *others = figure.data
    assert (list(random.y), list(random.error_y.array)) == ([0.3, 0.2], [0.1, 0.4])
    assert "2,000 pairs" in random.name
    assert (list(static.y), static.line.color) == ([0.5, 0.4], theme.TOKEN)
    assert [(line.name, line.line.color) for line in others] == [
        ("same sense (3 pairs)", theme.SAME_SENSE), ("different senses (4 pairs)", theme.OTHER_SENSE),
        (mine.name, theme.KINDS[0]), (more.name, theme.KINDS[1])]
    assert [line.marker.symbol for line in others] == ["circle", "circle-open", *meaning.SYMBOLS[:2]]
    assert [line.line.dash for line in others] == ["solid", "solid", "dashdot", "dashdot"]
    assert {line.mode for line in others} == {"lines+markers"}
    assert list(others[1].y) == [0.7, 0.1]
    assert figure.layout.yaxis.range == pytest.approx((-0.23, 1.03))  # 0.2 - 0.4, and a little room


def test_several_places_of_a_visitor_have_the_colour_of_the_sense_and_their_number_at_the_end():
    pair = meaning.Line("the word in two places", np.array([0.9, 0.8]), 1)
    lines = [meaning.Line(f"yours {own} and “{sense}”", np.array([0.6, 0.5]), 2, own, sense)
             for own in (1, 2) for sense in ("x", "y")]
    figure = drawn_lines(lines=(pair, *lines))
    pairs, *own = figure.data[2:]
    assert (pairs.name, pairs.mode) == ("the word in two places (1 pair)", "lines+markers")
    assert [line.line.color for line in own] == [*theme.KINDS[:2], *theme.KINDS[:2]]
    assert [[text.strip() for text in line.text] for line in own] == [["", "1"], ["", "1"], ["", "2"], ["", "2"]]
    assert len(own[0].text[1]) < len(own[2].text[1])  # at one height they stand beside each other
    assert {line.mode for line in own} == {"lines+markers+text"}
    one, plain = drawn_lines(lines=lines[:2]).layout, drawn_lines(lines=(pair,)).layout
    assert one.height == plain.height < figure.layout.height
    assert one.margin.r == plain.margin.r < figure.layout.margin.r


def test_without_a_static_vector_there_is_no_line_of_it_and_nought_is_always_seen():
    figure = meaning.layer_figure((), np.array([np.nan, np.nan]),
                                  RandomPairs(np.array([0.3, 0.6]), np.array([0.1, 0.1]), 5))
    assert len(figure.data) == 1
    assert figure.layout.yaxis.range == pytest.approx((-0.02, 1.03))
    assert drawn_lines((0.5, -0.9)).layout.yaxis.range[0] == pytest.approx(-0.93)


def test_the_map_has_a_mark_for_each_sense_and_a_star_for_the_visitor():
    def at(n: int) -> Occurrence:
        return Occurrence("bank", n, f"sentence <{n}> of a bank", 16, 20, (4,), np.zeros((2, 3)), np.zeros(3))

    points = Projection(np.array([[1.0, 2], [3, 4], [5, 6], [7, 8]]), np.array([0.625, 0.25]))
    figure = meaning.map_figure(points, [at(n) for n in range(4)], ["river", meaning.YOURS, "money", "river"])
    money, river, mine = figure.data  # by name, as in the chart by layer
    assert [trace.name for trace in figure.data] == ["money", "river", "your sentence"]
    assert (list(river.x), list(river.y), list(money.x), list(mine.y)) == ([1, 7], [2, 8], [5], [4])
    assert river.customdata[1] == "sentence &lt;3&gt; of a bank"
    assert ([*money.text], [*river.text], [*mine.text]) == ([" 3"], [" 1", " 4"], [" 2"])  # as in the list below it
    assert (mine.marker.symbol, mine.marker.color) == ("star", theme.NEUTRAL)
    assert (money.marker.color, river.marker.color) == theme.KINDS[:2]
    assert (money.marker.symbol, river.marker.symbol) == meaning.SYMBOLS[:2]
    assert (figure.layout.yaxis.scaleanchor, figure.layout.yaxis.scaleratio) == ("x", 1)
    assert figure.layout.xaxis.title.text == "first component<br>(62 % of the variance)"
    assert figure.layout.yaxis.title.text == "second component<br>(25 % of the variance)"


def test_a_long_sentence_is_shown_around_its_word():
    text = "a " * 200 + "bank" + " b" * 200
    shown = meaning._wrapped(Occurrence("bank", 0, text, 400, 404, (4,), np.zeros((2, 3)), np.zeros(3)))
    assert shown.startswith("… a")
    assert shown.endswith("b …")
    assert "bank" in shown
    assert max(len(line) for line in shown.split("<br>")) <= 48
    early = meaning._wrapped(Occurrence("a", 0, text, 0, 1, (1,), np.zeros((2, 3)), np.zeros(3)))
    assert early.startswith("… a a")


@pytest.mark.parametrize(("value", "written"), [
    (0.474, ".47"), (-0.05, "−.05"), (0.996, ">.99"), (-0.999, "<−.99"), (0.9999999, "1"), (-1.0, "−1"), (0.0, ".00"),
    (-0.004, ".00"), (1.47, "1.47"),
    (10.05, "10.05"), (-10.165, "−10.16"), (100.4, "100.40"),
])
def test_cosines_are_short(value, written):
    assert meaning.short_number(value) == written


@pytest.mark.parametrize(("count", "written"), [(9, 81), (10, 0)])
def test_a_matrix_has_numbers_while_there_is_room(count, written):
    figure = meaning.matrix_figure(np.eye(count), [str(n) for n in range(count)], "title")
    assert sum(len(trace.x) for trace in figure.data[1:]) == written
    assert (figure.data[0].zmin, figure.data[0].zmax) == (-1, 1)


# --- cost and family -----------------------------------------------------------


def test_where_the_curves_cross_and_positions_end_is_marked():
    figure = cost.work_figure(BertConfig())
    at = {note.text.strip(): 10 ** note.x for note in figure.layout.annotations}
    assert at == {name: pytest.approx(length) for name, length in (
        ("n = I", 3072), ("n = I − 2D", 1536), ("positions end at 512", 512))}
    assert sorted(shape.x0 for shape in figure.layout.shapes) == [512, 1536, 3072]
    long = cost.memory_figure(replace(BertConfig(), max_position_embeddings=4096))
    assert not long.layout.shapes


def test_measured_times_stand_beside_both_parts_of_the_fit():
    linear, square, both, measured = cost.time_figure(
        [Timing(10, 30.0, 3), Timing(20, 100.0, 1)], Fit(1.0, 0.2, 0.0)).data
    assert (list(measured.x), list(measured.y)) == ([10, 20], [30.0, 100.0])
    assert list(measured.customdata) == ["3 runs", "1 run"]
    assert (linear.x[0], linear.x[-1]) == (10, 20)
    assert (linear.y[-1], square.y[-1], both.y[-1]) == pytest.approx((20, 80, 100))
    bar = cost.batch_figure([Timing(1, 3.0, 2), Timing(4, 6.0, 1)]).data[0]
    assert (list(bar.x), list(bar.customdata)) == (["1", "4"], [[3.0, "2 runs"], [6.0, "1 run"]])


def test_parts_of_the_treemap_have_the_colour_of_their_kind_and_their_share():
    nodes = family.anatomy_info(BertConfig(), ("pooler", "mlm"))
    drawn = family.anatomy_figure(nodes).data[0]
    colour = dict(zip(drawn.ids, drawn.marker.colors, strict=True))
    share = {key: row[1] for key, row in zip(drawn.ids, drawn.customdata, strict=True)}
    parts = {node.label: node for node in nodes if node.parent not in ("", "all")}
    assert colour[parts["word embeddings"].key] == theme.TOKEN
    assert colour[parts["position embeddings"].key] == theme.POSITION
    assert colour[parts["segment embeddings"].key] == theme.SEGMENT
    assert colour["all"] == colour["layer 1"] == family._GROUP
    assert colour["layer 1/attention query"] != colour["layer 1/feed-forward in"] == colour["layer 1/output LayerNorm"]
    assert share["all"] == 100
    assert share["layer 1/feed-forward in"] == pytest.approx(100 * (768 * 3072 + 3072) / nodes[0].count)


def test_repeated_tokens_stay_apart_in_the_map_of_the_family():
    probs = np.random.default_rng(1).dirichlet(np.ones(3), size=(2, 5, 3))
    heat = family.attention_figure(made_trace(("a", "<", "a"), attention_probs=probs)).data[0]
    assert heat.z == pytest.approx(probs[1].mean(axis=0))
    assert list(heat.x) == list(heat.y) == ["0 a", "1 &lt;", "2 a"]


# --- class and fine-tuning -----------------------------------------------------


def test_the_poll_has_shares_and_probabilities_side_by_side():
    figure = class_poll.poll_figure([poll.Guess("dog", 0.75, 0.2), poll.Guess("<b>", 0.25, None)], "m<")
    shares, model = figure.data
    assert (list(shares.y), list(shares.x), list(model.x)) == (["dog", "&lt;b&gt;"], [0.75, 0.25], [0.2, None])
    assert (model.name, tuple(figure.layout.xaxis.range)) == ("m&lt;", (0, 1))
    assert (shares.marker.color, model.marker.color) == (class_poll.PEOPLE, theme.BOTH_WAYS)
    assert figure.layout.yaxis.autorange == "reversed"


def test_labels_that_would_overlap_are_joined_and_no_others():
    assert finetune.named_levels({"words": 0.8, "lstm": 0.7}, ("chance", 0.25)) == [
        ("bag of words 80 %", 0.8), ("LSTM 70 %", 0.7), ("chance 25 %", 0.25)]
    assert finetune.named_levels({"words": 0.5, "lstm": 0.8}, ("chance", 0.46)) == [
        ("LSTM 80 %", 0.8), ("", 0.5), ("bag of words 50 %, chance 46 %", 0.46)]


def test_a_class_nobody_had_is_a_row_of_noughts():
    assert finetune.confusion_figure(np.array([[2, 2], [0, 0]]), ["a", "b"]).data[0].z.tolist() == [[0.5, 0.5], [0, 0]]


def test_the_space_has_one_scale_on_both_axes_and_a_colour_a_class():
    vectors = np.random.default_rng(3).normal(size=(9, 4))
    figure = finetune.space_figure(vectors, np.arange(9), [f"<{n}>" for n in range(9)], [f"<{n}>" for n in range(9)])
    assert (figure.layout.yaxis.scaleanchor, figure.layout.yaxis.scaleratio) == ("x", 1)
    assert [trace.marker.color for trace in figure.data] == [*theme.KINDS, theme.KINDS[0]]
    assert (figure.data[2].name, figure.data[2].text) == ("&lt;2&gt;", ("&lt;2&gt;",))
    places = finetune.main_axes(vectors)
    distances = [np.linalg.norm(table[0] - table[1:], axis=1) for table in (places, vectors)]
    assert (distances[0] <= distances[1] + 1e-5).all()
    assert [trace.x[0] for trace in figure.data] == pytest.approx(places[:, 0])
    assert [trace.y[0] for trace in figure.data] == pytest.approx(places[:, 1])


# --- theme ---------------------------------------------------------------------


def test_a_colour_in_html_follows_the_page():
    assert theme.css(theme.ONE_WAY) == "light-dark(#D55E00, #F0894A)"
    assert theme.css("#123456") == "light-dark(#123456, #123456)"


def test_titles_go_to_their_own_axes():
    layout = theme.style(go.Figure(), "words", "nats", 333).layout
    assert (layout.xaxis.title.text, layout.yaxis.title.text, layout.height) == ("words", "nats", 333)
    assert (layout.xaxis.zeroline, layout.xaxis.automargin) == (False, True)


def test_luminance_is_that_of_wcag():
    found = theme._luminance([[255, 255, 255], [0, 0, 0], [255, 0, 0], [0, 255, 0], [10, 10, 10]])
    assert found == pytest.approx([1, 0, 0.2126, 0.7152, 10 / 255 / 12.92])
