"""Context revealed step by step, and surprise over the whole sentence."""

from __future__ import annotations

import numpy as np
import pytest

from bert_core import TraceRequest
from bert_core.measures import compare, reveal, surprise
from bert_core.measures.compare import Readers

SENTENCE = "The dog barked all night."


def question(engine, readers, text=SENTENCE, position=2):
    return compare.question_at(engine.loaded(readers.masked).tokenizer.encode(text), position)


def test_the_last_step_of_both_sides_is_the_plain_run(engine, readers):
    asked = question(engine, readers)
    curves = {c.side: c for c in reveal.reveal(engine, asked, readers.masked)}
    readings, _ = compare.read(engine, asked, readers)
    assert curves["both"].final == pytest.approx(readings["both"].probability, rel=1e-4)


def test_all_curves_start_with_nothing_revealed(engine, readers):
    curves = reveal.reveal(engine, question(engine, readers), readers.masked)
    assert len({curve.steps[0].probability for curve in curves}) == 1
    assert [len(curve.steps) for curve in curves] == [2, 5, 5]
    assert [step.revealed for step in curves[1].steps] == ["", "barked", "all", "night", "."]
    assert [step.words for step in curves[1].steps] == [0, 1, 2, 3, 4]
    assert [step.words for step in curves[2].steps] == [0, 2, 3, 4, 5]
    assert [curve.joined for curve in curves] == [0, 0, 0]


def test_hidden_words_change_nothing(engine, readers):
    one = reveal.reveal(engine, question(engine, readers, "the dog barked all night"), readers.masked)
    other = reveal.reveal(engine, question(engine, readers, "the dog slept in paris"), readers.masked)
    assert one[0].final == pytest.approx(other[0].final, rel=1e-4)
    assert one[1].final != pytest.approx(other[1].final, rel=1e-3)


def test_flips_are_where_the_answer_turns():
    steps = [reveal.Step(n, "w", 0.1, "x", right) for n, right in enumerate((False, True, True, False, True))]
    assert reveal.Curve("left", tuple(steps)).flips == (1, 3, 4)


@pytest.mark.parametrize(("left", "right", "both", "expected"), [
    (0.1, 0.6, 0.8, "right"), (0.6, 0.1, 0.8, "left"), (0.5, 0.6, 0.8, "either"), (0.1, 0.2, 0.8, "together"),
    (0.001, 0.01, 0.019, "neither"),
])
def test_verdict(left, right, both, expected):
    curves = tuple(reveal.Curve(side, (reveal.Step(0, "", p, "x", False),))
                   for side, p in (("left", left), ("right", right), ("both", both)))
    assert reveal.verdict(curves) == expected


def test_many_words_end_in_one_last_step():
    words = [(n,) for n in range(1, 31)]
    steps = reveal.steps_of(words, 5)
    assert steps[:4] == [(1,), (2,), (3,), (4,)]
    assert steps[4] == tuple(range(5, 31))


def test_a_joined_step_counts_all_its_words(engine, readers):
    curves = reveal.reveal(engine, question(engine, readers, "the dog " + "slept " * 20), readers.masked)
    assert [step.words for step in curves[1].steps] == [*range(12), 20]
    assert [curve.joined for curve in curves] == [0, 9, 0]


def test_words_keep_their_pieces_together(engine, readers):
    asked = question(engine, readers, "the dog sleeps in paris")
    curve = reveal.reveal(engine, asked, readers.masked)[1]
    assert [step.revealed for step in curve.steps] == ["", "sleeps", "in", "paris"]


def test_an_unknown_word_can_not_be_revealed(engine, readers):
    with pytest.raises(ValueError, match="known word"):
        reveal.reveal(engine, question(engine, readers, "the [MASK] barked"), readers.masked)


def test_causal_surprise_is_the_negative_log_likelihood(engine, readers):
    found = {s.reader: s for s in surprise.surprises(engine, SENTENCE, None, readers)}
    run = engine.run(TraceRequest(SENTENCE, model=readers.left))
    rows = compare.log_softmax(run.lm_logits)
    by_hand = [-rows[t - 1, run.input_ids[t]] for t in range(1, len(run) - 1)]
    np.testing.assert_allclose(found["left"].nats, by_hand, atol=1e-4)
    assert found["left"].total == pytest.approx(sum(by_hand))
    assert found["left"].mean == pytest.approx(np.mean(by_hand))
    assert found["left"].tokens == tuple(run.tokens[1:-1])


def test_right_to_left_surprise_reads_the_rows_after(engine, readers):
    found = {s.reader: s for s in surprise.surprises(engine, SENTENCE, None, readers)}
    run = engine.run(TraceRequest(SENTENCE, model=readers.right))
    rows = compare.log_softmax(run.lm_logits)
    last = len(run) - 2
    by_hand = [-rows[0 if t == last else t + 1, run.input_ids[t]] for t in range(1, last + 1)]
    np.testing.assert_allclose(found["right"].nats, by_hand, atol=1e-4)


def test_masked_surprise_agrees_with_each_single_question(engine, readers):
    found = {s.reader: s for s in surprise.surprises(engine, SENTENCE, None, readers)}
    for position in (1, 3, 6):
        readings, _ = compare.read(engine, question(engine, readers, SENTENCE, position), readers)
        for reader in ("both", "hidden", "elmo"):
            assert found[reader].nats[position - 1] == pytest.approx(-readings[reader].log_likelihood, abs=1e-5)


def test_surprise_without_a_right_to_left_model(engine, readers):
    found = surprise.surprises(engine, SENTENCE, None, Readers(readers.masked, readers.left))
    assert [s.reader for s in found] == ["both", "hidden", "left"]


def test_an_empty_sentence_has_nothing_to_score(engine, readers):
    with pytest.raises(ValueError, match="type a sentence"):
        surprise.surprises(engine, "", None, readers)
