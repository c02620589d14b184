"""The readers differ in mask or model and in nothing else; numbers checked by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from bert_core import TraceRequest
from bert_core import model as bert
from bert_core.measures import compare
from bert_core.measures.compare import NoReading, Readers
from bert_core.measures.reveal import reveal

SENTENCE = "The dog barked all night."
FULL = ("attention_probs", "embedding_output")


def ask(engine, readers, text=SENTENCE, position=2, pair=None):
    encoding = engine.loaded(readers.masked).tokenizer.encode(text, pair)
    return compare.question_at(encoding, position)


def test_both_and_hidden_differ_in_the_mask_only(engine, readers):
    question = ask(engine, readers)
    readings, gaps = compare.read(engine, question, readers, parts=FULL)
    both, hidden = readings["both"].trace, readings["hidden"].trace
    assert not gaps
    assert replace(both.request, attention=None) == replace(hidden.request, attention=None)
    assert (both.attention_kind, hidden.attention_kind) == ("bidirectional", "causal")
    np.testing.assert_array_equal(both.input_ids, hidden.input_ids)
    np.testing.assert_array_equal(both.embedding_output, hidden.embedding_output)
    assert both.tokens[2] == "[MASK]"


def test_the_left_reader_differs_in_the_model_and_reads_the_unmasked_sentence(engine, readers):
    readings, _ = compare.read(engine, ask(engine, readers), readers, parts=FULL)
    left, hidden = readings["left"].trace, readings["hidden"].trace
    assert (left.model, hidden.model) == (readers.left, readers.masked)
    assert left.attention_kind == hidden.attention_kind == "causal"
    differing = np.flatnonzero(left.input_ids != hidden.input_ids)
    assert differing.tolist() == [2]


@pytest.mark.parametrize("reader", ["left", "hidden"])
def test_causal_rows_are_exactly_zero_on_later_tokens(engine, readers, reader):
    readings, _ = compare.read(engine, ask(engine, readers), readers, parts=FULL)
    probs = readings[reader].trace.attention_probs
    later = np.triu(np.ones(probs.shape[-2:], dtype=bool), k=1)
    assert (probs[:, :, later] == 0.0).all()
    assert (probs[:, :, ~later] > 0.0).all()
    np.testing.assert_allclose(probs.sum(-1), 1.0, atol=1e-6)


def test_the_right_reader_never_looks_left_but_at_cls(engine, readers):
    readings, _ = compare.read(engine, ask(engine, readers), readers, parts=FULL)
    trace = readings["right"].trace
    allowed = compare.visible("causal", "right-to-left", len(trace))
    assert (trace.attention_probs[:, :, ~allowed] == 0.0).all()
    assert (trace.attention_probs[:, :, allowed] > 0.0).all()
    assert allowed[2].tolist() == [True, False, True, True, True, True, True, False]


def test_the_both_way_run_looks_everywhere(engine, readers):
    readings, _ = compare.read(engine, ask(engine, readers), readers, parts=FULL)
    assert (readings["both"].trace.attention_probs > 0.0).all()


def test_before_is_the_same_model_with_the_words_after_the_gap_hidden(engine, readers):
    readings, _ = compare.read(engine, ask(engine, readers), readers)
    rest = tuple(range(3, len(readings["both"].trace) - 1))
    by_hand = engine.run(TraceRequest(SENTENCE, masked=(2,), hidden=rest, model=readers.masked))
    np.testing.assert_allclose(readings["before"].log_probs, compare.log_softmax(by_hand.mlm_logits[0]), atol=1e-6)
    assert compare.after(by_hand.encoding, (2,)) == rest
    assert compare.after(by_hand.encoding, by_hand.encoding.content) == ()


def test_before_is_where_revealing_the_left_side_ends(engine, readers):
    question = ask(engine, readers)
    readings, _ = compare.read(engine, question, readers, ("before", "both"))
    final = {curve.side: curve.final for curve in reveal(engine, question, readers.masked)}
    assert readings["before"].probability == pytest.approx(final["left"], rel=1e-5)
    assert readings["both"].probability == pytest.approx(final["both"], rel=1e-5)


@pytest.mark.parametrize("reader", ["left", "hidden", "before"])
def test_what_stands_right_changes_nothing_for_who_reads_left(engine, readers, reader):
    one, _ = compare.read(engine, ask(engine, readers, "the dog barked all night"), readers)
    other, _ = compare.read(engine, ask(engine, readers, "the dog slept in paris"), readers)
    np.testing.assert_allclose(one[reader].log_probs, other[reader].log_probs, atol=1e-5)
    assert np.abs(one["both"].log_probs - other["both"].log_probs).max() > 1e-3
    assert np.abs(one["right"].log_probs - other["right"].log_probs).max() > 1e-3


def test_what_stands_left_changes_nothing_for_who_reads_right(engine, readers):
    one, _ = compare.read(engine, ask(engine, readers, "the dog barked all night", 3), readers)
    other, _ = compare.read(engine, ask(engine, readers, "a cat barked all night", 3), readers)
    np.testing.assert_allclose(one["right"].log_probs, other["right"].log_probs, atol=1e-5)


def test_probabilities_are_those_of_the_plain_runs(engine, readers):
    question = ask(engine, readers)
    readings, _ = compare.read(engine, question, readers)
    masked = engine.run(TraceRequest(SENTENCE, masked=(2,), model=readers.masked))
    causal = engine.run(TraceRequest(SENTENCE, model=readers.left))
    truth = causal.input_ids[2]
    by_hand = {"both": masked.mlm_logits[0], "left": causal.lm_logits[1]}
    for reader, logits in by_hand.items():
        p = np.exp(logits.astype(np.float64))
        assert readings[reader].probability == pytest.approx(p[truth] / p.sum(), rel=1e-6)
        assert readings[reader].rank == 1 + (logits > logits[truth]).sum()


def test_the_two_joined_are_one_layer_over_both_with_its_bias_once(engine, readers):
    readings, _ = compare.read(engine, ask(engine, readers), readers, parts=("hidden_states",))
    total = -compare.shared_bias(engine, readers.left, readers.right)  # of the two biases below
    for reader, row in (("left", 1), ("right", 3)):  # the rows from which position 2 is guessed
        model = engine.loaded(getattr(readers, reader)).model
        hidden = torch.tensor(readings[reader].trace.hidden_states[-1, row])
        total = total + bert.mlm_logits(model, hidden).numpy()
    np.testing.assert_allclose(readings["elmo"].log_probs, compare.log_softmax(total), atol=1e-5)
    assert readings["elmo"].models == (readers.left, readers.right)


def test_the_shared_bias_is_the_mean_of_the_two(engine, readers):
    own = [engine.loaded(name).model.weights["cls.predictions.bias"].numpy() for name in (readers.left, readers.right)]
    assert np.abs(own[0] - own[1]).max() > 1e-3
    found = compare.shared_bias(engine, readers.left, readers.right)
    np.testing.assert_allclose(found, np.mean(own, axis=0), rtol=1e-6)


def test_readers_of_other_vocabularies_or_places_are_not_joined(monkeypatch):
    monkeypatch.setattr(compare, "shared_bias", lambda engine, left, right: np.zeros(2))
    left = compare.Reading("left", ("l",), (2,), np.log([0.25, 0.75]), (0,), (np.log(0.25),))
    right = replace(left, reader="right", models=("r",), log_probs=np.log([0.5, 0.5]))
    found = compare.elmo(None, {"left": left, "right": right}, {})
    assert (found.models, found.probability) == (("l", "r"), pytest.approx(0.25))
    for other in (replace(right, log_probs=np.log([0.2, 0.3, 0.5])), replace(right, positions=(3,))):
        with pytest.raises(NoReading, match="different vocabularies"):
            compare.elmo(None, {"left": left, "right": other}, {})
    with pytest.raises(NoReading, match="several pieces"):
        compare.elmo(None, {"left": replace(left, positions=(2, 3)), "right": replace(right, positions=(2, 3))}, {})
    with pytest.raises(NoReading, match="lies beyond"):
        compare.elmo(None, {"left": left}, {"right": "it lies beyond"})
    with pytest.raises(NoReading, match="the left reader was not asked"):
        compare.elmo(None, {"right": right}, {})


def test_join_by_hand():
    left, right = np.log([0.5, 0.5, 0.0 + 1e-300]), np.log([0.2, 0.6, 0.2])
    np.testing.assert_allclose(np.exp(compare.join(left, right, np.zeros(3))), [0.25, 0.75, 0.0], atol=1e-12)
    bias = np.log([1.0, 3.0, 1.0])  # what favours the second piece in both counts once
    np.testing.assert_allclose(np.exp(compare.join(left, right, bias)), [0.5, 0.5, 0.0], atol=1e-12)


def test_a_model_that_has_no_bias_adds_none(engine, readers):
    class Foreign:
        def loaded(self, name):
            return replace(engine.loaded(readers.left), model=object()) if name == "gpt2" else engine.loaded(name)

    half = compare.shared_bias(Foreign(), readers.left, "gpt2")
    own = engine.loaded(readers.left).model.weights["cls.predictions.bias"].numpy()
    np.testing.assert_allclose(half, own / 2, rtol=1e-6)
    assert compare.shared_bias(Foreign(), "gpt2", "gpt2").tolist() == [0.0]


def test_rows_of_causal_models():
    # [CLS] a b c [SEP]: b (2) is guessed from a (1); right to left from c (3), and c from [CLS] (0).
    assert compare.row_for("left-to-right", 5, 2) == 1
    assert compare.row_for("right-to-left", 5, 2) == 3
    assert compare.row_for("right-to-left", 5, 3) == 0
    with pytest.raises(NoReading, match="start token"):
        compare.row_for("left-to-right", 5, 0)


def test_a_word_of_several_pieces_follows_the_chain_rule(engine, readers):
    text = "the dog sleeps all night"  # s ##l ##e ##e ##p ##s in the tiny vocabulary
    question = ask(engine, readers, text, 4)
    assert question.word == "sleeps"
    readings, gaps = compare.read(engine, question, readers)
    places = readings["both"].positions
    assert len(places) > 1
    assert readings["both"].positions == readings["right"].positions
    ids = engine.run(TraceRequest(text, model=readers.masked)).input_ids
    total = 0.0
    for n, place in enumerate(places):
        run = engine.run(TraceRequest(text, model=readers.masked, masked=places[n:]))
        total += compare.log_softmax(run.mlm_logits[0])[ids[place]]
    assert readings["both"].log_likelihood == pytest.approx(total, abs=1e-5)
    causal = engine.run(TraceRequest(text, model=readers.left))
    rows = compare.log_softmax(causal.lm_logits)
    assert readings["left"].log_likelihood == pytest.approx(sum(rows[p - 1, ids[p]] for p in places), abs=1e-5)
    assert readings["right"].truth == tuple(ids[list(places)][::-1])
    assert "several pieces" in gaps["elmo"]


def test_an_unknown_truth_has_predictions_but_no_probability(engine, readers):
    for text, position in (("the [MASK] barked", 2), ("the \u4e2d barked", 2)):
        readings, _ = compare.read(engine, ask(engine, readers, text, position), readers)
        assert readings["both"].probability is None
        assert readings["both"].rank is None
        assert np.exp(readings["both"].log_probs).sum() == pytest.approx(1.0)


def test_missing_models_are_gaps_with_a_reason(engine, readers):
    alone = Readers(readers.masked)
    readings, gaps = compare.read(engine, ask(engine, readers), alone)
    assert set(readings) == {"both", "hidden", "before"}
    assert "left-to-right" in gaps["left"]
    assert "right-to-left" in gaps["right"]
    readings, gaps = compare.read(engine, ask(engine, readers), Readers(readers.masked, readers.left))
    assert set(readings) == {"both", "left", "hidden", "before"}
    assert "right-to-left" in gaps["elmo"]


def test_special_tokens_can_not_be_asked(engine, readers):
    encoding = engine.loaded(readers.masked).tokenizer.encode(SENTENCE)
    for position in (0, len(encoding) - 1, 99, -1):
        with pytest.raises(ValueError, match="is no word"):
            compare.question_at(encoding, position)


def test_the_second_sentence_can_be_asked(engine, readers):
    question = ask(engine, readers, "the dog barked", 6, "the cat slept")
    assert (question.word, question.sequence) == ("cat", 1)
    readings, _ = compare.read(engine, question, readers)
    assert readings["left"].positions == (6,)


def test_top_is_sorted_and_named(engine, readers):
    readings, _ = compare.read(engine, ask(engine, readers), readers)
    best = compare.top(readings["both"], engine, 4)
    assert [p.probability for p in best] == sorted((p.probability for p in best), reverse=True)
    assert best[0].id == readings["both"].log_probs.argmax()
    assert best[0].token == engine.loaded(readers.masked).tokenizer.token_of(best[0].id)
