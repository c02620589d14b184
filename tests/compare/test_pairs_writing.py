"""The shipped minimal pairs, how they are judged, and what writing costs."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from bert_core import TraceRequest, load_engine
from bert_core.config import BertConfig
from bert_core.figures import compare_curves
from bert_core.measures import compare, compare_pairs, compare_writing
from bert_core.measures.compare_pairs import Pair, Tally
from bert_core.measures.compare_writing import Draw
from bert_core.serving.local import LocalEngine


def test_the_set_is_balanced_and_pairs_differ_in_one_place():
    pairs = compare_pairs.read_pairs()
    counts = Counter(pair.phenomenon for pair in pairs)
    assert len(counts) >= 12
    assert set(counts.values()) == {25}
    assert list(compare_pairs.phenomena()) == list(counts)
    for pair in pairs:
        good, bad = pair.good.split(), pair.bad.split()
        assert len(good) == len(bad), pair
        assert sum(a != b for a, b in zip(good, bad, strict=True)) == 1, pair
        assert pair.good[-1] in ".?", pair


def test_no_sentence_comes_twice():
    texts = [text for pair in compare_pairs.read_pairs() for text in (pair.good, pair.bad)]
    assert len(set(texts)) == len(texts)


def test_wilson_interval_by_hand():
    low, high = compare_pairs.wilson(8, 10)
    assert (round(low, 4), round(high, 4)) == (0.4902, 0.9433)
    assert compare_pairs.wilson(0, 0) == (0.0, 1.0)
    assert compare_pairs.wilson(10, 10)[1] == pytest.approx(1.0)
    assert Tally(8, 10).accuracy == 0.8
    assert math.isnan(Tally(0, 0).accuracy)


def test_sample_takes_turns():
    some = compare_pairs.sample(compare_pairs.read_pairs(), 2)
    kinds = len(compare_pairs.phenomena())
    assert len(some) == 2 * kinds
    assert len({pair.phenomenon for pair in some[:kinds]}) == kinds


def test_likelihoods_are_the_sums_of_log_probabilities(engine, readers):
    text = "the dog barked"
    causal, masked = (compare_pairs.log_likelihoods(engine, name, [text])[0] for name in (readers.left, readers.masked))
    run = engine.run(TraceRequest(text, model=readers.left))
    rows = compare.log_softmax(run.lm_logits)
    assert causal == pytest.approx(sum(rows[t - 1, run.input_ids[t]] for t in (1, 2, 3)), abs=1e-5)
    total = 0.0
    for t in (1, 2, 3):
        one = engine.run(TraceRequest(text, model=readers.masked, masked=(t,)))
        total += compare.log_softmax(one.mlm_logits[0])[run.input_ids[t]]
    assert masked == pytest.approx(total, abs=1e-5)


def test_judging_compares_good_with_bad(engine, readers):
    pairs = [Pair("x", "the dog barked", "the dog night"), Pair("y", "a cat slept", "a cat is"),
             Pair("x", "we walked home", "we walked of")]
    done, right = [], []
    for count, verdicts in compare_pairs.judge(engine, {"gpt": [readers.left]}, pairs, at_once=2):
        done.append(count)
        right += verdicts["gpt"]
    scores = compare_pairs.log_likelihoods(engine, readers.left, [t for p in pairs for t in (p.good, p.bad)])
    assert done == [2, 3]
    assert right == [scores[n] > scores[n + 1] for n in (0, 2, 4)]
    ((_, tie),) = compare_pairs.judge(engine, {"gpt": [readers.left]}, [Pair("x", "the dog", "the dog")])
    assert tie == {"gpt": [False]}
    parts = compare_pairs.tallies(pairs, right)
    assert parts["x"] == Tally(right[0] + right[2], 2)
    assert compare_pairs.overall(parts).count == 3


def test_two_readers_joined_judge_token_by_token(engine, readers):
    text = "the dog barked"
    score = compare_pairs.joined_likelihoods(engine, readers.left, readers.right, [text])[0]
    total = 0.0
    for position in (1, 2, 3):
        question = compare.question_at(engine.loaded(readers.masked).tokenizer.encode(text), position)
        readings, _ = compare.read(engine, question, readers, ("elmo",))
        total += readings["elmo"].log_likelihood
    assert score == pytest.approx(total, abs=1e-4)


def test_writing_is_greedy_and_takes_no_specials(engine, readers):
    for model in (readers.left, readers.masked):
        written = list(compare_writing.write(engine, model, "the dog", 3))
        assert len(written) == 3
        assert not {w.token for w in written} & {"[CLS]", "[SEP]", "[MASK]", "[PAD]"}
    row = engine.run(TraceRequest("the dog", model=readers.left)).lm_logits[2]
    tokenizer = engine.loaded(readers.left).tokenizer
    allowed = [n >= 5 and tokenizer.backend.id_to_token(n) is not None for n in range(len(row))]  # 0 to 4 are special
    first = next(compare_writing.write(engine, readers.left, "the dog", 3))
    assert first.id == np.where(allowed, row, -np.inf).argmax()
    assert first.probability == pytest.approx(np.exp(compare.log_softmax(row)[first.id]), rel=1e-4)
    written = list(compare_writing.write(engine, readers.left, "the dog", 4))
    for n in (1, 2, 3):  # each reads all that was written before it
        before = tuple((3 + m, written[m].id) for m in range(n))
        row = engine.run(TraceRequest("the dog a a a a", model=readers.left, replaced=before)).lm_logits[2 + n]
        assert written[n].id == np.where(allowed, row, -np.inf).argmax()
        assert written[n].probability == pytest.approx(np.exp(compare.log_softmax(row)[written[n].id]), rel=1e-4)


def test_a_special_token_without_a_row_of_the_table_bars_nothing_else(engine, readers):
    loaded = engine.loaded(readers.left)
    tokenizer, whole = loaded.tokenizer, compare_writing.forbidden(loaded)
    last = max(map(tokenizer.id_of, tokenizer.specials.values()))
    short = SimpleNamespace(tokenizer=tokenizer, config=replace(loaded.config, vocab_size=last))
    np.testing.assert_array_equal(compare_writing.forbidden(short), whole[:last])


def test_a_drawn_piece_comes_as_often_as_its_probability_says(engine, readers):
    row = engine.run(TraceRequest("the dog", model=readers.left)).lm_logits[2].astype(np.float64)
    barred = compare_writing.forbidden(engine.loaded(readers.left))
    for temperature in (0.5, 2.0):
        powers = np.where(barred, 0.0, np.exp((row - row.max()) / temperature))
        expected = powers / powers.sum()
        drawn = [next(compare_writing.write(engine, readers.left, "the dog", 1, Draw(temperature, seed)))
                 for seed in range(300)]
        counts = np.bincount([one.id for one in drawn], minlength=len(row)) / len(drawn)
        assert not counts[barred].any()
        assert np.abs(counts - expected).max() < 0.1
        for one in drawn[:20]:
            assert one.drawn_with == pytest.approx(expected[one.id], rel=1e-4)
            assert one.probability == pytest.approx(np.exp(compare.log_softmax(row)[one.id]), rel=1e-4)


def test_a_seed_draws_the_same_again_and_near_0_the_likeliest_is_sure(engine, readers):
    def ids(model: str, draw: Draw | None) -> list[int]:
        return [one.id for one in compare_writing.write(engine, model, "the dog", 5, draw)]

    for model in (readers.left, readers.masked):
        drawn = [ids(model, Draw(2.0, seed)) for seed in (1, 2, 1)]
        assert drawn[0] == drawn[2] != drawn[1]
        assert ids(model, Draw(0.001, 7)) == ids(model, None)


def test_writing_leaves_nothing_in_the_shared_cache(readers):
    engine = LocalEngine(readers.masked)
    for model in (readers.left, readers.masked):
        list(compare_writing.write(engine, model, "the dog", 3))
    engine.close()
    assert engine.cache.bytes == 0


def test_writing_stops_at_the_limit(engine, readers):
    long = "the dog " * 16  # 32 of at most 35 pieces
    assert len(list(compare_writing.write(engine, readers.left, long, 8))) == 3
    with pytest.raises(ValueError, match="shorter"):
        list(compare_writing.write(engine, readers.left, "the dog " * 30, 8))


def test_costs_by_hand():
    config = BertConfig(vocab_size=9, hidden_size=2, num_hidden_layers=1, num_attention_heads=1, intermediate_size=3)
    kept = compare_writing.cost_with_cache(config, start=3, count=2)
    assert (kept.passes, kept.tokens, kept.pairs) == (2, 4, 1 + 2 + 3 + 4)
    assert kept.multiplications == 4 * (4 * 4 + 2 * 2 * 3) + 2 * 2 * 10
    anew = compare_writing.cost_without(config, start=3, count=2)
    assert (anew.passes, anew.tokens, anew.pairs) == (2, 12, 72)
    assert anew.multiplications == 12 * (4 * 4 + 2 * 2 * 3) + 2 * 2 * 72


def test_the_two_ways_are_counted_at_one_size():
    config = BertConfig(vocab_size=9, hidden_size=2, num_hidden_layers=5, num_attention_heads=1, intermediate_size=3)
    kept, anew = compare_writing.costs_at_one_size(config, start=3, count=2)
    assert (kept.multiplications, anew.multiplications) == (5 * 152, 5 * 624)


def test_a_causal_prefix_may_be_kept_and_a_both_way_one_not(engine, readers):
    whole, part = "the dog barked all night", "the dog barked"
    kept = compare_writing.prefix_change(engine, readers.left, whole, part)
    moved = compare_writing.prefix_change(engine, readers.masked, whole, part)
    assert kept.max() < 1e-5
    assert moved[0] < 1e-6  # the first layer's keys are of the embeddings alone
    assert moved[1:].min() > 1e-2


def test_marks_of_one_row_stand_beside_each_other_and_at_their_shares():
    """Grouped scatter moves along x unless its traces lie: a share of 1 stood at 0.99 or 1.01."""
    parts = {name: {"agreement": Tally(2, 2)} for name in ("m", "n")}
    figure = compare_curves.pairs_figure(parts, {"m": "both", "n": "left"})
    assert figure.layout.scattermode == "group"
    assert {trace.orientation for trace in figure.data} == {"h"}


def test_counting_the_twins_bias_once_guesses_better_than_their_plain_product():
    engine, twins = load_engine("twin-bert"), ("twin-gpt", "twin-rtl")
    texts = [pair.good for pair in compare_pairs.sample(compare_pairs.read_pairs(), 4)]
    joined = sum(compare_pairs.joined_likelihoods(engine, *twins, texts))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare_pairs, "shared_bias", lambda *_: np.zeros(1))
        product = sum(compare_pairs.joined_likelihoods(engine, *twins, texts))
    alone = sum(compare_pairs.log_likelihoods(engine, "twin-gpt", texts))
    pieces = sum(len(engine.loaded("twin-gpt").tokenizer.encode(text).content) for text in texts)
    assert joined / pieces > product / pieces + 0.1
    assert product > alone
