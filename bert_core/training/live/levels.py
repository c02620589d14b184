"""What one can reach without understanding: the levels a class sees a model leave behind.

The commonest word; a lookup by the two neighbours, the most that counting next
to the gap can give; and the unigram loss, the plateau of a model that has
learned how often each word occurs and nothing else.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from bert_core.training.live.pairs import Lesson, Pieces, Seen

_EDGE = -1


class Levels(NamedTuple):
    """Scores on the held-out pairs.

    Attributes:
        commonest: accuracy of always saying the commonest word, 0 to 1.
        lookup: accuracy of the word most often seen in training between the
            same two neighbours (which it may see even where they are masked);
            the commonest word where these two were never seen.
        unigram_loss: nats, of predicting each word by its frequency.
    """

    commonest: float
    lookup: float
    unigram_loss: float

    @property
    def best(self) -> float:
        """The better of the two accuracies."""
        return max(self.commonest, self.lookup)


def levels(lesson: Lesson, pairs: Sequence[Seen]) -> Levels:
    """Measure the three levels on held-out pairs."""
    counts = Counter(piece for doc in lesson.train for sentence in doc for piece in sentence)
    del counts[lesson.special.unk]  # no gap hides it
    total, size = sum(counts.values()), lesson.tokenizer.get_vocab_size()
    commonest = counts.most_common(1)[0][0]
    table = neighbour_table(lesson)
    hits, plain, nats, seen = 0, 0, 0.0, 0
    for left, true, right in gaps(pairs, lesson):
        guesses = table.get((left, right))
        hits += (guesses.most_common(1)[0][0] if guesses else commonest) == true
        plain += true == commonest
        nats -= np.log((counts[true] + 1) / (total + size))
        seen += 1
    return Levels(plain / seen, hits / seen, float(nats / seen))


def neighbour_table(lesson: Lesson) -> dict[tuple[int, int], Counter]:
    """(left, right) neighbour -> how often each piece stood between them in training."""
    table: dict[tuple[int, int], Counter] = defaultdict(Counter)
    for doc in lesson.train:
        for sentence in doc:
            for left, piece, right in _triples(sentence):
                if piece != lesson.special.unk:
                    table[left, right][piece] += 1
    return dict(table)


def _triples(sentence: Pieces) -> Iterator[tuple[int, int, int]]:
    framed = [_EDGE, *sentence, _EDGE]
    return zip(framed, framed[1:], framed[2:])


def gaps(pairs: Sequence[Seen], lesson: Lesson) -> Iterator[tuple[int, int, int]]:
    """(left neighbour, true piece, right neighbour) of every chosen position."""
    edges = {lesson.special.cls, lesson.special.sep}
    for pair in pairs:
        ids = [_EDGE if i in edges else int(i) for i in pair.example.ids]
        for position in pair.corrupted.positions:
            yield ids[position - 1], ids[position], ids[position + 1]
