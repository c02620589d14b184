"""Context revealed step by step, and surprise over the whole sentence."""

from __future__ import annotations

import numpy as np
import pytest

from bert_core import TraceRequest
from bert_core.config import BertConfig
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


def test_an_unknown_word_surprises_nobody(engine, readers):
    text = "the dog \u4e2d barked"
    tokens = engine.loaded(readers.masked).tokenizer.encode(text).tokens
    assert tokens[3] == "[UNK]"
    for found in surprise.surprises(engine, text, None, readers):
        assert found.tokens == tuple(t for t in tokens[1:-1] if t != "[UNK]")
        assert (found.places[2], found.length) == (4, len(tokens) - 3)
    with pytest.raises(ValueError, match="nothing to score"):
        surprise.surprises(engine, "\u4e2d", None, readers)


def test_surprise_without_a_right_to_left_model(engine, readers):
    found = surprise.surprises(engine, SENTENCE, None, Readers(readers.masked, readers.left))
    assert [s.reader for s in found] == ["both", "hidden", "left"]


def test_the_longer_the_text_the_fewer_pieces_are_scored():
    config = BertConfig(vocab_size=9, hidden_size=2, num_hidden_layers=1, num_attention_heads=1, intermediate_size=3)
    one = 5 * (4 * 2 * 2 + 2 * 2 * 3) + 2 * 2 * 5 * 5  # a run over 5 tokens, by hand
    allowed = [surprise.most_scored(config, length, 2) for length in (10, 20_000, 40_000, 10**6)]
    assert allowed[0] == surprise.MAX_SCORED
    assert allowed == sorted(allowed, reverse=True)
    assert allowed[-1] == 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(surprise, "MAX_WORK", 7 * one)
        assert [surprise.most_scored(config, 5, kinds) for kinds in (1, 2, 4)] == [7, 3, 1]


def test_at_the_limit_of_a_base_model_the_work_stays_a_few_seconds():
    base = BertConfig()
    count = surprise.most_scored(base, 512, 2)
    layer = 512 * (4 * 768**2 + 2 * 768 * 3072) + 2 * 768 * 512**2
    assert 1 <= count <= 3
    assert 2 * count * 12 * layer <= surprise.MAX_WORK
    assert surprise.most_scored(base, 12, 2) >= 12  # a sentence is scored whole


def test_a_cut_sum_is_of_the_first_pieces_and_says_so(engine, readers, monkeypatch):
    whole = {s.reader: s for s in surprise.surprises(engine, SENTENCE, None, readers)}
    assert {s.covers for s in whole.values()} == {"6 tokens"}
    monkeypatch.setattr(surprise, "most_scored", lambda config, length, kinds: 4)
    part = {s.reader: s for s in surprise.surprises(engine, SENTENCE, None, readers)}
    for reader, one in part.items():
        np.testing.assert_allclose(one.nats, whole[reader].nats[:4], atol=1e-4)
        assert one.total == pytest.approx(one.nats.sum())
        assert (one.covers, one.length, len(one.tokens)) == ("the first 4 of 6 tokens", 6, 4)


def test_other_pieces_are_scored_over_the_same_stretch_of_text(engine, readers, family):
    others = Readers(readers.masked, family("GPT-2"))
    masked, other = (engine.loaded(name).tokenizer.encode(SENTENCE) for name in (others.masked, others.left))
    places = surprise.places_within(other.content, other, masked, 3)
    end = masked.offsets[3][1]
    assert SENTENCE[:end] == "The dog barked"
    assert all(other.offsets[n][0] < end for n in places)
    assert other.offsets[places[-1] + 1][0] >= end


def test_a_piece_that_cannot_be_guessed_is_not_counted():
    nats = np.array([np.nan, 1.0, 2.0])
    def covers(length: int) -> str:
        return surprise.Surprise("left", ("m",), ("a", "b", "c"), nats, length, (1, 2, 3)).covers

    assert covers(3) == "2 tokens"
    assert covers(9) == "2 of the first 3 of 9 tokens"


def test_an_empty_sentence_has_nothing_to_score(engine, readers):
    with pytest.raises(ValueError, match="type a sentence"):
        surprise.surprises(engine, "", None, readers)
