"""What a live training step sees: 15 %, 80/10/10, and never a special token."""

import hashlib
import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

from bert_core.training.corruption import KEPT, MASKED, RANDOM
from bert_core.training.live import pairs
from bert_core.training.live.specs import PretrainSpec
from bert_core.training.live.text import learn_vocabulary, shipped_text, split_text
from bert_core.training.packing import IS_NEXT, NO_PAIR, NOT_NEXT, Example

TOKENS = 100_000


@pytest.fixture(scope="module")
def lesson() -> pairs.Lesson:
    text = split_text(shipped_text())
    return pairs.make_lesson(text, learn_vocabulary(text.train))


@pytest.fixture(scope="module")
def seen(lesson) -> list[pairs.Seen]:
    """Pairs of as many steps as 100,000 pieces that may be chosen take."""
    spec, found, total, step = PretrainSpec(batch=32), [], 0, 0
    while total < TOKENS:
        batch = pairs.seen_at(lesson, spec, step)
        total += candidates(lesson, batch)
        found += batch
        step += 1
    return found


def candidates(lesson: pairs.Lesson, batch: list[pairs.Seen]) -> int:
    """Pieces that may be chosen: neither [CLS], [SEP] nor [UNK]."""
    special = (lesson.special.cls, lesson.special.sep, lesson.special.unk)
    return sum(int((~np.isin(pair.example.ids, special)).sum()) for pair in batch)


def within(count: int, n: int, share: float) -> bool:
    """Whether a count is within four standard deviations of a binomial."""
    return abs(count - n * share) < 4 * np.sqrt(n * share * (1 - share))


def test_shares_over_100_000_pieces_are_binomial(lesson, seen):
    total = candidates(lesson, seen)
    assert total >= TOKENS
    outcomes = np.concatenate([p.corrupted.outcome for p in seen])
    chosen = int((outcomes > 0).sum())
    assert within(chosen, total, 0.15)
    for outcome, share in ((MASKED, 0.8), (RANDOM, 0.1), (KEPT, 0.1)):
        assert within(int((outcomes == outcome).sum()), chosen, share)


def test_special_tokens_are_never_chosen_and_never_put_in(lesson, seen):
    special = [lesson.special.cls, lesson.special.sep, lesson.special.pad, lesson.special.unk]
    for pair in seen:
        assert not np.isin(pair.corrupted.labels, special).any()
        at = pair.corrupted.outcome == RANDOM
        assert not np.isin(pair.corrupted.input_ids[at], [*special, lesson.special.mask]).any()


def test_loss_counts_at_the_chosen_pieces_and_what_is_not_chosen_stays(lesson, seen):
    for pair in seen[:200]:
        outside = np.setdiff1d(np.arange(len(pair.example.ids)), pair.corrupted.positions)
        np.testing.assert_array_equal(pair.corrupted.input_ids[outside], pair.example.ids[outside])
        np.testing.assert_array_equal(pair.corrupted.labels, pair.example.ids[pair.corrupted.positions])


def test_half_of_the_pairs_follow_each_other(lesson, seen):
    labels = np.array([p.example.label for p in seen])
    assert set(labels) == {IS_NEXT, NOT_NEXT}
    assert within(int((labels == IS_NEXT).sum()), len(labels), 0.5)
    follows = {(tuple(a), tuple(b)) for doc in lesson.train for a, b in zip(doc, doc[1:])}
    for pair in seen[:300]:
        first, second = pair.example.ids[1 : pair.example.first - 1], pair.example.ids[pair.example.first : -1]
        if pair.example.label == IS_NEXT:
            assert (tuple(first), tuple(second)) in follows


def test_a_step_sees_the_same_whenever_one_looks(lesson):
    spec = PretrainSpec(seed=4)
    first, again = pairs.seen_at(lesson, spec, 7), pairs.seen_at(lesson, spec, 7)
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.corrupted.input_ids, other.corrupted.input_ids)
    assert any(len(a.example.ids) != len(b.example.ids) or (a.example.ids != b.example.ids).any()
               for a, b in zip(first, pairs.seen_at(lesson, spec, 8), strict=True))


def test_held_out_lines_never_occur_in_training(lesson):
    known = {tuple(sentence) for doc in lesson.train for sentence in doc}
    held = pairs.held_out_pairs(lesson, 100)
    assert len(held) == 100
    for pair in held:
        first, second = pair.example.ids[1 : pair.example.first - 1], pair.example.ids[pair.example.first : -1]
        assert not {tuple(first.tolist()), tuple(second.tolist())} & known
        assert (pair.corrupted.input_ids[pair.corrupted.positions] == lesson.special.mask).all()


@pytest.mark.parametrize("count", [20, 21, 39, 40, 53, 54, 55, 59, 60, 61, 200])
def test_a_short_text_too_is_scored_on_lines_that_it_does_not_learn_from(count):
    split = split_text("\n".join(f"Word{n} meets word{n + 1} at noon." for n in range(count)))
    train, held = ({line for doc in part for line in doc} for part in (split.train, split.held_out))
    assert len(train) + len(held) == count
    assert not train & held
    assert min(map(len, split.held_out)) >= 4
    assert len(train) >= 0.75 * count
    short = pairs.make_lesson(split, learn_vocabulary(split.train))
    assert pairs.scored(short, pairs.held_out_pairs(short, 100)) == (len(held), 0)


def test_a_text_that_can_not_be_divided_is_refused():
    with pytest.raises(ValueError, match="too few sentences to hold some out"):
        split_text("One. Two. Three.")


def test_lines_that_training_has_too_are_counted(lesson):
    repeats = replace(lesson, held_out=lesson.train[:2])
    found = pairs.scored(repeats, pairs.held_out_pairs(repeats, 100))
    assert found.known == found.lines > 3


def test_a_training_line_that_is_cut_to_fit_is_still_known(lesson):
    first, second = list(range(10, 60)), list(range(70, 120))
    long = replace(lesson, train=[[first, second]], held_out=[[first, second]])
    assert pairs.scored(long, pairs.held_out_pairs(long, 20)) == (2, 2)


def test_the_shipped_split_stays_as_it_was_measured():
    split = split_text(shipped_text())
    digest = hashlib.sha256(json.dumps([split.train, split.held_out]).encode()).hexdigest()
    assert digest.startswith("5f4455e96bab7d75")


def test_every_word_of_the_shipped_text_is_one_piece(lesson):
    pieces = lesson.tokenizer.encode(shipped_text()[:20_000], add_special_tokens=False).tokens
    assert not any(piece.startswith("##") or piece == "[UNK]" for piece in pieces)


def test_what_does_not_follow_is_never_the_next_sentence():
    docs = [[(doc, n) for n in range(5)] for doc in range(10, 14)]
    special, rng, follow = pairs.Special(0, 1, 2, 3, 4), np.random.default_rng(0), pairs.followers(docs)
    drawn = (pairs.draw_pair(docs, follow, special, rng, n) for n in range(3000))
    wrong = [pair for pair in drawn if pair.label == NOT_NEXT]
    for pair in wrong:
        _, doc, n, _, other, m, _ = pair.ids.tolist()
        assert (other, m) not in ((doc, n), (doc, n + 1))
    assert len(wrong) > 1000


def test_a_text_whose_held_out_part_is_unknown_is_said(lesson):
    unknown = replace(lesson, held_out=[[(lesson.special.unk,) * 3] * 2])
    with pytest.raises(ValueError, match="held out has no word that the vocabulary"):
        pairs.held_out_pairs(unknown, 10)


def repeating(sentences: int, times: int) -> pairs.Lesson:
    """A text that comes round to its beginning again and again."""
    lines = [f"Word{n} meets word{n + 1} at noon." for n in range(sentences)]
    split = split_text("\n".join(lines * times))
    return pairs.make_lesson(split, learn_vocabulary(split.train))


def sides(example: Example) -> tuple[list[int], list[int]]:
    """The pieces of A and of B."""
    return example.ids[1 : example.first - 1].tolist(), example.ids[example.first : -1].tolist()


def test_in_a_text_that_repeats_itself_the_true_next_sentence_is_never_called_a_false_one():
    lesson = repeating(12, 20)
    follows = {(tuple(a), tuple(b)) for part in (lesson.train, lesson.held_out)
               for doc in part for a, b in itertools.pairwise(doc)}
    for drawn in (sum((pairs.seen_at(lesson, PretrainSpec(batch=32), step) for step in range(60)), []),
                  pairs.held_out_pairs(lesson, 300)):
        found = [pair.example for pair in drawn]
        labels = [example.label for example in found]
        assert set(labels) == {IS_NEXT, NOT_NEXT}
        assert within(labels.count(NOT_NEXT), len(labels), 0.5)
        for example in found:
            a, b = map(tuple, sides(example))
            assert ((a, b) in follows) == (example.label == IS_NEXT)


def test_what_stands_behind_a_refrain_anywhere_is_no_false_next_sentence():
    """A song: twice in each stanza the same line, with another one behind it each time."""
    stanzas = [f"Bird{n} wakes the town.\nWe sing the song.\nThe bell{n} rings.\nWe sing the song." for n in range(40)]
    split = split_text("\n".join(stanzas))
    lesson = pairs.make_lesson(split, learn_vocabulary(split.train))
    follows = {(tuple(a), tuple(b)) for doc in lesson.train for a, b in itertools.pairwise(doc)}
    drawn = sum((pairs.seen_at(lesson, PretrainSpec(batch=32), step) for step in range(40)), [])
    wrong = [tuple(map(tuple, sides(pair.example))) for pair in drawn if pair.example.label == NOT_NEXT]
    assert len(wrong) > 300
    assert not follows & set(wrong)
    assert not [a for a, b in wrong if a == b]


def test_where_there_is_no_other_sentence_a_stands_alone():
    lesson = repeating(1, 60)
    found = [pair.example for step in range(20) for pair in pairs.seen_at(lesson, PretrainSpec(), step)]
    assert {example.label for example in found} == {IS_NEXT, NO_PAIR}
    for example in found:
        a, b = sides(example)
        assert a == lesson.train[0][0]
        assert b == (a if example.label == IS_NEXT else [])


def test_the_pairs_of_the_shipped_text_stay_as_they_were(lesson):
    """Only a step with a true next sentence among the false ones, one in seven hundred, is another than it was."""
    seen = [pair for step in range(100) for pair in pairs.seen_at(lesson, PretrainSpec(), step)]
    drawn = [[pair.example.label, pair.corrupted.input_ids.tolist()] for pair in seen]
    assert hashlib.sha256(json.dumps(drawn).encode()).hexdigest().startswith("ca7c64b0b4a8bd6e")
