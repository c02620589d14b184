"""Pieces to words to entities, and spans of answers, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from bert_core.tasks import answers, entities, support
from bert_core.tasks.answers import Window
from tests.made import made_trace

LABELS = ("O", "B-PER", "I-PER")
TEXT = "Anna Smith sang ."
#: (piece, start, end, word, probabilities): the second word in two pieces.
PIECES = (("anna", 0, 4, 0, (0.1, 0.8, 0.1)), ("smi", 5, 8, 1, (0.3, 0.1, 0.6)), ("##th", 8, 10, 1, (0.9, 0.1, 0.0)),
          ("sang", 11, 15, 2, (0.5, 0.3, 0.2)), (".", 16, 17, 3, (1.0, 0.0, 0.0)))


def tokens() -> list[entities.TokenLabel]:
    return [entities._labelled(piece, (start, end), word, np.array(chances), LABELS)
            for piece, start, end, word, chances in PIECES]


@pytest.mark.parametrize(("aggregation", "second"), [
    ("first", (0.3, 0.1, 0.6)), ("average", (0.6, 0.1, 0.3)), ("max", (0.9, 0.1, 0.0)),
])
def test_the_pieces_of_a_word_agree(aggregation, second):
    words = entities.merge_words(TEXT, tokens(), LABELS, aggregation)
    assert [(word.token, word.start, word.end) for word in words] == [
        ("Anna", 0, 4), ("Smith", 5, 10), ("sang", 11, 15), (".", 16, 17)]
    assert words[1].probabilities == pytest.approx(second)
    assert words[1].label == LABELS[int(np.argmax(second))]
    assert words[1].probability == pytest.approx(max(second))
    assert entities.merge_words(TEXT, tokens(), LABELS, "simple") == tuple(tokens())


def test_an_entity_s_score_is_the_mean_of_its_words():
    words = entities.merge_words(TEXT, tokens(), LABELS, "first")
    (found,) = entities.group_entities(TEXT, words)
    assert (found.text, found.label, found.start, found.end) == ("Anna Smith", "PER", 0, 10)
    assert found.score == pytest.approx(0.7)


@pytest.mark.parametrize("aggregation", entities.AGGREGATIONS)
def test_a_word_of_spaces_alone_is_none(aggregation):
    text = "Anna   Smith"
    found = [entities._labelled(piece, span, n, np.array([0.1, 0.1, 0.8]), LABELS)
             for n, (piece, span) in enumerate([("Anna", (0, 4)), ("\u0120", (4, 6)), ("\u0120Smith", (6, 12))])]
    words = entities.merge_words(text, found, LABELS, aggregation)
    assert [word.start for word in words] == [0, 6]
    assert [one.text for one in entities.group_entities(text, words)] == ["Anna   Smith"]
    assert entities.merge_words(text, found[1:2], LABELS, aggregation) == ()


def labelled(*labels: str) -> list[tuple[str, str]]:
    """Entities of words 'a b c ...' that have these labels."""
    text = " ".join("abcdefgh"[:len(labels)])
    words = [entities.TokenLabel(text[2 * n], 2 * n, 2 * n + 1, n, (1.0,), label, 1.0)
             for n, label in enumerate(labels)]
    return [(found.text, found.label) for found in entities.group_entities(text, words)]


@pytest.mark.parametrize(("labels", "found"), [
    ("B-PER I-PER B-PER", [("a b", "PER"), ("c", "PER")]), ("I-PER I-LOC", [("a", "PER"), ("b", "LOC")]),
    ("PER PER O LOC", [("a b", "PER"), ("d", "LOC")]), ("O O", []), ("B-PER O I-PER", [("a", "PER"), ("c", "PER")]),
    ("B-LOC I-LOC O B-LOC", [("a b", "LOC"), ("d", "LOC")]),
])
def test_neighbours_of_one_kind_are_one_entity_and_b_begins_another(labels, found):
    assert labelled(*labels.split()) == found


@pytest.mark.parametrize(("span", "trimmed"), [((0, 6), (1, 3)), ((1, 3), (1, 3)), ((3, 6), (6, 6)), ((2, 2), (2, 2))])
def test_a_span_loses_the_spaces_at_its_ends(span, trimmed):
    assert support.trimmed(" ab \t ", *span) == trimmed


def test_sigmoids_and_logarithms_at_both_ends():
    assert support.sigmoid(np.array([0.0, 800.0, -800.0, np.log(3)])) == pytest.approx([0.5, 1, 0, 0.75])
    rows = np.array([[0.0, np.log(3)], [1000.0, 1000.0]])
    assert support.softmax(rows) == pytest.approx(np.array([[0.25, 0.75], [0.5, 0.5]]))
    assert support.log_softmax(rows) == pytest.approx(np.log([[0.25, 0.75], [0.5, 0.5]]))


# --- answers -------------------------------------------------------------------

QUESTION = ("[CLS]", "who", "[SEP]")


def window(start: int, words: str, starts: list[float], ends: list[float]) -> Window:
    """A window of one-letter words from code point `start` on; the logarithms of weights on [CLS] and each word."""
    names = (*QUESTION, *words.split(), "[SEP]")
    places = tuple(range(3, 3 + len(words.split())))
    logits = []
    for weights in (starts, ends):
        row = np.full(len(names), 50.0)  # the question's own must not count
        row[[0, *places]] = np.log(weights)
        logits.append(row)
    trace = made_trace(names, start_logits=logits[0], end_logits=logits[1])
    offsets = tuple((2 * (n - 3), 2 * (n - 3) + 1) if n in places else (0, 0) for n in range(len(names)))
    object.__setattr__(trace.encoding, "offsets", offsets)
    return Window("who", start, start + len(words), trace, places)


CONTEXT = "a b c d"
ONE = window(0, CONTEXT, [1, 1, 4, 2, 2], [1, 5, 1, 2, 1])  # sums of 10 with [CLS]


def test_the_grid_is_start_times_end_where_the_end_is_not_before_the_start():
    (grid,) = answers.answer_grids([ONE], max_answer=3)
    assert (list(grid.start), list(grid.end)) == (pytest.approx([.1, .4, .2, .2]), pytest.approx([.5, .1, .2, .1]))
    nan = float("nan")
    assert grid.scores == pytest.approx(np.array([[.05, .01, .02, nan], [nan, .04, .08, .04], [nan, nan, .04, .02],
                                                  [nan, nan, nan, .02]]), nan_ok=True)
    assert grid.tokens == ("a", "b", "c", "d")


def test_the_best_spans_in_order_and_no_longer_than_they_may_be():
    found = answers.best_answers([ONE], CONTEXT, top=2, max_answer=3)
    assert [(one.text, one.start, one.end, one.tokens) for one in found] == [
        ("b c", 2, 5, (4, 5)), ("a", 0, 1, (3, 3))]
    assert found[0].score == pytest.approx(0.08)
    (short,) = answers.best_answers([ONE], CONTEXT, top=1, max_answer=1)
    assert (short.text, short.score) == ("a", pytest.approx(0.05))


SIX = "a b c d e f"
#: "c d" stands in both: c has more context in ONE, d in this; with their [CLS] 20 each for start and end.
TWO = window(4, "c d e f", [6, 9, 1, 3, 2], [5, 9, 3, 2, 1])


def test_windows_share_one_softmax_and_a_token_of_two_is_in_it_once():
    (start, end), (start_two, end_two) = answers.answer_probabilities([ONE, TWO])
    assert (20 * start, 20 * end) == (pytest.approx([1, 4, 2, 1]), pytest.approx([5, 1, 2, 3]))
    assert (20 * start_two, 20 * end_two) == (pytest.approx([2, 1, 3, 2]), pytest.approx([2, 3, 2, 1]))
    assert answers.counted_positions([ONE, TWO]) == [(3, 4, 5), (4, 5, 6)]
    assert np.exp(answers.candidate_logits([ONE, TWO], "end_logits")) == pytest.approx([1, 5, 1, 2, 5, 3, 2, 1])


def test_a_span_of_two_windows_counts_once_in_the_one_with_more_around_it():
    found = {one.text: one for one in answers.best_answers([ONE, TWO], SIX, top=99, max_answer=9)}
    assert len(found) == 10 + 10 - 3
    assert (found["c d"].score, found["c d"].window) == (pytest.approx(2 / 20 * 3 / 20), 0)  # as much in both
    assert (found["d"].score, found["d"].window, found["d"].tokens) == (pytest.approx(1 / 20 * 3 / 20), 1, (4, 4))
    assert (found["c"].window, found["b c"].window, found["d e"].window) == (0, 0, 1)


def test_tokens_of_one_character_are_several():
    emoji = window(0, "x y", [1, 2, 5], [2, 5, 1])
    object.__setattr__(emoji.trace.encoding, "offsets", ((0, 0),) * 3 + ((0, 1), (0, 1)) + ((0, 0),))
    ((start, end),) = answers.answer_probabilities([emoji])
    assert (8 * start, 8 * end) == (pytest.approx([2, 5]), pytest.approx([5, 1]))
