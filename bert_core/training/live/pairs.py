"""Sentence pairs for a live pre-training, and what a step sees of them.

Devlin et al. 2018, section 3.1 and appendix A.2: [CLS] A [SEP] B [SEP], where B
follows A in half of the pairs and comes from anywhere else in the other half.
Every batch depends on the seed and its step only, so that a page can show what
step 312 saw without anybody having kept it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from tokenizers import Tokenizer

from bert_core.training.corruption import Corrupted, corrupt
from bert_core.training.live.specs import SPLITS, PretrainSpec
from bert_core.training.live.text import Text, learn_vocabulary, shipped_split, split_text
from bert_core.training.objectives import Batch, Objective, Sample
from bert_core.training.packing import IS_NEXT, NO_PAIR, NOT_NEXT, Example, Special

#: Longest pair in pieces, specials included; rows of the position table.
MAX_TOKENS = 64

Pieces = list[int]
#: Sentence -> all sentences that stand behind it somewhere.
Followers = dict[tuple[int, ...], set[tuple[int, ...]]]


@dataclass(frozen=True)
class Lesson:
    """A text as piece ids.

    Attributes:
        tokenizer: the vocabulary learned from the text.
        special: ids of the special tokens.
        train, held_out: documents, each a list of sentences of piece ids.
    """

    tokenizer: Tokenizer
    special: Special
    train: tuple[list[Pieces], ...]
    held_out: tuple[list[Pieces], ...]

    @property
    def random_ids(self) -> np.ndarray:
        """(R,) ids that a random replacement is drawn from: all but the specials."""
        return np.arange(max(self.special) + 1, self.tokenizer.get_vocab_size())

    @cached_property
    def followers(self) -> Followers:
        """What follows what in `train`."""
        return followers(self.train)


class Seen(NamedTuple):
    """One pair as a training step sees it.

    Attributes:
        example: the pair before anything was chosen.
        corrupted: ids, chosen positions, labels and outcome.
    """

    example: Example
    corrupted: Corrupted


def make_lesson(text: Text, tokenizer: Tokenizer) -> Lesson:
    """Turn sentences into piece ids; each keeps its place in its document."""
    def encoded(part: Sequence[list[str]]) -> tuple[list[Pieces], ...]:
        return tuple([e.ids for e in tokenizer.encode_batch(d, add_special_tokens=False)] for d in part)

    return Lesson(tokenizer, Special.of(tokenizer), encoded(text.train), encoded(text.held_out))


@lru_cache(maxsize=1)
def shipped_lesson() -> Lesson:
    """The shipped stories with their own vocabulary: most runs of a trainer begin with them."""
    return _with_its_words(shipped_split())


def lesson_of(text: str | None) -> Lesson:
    """A text as piece ids, with its own vocabulary; without one the shipped text."""
    return shipped_lesson() if text is None else _with_its_words(split_text(text))


def _with_its_words(text: Text) -> Lesson:
    return make_lesson(text, learn_vocabulary(text.train))


#: Draws of a sentence that does not follow; a text that says little else has none.
_MOST_DRAWS = 20


def followers(docs: Sequence[list[Pieces]]) -> Followers:
    """What follows what: a refrain stands in many places and has other sentences behind it there."""
    found: Followers = {}
    for doc in docs:
        for first, second in itertools.pairwise(map(tuple, doc)):
            found.setdefault(first, set()).add(second)
    return found


def draw_pair(
    docs: Sequence[list[Pieces]], follow: Followers, special: Special, rng: np.random.Generator, index: int
) -> Example:
    """One pair [CLS] A [SEP] B [SEP]; [CLS] A [SEP] from a document of one sentence, or where no other B is found.

    Args:
        follow: `followers` of the docs.
    """
    doc = docs[rng.integers(len(docs))]
    at = int(rng.integers(max(1, len(doc) - 1)))
    if len(doc) < 2:
        second, label = None, NO_PAIR
    elif rng.random() < 0.5:
        second, label = doc[at + 1], IS_NEXT
    else:
        second = _other_sentence(docs, doc[at], follow[tuple(doc[at])], rng)
        label = NO_PAIR if second is None else NOT_NEXT
    return join_pair(doc[at], second, label, special, index)


def _other_sentence(
    docs: Sequence[list[Pieces]], first: Pieces, follow: set[tuple[int, ...]], rng: np.random.Generator
) -> Pieces | None:
    """Any sentence but the same and those that follow it somewhere; None if a few draws find none."""
    for _ in range(_MOST_DRAWS):
        other = docs[rng.integers(len(docs))]
        found = other[int(rng.integers(len(other)))]
        if found != first and tuple(found) not in follow:
            return found
    return None


def join_pair(first: Pieces, second: Pieces | None, label: int, special: Special, index: int) -> Example:
    """[CLS] A [SEP] B [SEP], the longer sentence cut until it fits into MAX_TOKENS."""
    a, b = list(first), list(second or [])
    while len(a) + len(b) > MAX_TOKENS - 3:
        (a if len(a) > len(b) else b).pop()
    ids = [special.cls, *a, special.sep]
    start = len(ids)
    if second is not None:
        ids += [*b, special.sep]
    return Example(np.array(ids), start, label, index)


def see(example: Example, lesson: Lesson, spec: PretrainSpec, rng: np.random.Generator) -> Seen:
    """Choose pieces of one pair and replace them, as `spec` says."""
    special = lesson.special
    fixed = np.isin(example.ids, (special.cls, special.sep, special.unk))
    return Seen(example, corrupt(example.ids, fixed, special.mask, lesson.random_ids, rng, spec.rate,
                                 SPLITS[spec.split]))


def seen_at(lesson: Lesson, spec: PretrainSpec, step: int) -> list[Seen]:
    """The pairs of step `step` (0-based); nothing but the spec's seed decides."""
    rng = np.random.default_rng((spec.seed, step))
    return [see(draw_pair(lesson.train, lesson.followers, lesson.special, rng, n), lesson, spec, rng)
            for n in range(spec.batch)]


def to_sample(seen: Seen, nsp: bool) -> Sample:
    """What the loss needs of one pair."""
    example, corrupted = seen
    segments = (np.arange(len(example.ids)) >= example.first).astype(np.int64)
    return Sample(corrupted.input_ids, segments, corrupted.positions, corrupted.labels,
                  example.label if nsp else NO_PAIR)


def to_batch(pairs: Sequence[Seen], lesson: Lesson, nsp: bool = True) -> Batch:
    """Pad the pairs to one batch of tensors."""
    objective = Objective("mlm", lesson.special, lesson.random_ids)
    return objective.collate([to_sample(pair, nsp) for pair in pairs])


#: Seeds the held-out pairs, apart from every run's seed.
PROBE_SEED = 10_000


def held_out_pairs(lesson: Lesson, count: int) -> list[Seen]:
    """Pairs of lines that never occur in training, 15 % of the pieces hidden by [MASK].

    The same pairs and positions for every spec, so that runs can be compared.
    A text without such lines (one that repeats itself) is measured on its
    held-out documents as they are; `scored` says so.

    Raises:
        ValueError: nothing there can be hidden: every piece is unknown.
    """
    known = _known(lesson)
    fresh = _draw_held_out(lesson, count, known)
    found = fresh if len(fresh) > count // 10 else _draw_held_out(lesson, count, set())
    if not found:
        raise ValueError("the part of the text that is held out has no word that the vocabulary learned from the rest "
                         "knows; give a longer text, in one script, with words of at most 100 letters")
    return found


class Scored(NamedTuple):
    """What held-out pairs are made of.

    Attributes:
        lines: how many different ones.
        known: how many of these occur in training too.
    """

    lines: int
    known: int


def scored(lesson: Lesson, pairs: Sequence[Seen]) -> Scored:
    """Count the lines of held-out pairs."""
    lines = {line for pair in pairs for line in _lines(pair.example)}
    return Scored(len(lines), len(lines & _known(lesson)))


#: Pieces by which a line is known again: what `join_pair` leaves of each at least.
_BEGINNING = (MAX_TOKENS - 3) // 2


def _known(lesson: Lesson) -> set[tuple[int, ...]]:
    """Beginnings of every training line."""
    return {tuple(sentence[:_BEGINNING]) for doc in lesson.train for sentence in doc}


def _draw_held_out(lesson: Lesson, count: int, known: set[tuple[int, ...]]) -> list[Seen]:
    """Up to `count` pairs of which neither line is in `known`."""
    spec, drawn, follow = PretrainSpec(split="100/0/0"), [], followers((*lesson.train, *lesson.held_out))
    for index in range(40 * count):
        rng = np.random.default_rng((PROBE_SEED, index))
        example = draw_pair(lesson.held_out, follow, lesson.special, rng, index)
        if known.isdisjoint(_lines(example)):
            pair = see(example, lesson, spec, rng)
            if len(pair.corrupted.positions):
                drawn.append(pair)
        if len(drawn) == count:
            break
    return drawn


def _lines(example: Example) -> set[tuple[int, ...]]:
    """Beginnings of A and of B, if there is a B."""
    a, b = example.ids[1 : example.first - 1].tolist(), example.ids[example.first : -1].tolist()
    return {tuple(line[:_BEGINNING]) for line in (a, b) if line}
