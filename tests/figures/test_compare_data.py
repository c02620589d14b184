"""What the panels, cards and curves of One way, both ways are given, against counting by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bert_core.config import BertConfig
from bert_core.figures import compare, compare_cards, compare_curves, theme
from bert_core.measures.compare import Reading, allowed_pairs
from bert_core.measures.compare_pairs import Tally
from bert_core.measures.reveal import Curve, Step
from bert_core.measures.surprise import Surprise
from bert_core.tasks.vocabulary import Prediction
from tests.made import made_encoding, made_trace

TOKENS = ("[CLS]", "the", "old", "dog", "slept", "[SEP]")
PROBS = np.random.default_rng(4).dirichlet(np.ones(6), size=(2, 3, 6))  # (L, H, Tq, Tk)
LOGITS = np.zeros((6, 7))
RIGHT = BertConfig(num_hidden_layers=2, num_attention_heads=3, hidden_size=15, is_decoder=True,
                   reading_order="right-to-left")


@pytest.mark.parametrize(("more", "row"), [
    ({}, 2),  # under its own [MASK]
    ({"lm_logits": LOGITS, "attention": "causal"}, 1),
    ({"lm_logits": LOGITS, "attention": "causal", "config": RIGHT}, 4),
])
def test_a_word_is_guessed_from_its_own_row_or_from_the_one_that_was_read_before_it(more, row):
    trace, places = made_trace(TOKENS, attention_probs=PROBS, **more), (2, 3)
    assert compare.asking_row(trace, places) == row
    shares = compare.side_shares(trace, places)
    assert shares["left"] == pytest.approx(PROBS[:, :, row, 0] + PROBS[:, :, row, 1])
    assert shares["itself"] == pytest.approx(PROBS[:, :, row, 2] + PROBS[:, :, row, 3])
    assert shares["right"] == pytest.approx(PROBS[:, :, row, 4] + PROBS[:, :, row, 5])


def test_what_a_mask_allows_in_either_direction():
    both, left, right = (allowed_pairs(made_trace(TOKENS, kind, config), 1) for kind, config in (
        ("bidirectional", None), ("causal", None), ("causal", RIGHT)))
    assert both.all()
    assert left[2].tolist() == [True, True, True, False, False, False]
    assert right[2].tolist() == [True, False, True, True, True, False]  # [CLS], then from the end; [SEP] comes last
    assert right[0].tolist() == [True, *[False] * 5]
    assert right[5].all()


def test_a_panel_has_the_rows_it_draws_the_asked_head_and_where_it_looks():
    trace = made_trace(TOKENS, "causal", attention_probs=PROBS, lm_logits=LOGITS)
    arrays = compare.panel_arrays(trace, (4,), 1, 2, only_mask=False)
    words = compare.panel(trace, "left", (4,), 1, 2, only_mask=False)
    assert words["drawn"] == [0, 1, 2, 3, 4, 5]
    assert (words["place"], words["row"], words["layer"], words["head"]) == (4, 3, 1, 2)
    assert (words["what"], words["accent"], words["model"]) == ("layer 2, head 3", "oneway", "made")
    assert arrays["weights"] == pytest.approx(PROBS[1, 2])
    assert arrays["allowed"].tolist() == np.tril(np.ones((6, 6), int)).tolist()
    assert arrays["right"] == pytest.approx(PROBS[:, :, 3, 5])
    mask = compare.panel_arrays(trace, (4,), 1, 2, only_mask=True)
    assert mask["weights"].tolist() == mask["allowed"].tolist()
    assert compare.panel(trace, "both", (4,), 9, 9, only_mask=True)["what"] == "mask"
    assert compare.panel(trace, "both", (4,), 9, 9, only_mask=True)["accent"] == "both"
    assert compare.nearest_head(trace, 9, 9) == (1, 2)
    assert compare.nearest_head(trace, 0, 1) == (0, 1)
    assert compare.panel_arrays(trace, (4,), 9, 9, only_mask=False)["weights"] == pytest.approx(PROBS[1, 2])


def test_the_head_to_open_is_the_one_that_every_reader_uses_for_words():
    both, left = np.zeros((2, 3, 6, 6)), np.zeros((2, 3, 6, 6))
    both[..., 0] = left[..., 0] = 1.0  # all rest on [CLS]
    both[1, 2, 2:5], left[1, 2, 2:5] = ([0.5, 0.3, 0, 0, 0.2, 0], [0.6, 0.4, 0, 0, 0, 0])
    both[0, 1, 2:5], left[0, 1, 2:5] = ([0, 1, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0])  # more, and to one side only
    traces = made_trace(TOKENS, attention_probs=both), made_trace(TOKENS, "causal", attention_probs=left)
    assert compare.opening_head(traces) == (1, 2)
    assert compare.opening_head(traces[1:]) == (0, 1)
    assert compare.opening_head([traces[1], made_trace(TOKENS, "causal", attention_probs=left[:1])]) == (0, 1)
    assert compare.opening_head([made_trace(("[CLS]", "[SEP]"), attention_probs=np.full((2, 3, 2, 2), 0.5))]) == (0, 0)


def test_a_map_of_a_long_input_has_its_special_tokens():
    trace = made_trace(("[CLS]", *["a"] * 60, "[SEP]"))
    drawn = compare.drawn_positions(trace, (40,))
    assert drawn == [0, *range(24, 56), 61]


def test_inputs_are_cut_alike_where_their_pieces_stand_in_the_same_places():
    first, other = made_trace(TOKENS), made_trace(("[CLS]", "the", "old", "dogs", "slept", "[SEP]"))
    masked = replace(first, encoding=replace(first.encoding, tokens=("[CLS]", "the", "[MASK]", *TOKENS[3:])))
    assert compare.cut_alike([first, masked, other]) == [True, True, False]


# --- cards ---------------------------------------------------------------------


@pytest.mark.parametrize(("reader", "seen"), [
    ("both", "seen seen"), ("elmo", "seen seen"), ("left", "seen unseen"), ("hidden", "seen unseen"),
    ("right", "unseen seen"),
])
def test_a_strip_shows_what_each_reader_knows(reader, seen):
    strip = compare_cards.strip(made_encoding(TOKENS), reader, (2, 3))
    before, after = seen.split()
    assert [(piece["t"], piece["k"]) for piece in strip] == [
        ("the", before), ("?", "gap"), ("?", "gap"), ("slept", after)]


def reading(reader: str, chances, truth=(1,), pieces=1) -> Reading:
    """A reading of position 2 with these probabilities over a vocabulary."""
    row = np.log(np.array(chances))
    return Reading(reader, ("m",), (2,), row, truth, tuple(float(row[i]) for i in truth[:pieces]))


def test_the_truth_has_its_probability_and_its_place_in_the_list():
    assert compare_cards.truth(reading("both", [0.5, 0.2, 0.3]), "dog") == {
        "word": "dog", "p": pytest.approx(0.2), "rank": 3, "pieces": 1}
    tied = reading("both", [0.25, 0.25, 0.5])
    assert compare_cards.truth(tied, "dog")["rank"] == 2  # as good as another piece: not behind it
    two = reading("both", [0.5, 0.2, 0.3], (1, 0), pieces=2)
    assert compare_cards.truth(two, "dog") == {"word": "dog", "p": pytest.approx(0.1), "rank": 3, "pieces": 2}
    assert compare_cards.truth(reading("both", [0.5, 0.5], ()), "")["why"].startswith("you typed [MASK]")
    assert compare_cards.truth(reading("both", [0.5, 0.5], ()), "dog")["why"] == "not in the vocabulary"
    assert "more than 12 pieces" in compare_cards.truth(reading("both", [0.5, 0.5], (1, 0), pieces=0), "dog")["why"]


@pytest.mark.parametrize(("reader", "accent"), [
    ("both", "both"), ("left", "oneway"), ("hidden", "oneway"), ("right", "oneway"), ("elmo", "neutral"),
])
def test_a_card_marks_the_true_word_among_the_guesses(reader, accent):
    one = replace(reading(reader, [0.5, 0.2, 0.3]), models=("m", "n"))
    guesses = (Prediction("cat", 0, 0.5), Prediction("dog", 1, 0.12345678))
    card = compare_cards.card(one, guesses, made_encoding(TOKENS), "dog")
    assert card["rows"] == [{"t": "cat", "p": 0.5, "hit": False}, {"t": "dog", "p": 0.123457, "hit": True}]
    assert (card["accent"], card["models"], card["truth"]["rank"]) == (accent, "m × n", 3)
    unknown = compare_cards.card(replace(one, truth=(), chain=()), guesses, made_encoding(TOKENS), "")
    assert [row["hit"] for row in unknown["rows"]] == [False, False]


def test_a_missing_reader_has_a_card_with_the_reason():
    card = compare_cards.gap_card("right", "no such model")
    assert (card["title"], card["note"], card["truth"], card["rows"]) == (
        "Right to left", "no such model", None, [])


def line_of(both: float, stands_last: bool = False, **others: float) -> str:
    known = {name: reading(name, [1 - p, p]) for name, p in {"both": both, **others}.items()}
    return compare_cards.side_by_side_line(known, "dog", stands_last)


def test_the_line_compares_bert_with_itself_and_names_the_one_way_reader_beside_it():
    line = line_of(0.6, before=0.1, left=0.2, hidden=0.7)
    assert line == ("Here the right side helps: BERT gives “dog” **60 %** with the words after the gap and **10 %** "
                    "without them (“BERT, right side hidden” also keeps the words before the gap from looking right: "
                    "70 %); “GPT, left only” gives it **20 %**.")
    assert line_of(0.3, before=0.2001, left=0.01).startswith("Here the right side hardly matters")  # nearer than ALIKE
    assert line_of(0.3, before=0.1999, left=0.3).startswith("Here the right side helps")
    assert line_of(0.2001, before=0.3, left=0.9).startswith("Here the right side hardly matters")
    assert line_of(0.1999, before=0.3, left=0.01).startswith("Here the right side misleads")
    assert "“BERT, right side hidden” gives it **70 %**" in line_of(0.1, before=0.1, hidden=0.7)
    assert line_of(0.6) == line_of(0.6, before=0.1) == ""
    assert compare_cards.side_by_side_line({"left": reading("left", [0.5, 0.5])}, "dog") == ""
    assert line_of(0.0099, before=0.0001, left=0.0001).startswith("Nobody")
    assert line_of(0.0001, before=0.0001, left=0.02).startswith("Here the right side hardly matters")
    assert line_of(0.0101, before=0.0001, left=0.0001).startswith("Here the right side helps")
    assert line_of(0.9996, before=0.68, left=0.1).startswith("Here the right side helps")  # doubt of 32 % gone
    assert line_of(0.8, before=0.91, left=0.1).startswith("Here the right side misleads")


def test_the_right_side_gets_no_credit_where_there_is_none_or_nobody_knows():
    line = line_of(0.3, stands_last=True, left=0.1)
    assert line.startswith("Nothing stands after the gap")
    assert "right side" not in line
    unknown = line_of(0.3, left=0.1)  # a model that can't be kept from looking
    assert "two models" in unknown
    assert "helps" not in unknown


def test_the_argument_is_weighed_in_nats():
    four = {name: reading(name, [1 - p, p])
            for name, p in {"both": 0.4, "elmo": 0.1, "left": 0.2, "right": 0.3}.items()}
    line = compare_cards.elmo_line(four, "dog")
    assert "**for** the paper" in line
    assert f"({np.log(4):.1f} nats apart)" in line
    assert "20 % from the left, 30 % from the right, **10 %** from the two joined and **40 %** both ways" in line
    alike = compare_cards.elmo_line(four | {"elmo": reading("elmo", [0.65, 0.35])}, "dog")
    assert alike.startswith("Neither for nor against")
    assert compare_cards.elmo_line({n: r for n, r in four.items() if n != "left"}, "dog") == ""
    assert compare_cards.elmo_line(four | {"left": reading("left", [0.5, 0.5], ())}, "dog") == ""


# --- curves --------------------------------------------------------------------

CURVES = (
    Curve("left", (Step(0, "", 0.1, "cat", False), Step(1, "the", 0.2, "dog", True))),
    Curve("both", (Step(0, "", 0.1, "cat", False), Step(2, "the <b>", 0.7, "dog", True),
                   Step(3, "of", 0.6, "x", False))),
)


def test_reveal_draws_probability_against_words_with_a_ring_at_each_flip():
    right = compare_curves.reveal_figure([replace(CURVES[0], side="right")]).data[0]
    assert (right.name, right.line.color, right.line.dash) == ("right side only", theme.ONE_WAY, "dash")
    left, both, flips = compare_curves.reveal_figure(CURVES).data
    assert (list(left.x), list(left.y)) == ([0, 1], [0.1, 0.2])
    assert (list(both.x), list(both.y)) == ([0, 2, 3], [0.1, 0.7, 0.6])
    assert (left.line.color, both.line.color) == (theme.ONE_WAY, theme.BOTH_WAYS)
    assert [list(row) for row in both.customdata] == [["nothing", "cat"], ["the &lt;b&gt;", "dog"], ["of", "x"]]
    assert (list(flips.x), list(flips.y)) == ([1, 2, 3], [0.2, 0.7, 0.6])
    assert list(flips.text) == ["→ dog", "→ dog", "→ x"]
    assert len(compare_curves.reveal_figure([replace(CURVES[0], steps=CURVES[0].steps[:1])]).data) == 1


@pytest.mark.parametrize(("words", "tick"), [(26, 1), (27, None)])
def test_each_word_has_a_tick_while_there_is_room(words, tick):
    curve = Curve("both", (Step(0, "", 0.1, "cat", False), Step(words, "the", 0.2, "cat", False)))
    figure = compare_curves.reveal_figure([curve])
    assert figure.layout.xaxis.dtick == tick
    assert len(figure.data) == 1
    assert compare_curves.reveal_figure([CURVES[0], curve]).layout.xaxis.dtick == tick  # the longest curve counts


def test_a_long_revealed_text_is_shortened_between_words():
    long = " ".join(["word"] * 20)
    shown = compare_curves.last_words(Step(20, long, 0.5, "x", False))
    assert shown.endswith("word …")
    assert 50 < len(shown) <= compare_curves.LONGEST


def test_surprise_has_a_line_for_each_reader_of_the_same_tokens():
    nats = np.array([1.5, np.nan])
    found = [Surprise("both", ("m",), ("dog", "<s>"), nats, 2, (3, 5)),
             Surprise("right", ("r",), ("dog", "<s>"), nats + 1, 2, (3, 5)),
             Surprise("left", ("l",), ("do", "g"), nats, 2, (3, 4))]
    figure = compare_curves.surprise_figure(found)
    assert [trace.name for trace in figure.data] == ["BERT, both ways", "Right to left"]
    assert list(figure.data[0].x) == ["3 dog", "5 &lt;s&gt;"]
    assert list(figure.data[1].y) == pytest.approx([2.5, np.nan], nan_ok=True)
    assert figure.data[0].connectgaps is False
    assert [(trace.line.color, trace.line.dash) for trace in figure.data] == [
        (theme.BOTH_WAYS, "solid"), (theme.ONE_WAY, "dash")]
    assert figure.layout.yaxis.title.text == "surprise, nats"
    assert not figure.layout.shapes
    (stripe,) = compare_curves.surprise_figure(found, chosen=(4, 5)).layout.shapes
    assert (stripe.x0, stripe.x1, stripe.fillcolor) == (0.5, 1.5, theme.MASK)  # the second, whose position is 5


def test_pairs_stand_at_their_shares_with_both_whiskers():
    parts = {"bert": {"agreement": Tally(3, 4), "order": Tally(0, 2)}, "gpt": {"order": Tally(1, 2)}}
    bert, gpt = compare_curves.pairs_figure(parts, {"bert": "both", "gpt": "left"}).data
    assert (list(bert.x), list(bert.y)) == ([0.75, 0], ["agreement", "order"])
    assert (list(gpt.x), list(gpt.y)) == ([0.5], ["order"])
    low, high = Tally(3, 4).interval
    assert (bert.x[0] - bert.error_x.arrayminus[0], bert.x[0] + bert.error_x.array[0]) == pytest.approx((low, high))
    assert (bert.marker.color, gpt.marker.color) == (theme.BOTH_WAYS, theme.ONE_WAY)
    assert [list(row) for row in bert.customdata] == [[3, 4], [0, 2]]
    figure = compare_curves.pairs_figure(parts, {"bert": "both", "gpt": "left"})
    assert (figure.layout.shapes[0].x0, figure.layout.shapes[0].x1) == (0.5, 0.5)  # guessing
    assert tuple(figure.layout.xaxis.range) == (0, 1.04)
    assert figure.layout.xaxis.title.text.startswith("judged right")


def test_moved_keys_are_bars_by_layer_counted_from_one():
    figure = compare_curves.prefix_figure({"bert": np.array([0.5, 2.0]), "gpt": np.zeros(2)},
                                          {"bert": "both", "gpt": "left"})
    assert [list(bar.x) for bar in figure.data] == [["1", "2"]] * 2
    assert figure.layout.yaxis.title.text == "largest change of a prefix key"
    assert list(figure.data[0].y) == [0.5, 2.0]
    assert [bar.marker.color for bar in figure.data] == [theme.BOTH_WAYS, theme.ONE_WAY]


def test_the_name_of_a_model_is_no_html():
    looks = {"<b>m</b>": "both"}
    for figure in (compare_curves.prefix_figure({"<b>m</b>": np.ones(2)}, looks),
                   compare_curves.pairs_figure({"<b>m</b>": {"agreement": Tally(3, 4)}}, looks)):
        assert figure.data[0].name == "&lt;b&gt;m&lt;/b&gt;"
        assert "<b>" not in figure.data[0].hovertemplate
