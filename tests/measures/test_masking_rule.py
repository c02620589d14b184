"""The simulator's draws, tally and expectation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert_core import TraceRequest, load_engine
from bert_core.measures import masking
from bert_core.measures.predictions import softmax
from bert_core.training.corruption import KEPT, MASKED, RANDOM, UNTOUCHED

TEXT = "the dog barked all night in the garden and we walked home"


@pytest.fixture(scope="module")
def loaded(tiny_bert):
    return load_engine(tiny_bert).loaded()


def test_random_pieces_hold_no_special(loaded):
    names = {loaded.tokenizer.token_of(i) for i in masking.random_pieces(loaded.tokenizer)}
    assert not names & {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
    assert {"dog", "##ing", "<"} <= names


def test_what_the_vocabulary_lacks_is_not_asked_for(loaded):
    """Nor is it in pre-training."""
    encoding = loaded.tokenizer.encode("the 🙂 dog 猫 barked")
    unknown = [n for n, token in enumerate(encoding.tokens) if token == "[UNK]"]
    allowed = masking.may_be_chosen(encoding, loaded.tokenizer)
    assert unknown
    assert not allowed[unknown].any()
    assert [encoding.tokens[n] for n in np.flatnonzero(allowed)] == ["the", "dog", "barked"]
    for seed in range(20):
        assert not set(unknown) & set(masking.draw(encoding, loaded.tokenizer, 0.9, seed).positions.tolist())
    assert masking.tally(encoding, loaded.tokenizer, 0.15, 1, 10).candidates == 3


@given(seed=st.integers(0, 10_000), rate=st.floats(0, 0.6))
@settings(max_examples=60)
def test_a_draw_touches_only_what_it_chose(loaded, seed, rate):
    encoding = loaded.tokenizer.encode(TEXT + " [MASK]", "we walked")
    drawn = masking.draw(encoding, loaded.tokenizer, rate, seed)
    ids = np.array(encoding.input_ids)
    allowed = masking.may_be_chosen(encoding, loaded.tokenizer)
    assert allowed[drawn.positions].all()
    assert (drawn.labels == ids[drawn.positions]).all()
    same = (drawn.outcome == UNTOUCHED) | (drawn.outcome == KEPT)
    assert (drawn.input_ids[same] == ids[same]).all()
    assert (drawn.input_ids[drawn.outcome == MASKED] == loaded.tokenizer.mask_id).all()


def test_the_same_seed_draws_the_same(loaded):
    encoding = loaded.tokenizer.encode(TEXT)
    draws = [masking.draw(encoding, loaded.tokenizer, 0.4, seed).input_ids.tolist() for seed in (7, 7, 8, 9)]
    assert draws[0] == draws[1]
    assert len({tuple(ids) for ids in draws}) == 3


def test_tally_over_many_draws_stays_within_four_deviations(loaded):
    counted = masking.tally(loaded.tokenizer.encode(TEXT), loaded.tokenizer, 0.15, 0, 1500)
    assert sum(counted.counts.values()) == counted.draws * counted.candidates
    for name, count in counted.counts.items():
        assert abs(count - counted.expected[name]) <= 4 * counted.deviation[name], name


def test_deviation_is_that_of_simulated_counts(loaded):
    encoding = loaded.tokenizer.encode(TEXT)
    counts = [masking.tally(encoding, loaded.tokenizer, 0.15, n, 20).counts["masked"] for n in range(120)]
    expected = masking.tally(encoding, loaded.tokenizer, 0.15, 0, 20).deviation["masked"]
    assert np.std(counts) == pytest.approx(expected, rel=0.25)


def test_deviation_of_a_number_chosen_by_chance_is_counted_by_hand():
    """Half of three pieces: one or two with equal chance, each of which is masked in four of five draws.

    0.2, 0.8 of one and 0.04, 0.32, 0.64 of two: none, one and two are masked with 0.12, 0.56 and 0.32; mean 1.2.
    """
    variance = 0.12 * 1.2**2 + 0.56 * 0.2**2 + 0.32 * 0.8**2
    assert masking.deviation(1, 3, 0.5, 0.8) == pytest.approx(np.sqrt(variance))
    assert masking.deviation(7, 3, 0.5, 0.8) == pytest.approx(np.sqrt(7 * variance))
    assert masking.deviation(1, 3, 0.5, 1.0) == pytest.approx(0.5)  # how many are chosen: one or two


def test_the_first_draw_counted_is_the_one_shown(loaded):
    encoding = loaded.tokenizer.encode(TEXT)
    for seed in (0, 7, 999_999):
        allowed = masking.may_be_chosen(encoding, loaded.tokenizer)
        shown = masking.draw(encoding, loaded.tokenizer, 0.4, seed).outcome[allowed]
        counted = masking.tally(encoding, loaded.tokenizer, 0.4, seed, 1).counts
        assert list(counted.values()) == np.bincount(shown, minlength=4).tolist()


def test_a_seed_next_to_another_counts_other_draws(loaded):
    encoding = loaded.tokenizer.encode(TEXT)
    counts = [masking.tally(encoding, loaded.tokenizer, 0.4, seed, 20).counts["masked"] for seed in range(120)]
    assert abs(np.corrcoef(counts[1:], counts[:-1])[0, 1]) < 0.2  # with 19 of 20 draws shared it would be 0.95


def test_the_share_of_the_chosen_is_expected_about_its_chance_however_many_were_chosen():
    random = np.random.default_rng(3)
    for chosen in (50, 2000):
        low, high = masking.share_band(0.8, chosen)
        assert (low + high) / 2 == pytest.approx(0.8)
        shares = random.binomial(chosen, 0.8, 4000) / chosen
        assert np.mean((shares >= low) & (shares <= high)) == pytest.approx(0.95, abs=0.02)
    assert masking.share_band(0.1, 4) == (0.0, pytest.approx(0.4))


def test_losses_are_those_of_the_corrupted_run_at_the_chosen_places(tiny_bert, loaded):
    encoding = loaded.tokenizer.encode(TEXT)
    drawn = masking.draw(encoding, loaded.tokenizer, 0.6, 3)
    trace = load_engine(tiny_bert).run(
        TraceRequest(TEXT, replaced=masking.replacements(drawn), all_logits=True))
    assert (trace.input_ids == drawn.input_ids).all()
    found = masking.losses(trace, drawn)
    for loss, position, label in zip(found, drawn.positions, drawn.labels, strict=True):
        assert loss == pytest.approx(-np.log(softmax(trace.mlm_logits[position])[label]))


def test_replacements_leave_kept_pieces_alone(loaded):
    encoding = loaded.tokenizer.encode(TEXT)
    drawn = masking.draw(encoding, loaded.tokenizer, 0.6, 11)
    places = {position for position, _ in masking.replacements(drawn)}
    assert places == set(np.flatnonzero((drawn.outcome == MASKED) | (drawn.outcome == RANDOM)))


def test_nothing_to_choose_is_no_loss(loaded):
    drawn = masking.draw(loaded.tokenizer.encode(""), loaded.tokenizer, 0.6, 0)
    assert masking.losses(None, drawn).shape == (0,)
