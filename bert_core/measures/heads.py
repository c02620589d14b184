"""What a head is for, tested on sentences that the project ships (after Clark et al. 2019, section 4).

A relation is tested at word level in both directions: from the dependent to its
head word and back. A head is chosen on one half of the sentences and scored on
the other, since the best of many heads looks good on what it was chosen by.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bert_core.measures.attention import merge_words, separator_positions
from bert_core.serving import EVERYONE, Engine
from bert_core.tokenizer import Encoding
from bert_core.trace import Array, Trace, TraceRequest

CORPUS = Path(__file__).resolve().parents[2] / "assets" / "head_corpus" / "sentences.txt"
RELATIONS = ("det", "amod", "poss", "nsubj", "dobj", "pobj", "aux", "prt")
DIRECTIONS = ("dependent to head", "head to dependent")
#: Plain roles: where the largest weight of a row points.
PLACES = ("previous", "next", "itself", "[CLS]", "[SEP]", "full stop")
STOPS = (".", "?", "!")
#: Fixed distances tried as the baseline, in words.
OFFSETS = tuple(offset for offset in range(-6, 7) if offset)
#: Few enough for memory; but in a full class every call waits for a whole round of the others' turns.
SENTENCES_A_CALL = 50
#: A relation's role needs this much above the best fixed distance; a place's role this share.
MARGIN, PLACE_SHARE = 0.10, 0.50
#: What chance may do in fewer than one of twenty such tests is taken for more than chance.
CHANCE = 0.05


@dataclass(frozen=True)
class Sentence:
    """Words and, for each annotated word, (relation, dependent, head), counted in words."""

    words: tuple[str, ...]
    relations: tuple[tuple[str, int, int], ...]


@functools.cache
def head_corpus() -> tuple[Sentence, ...]:
    """The shipped sentences, in order."""
    lines = CORPUS.read_text(encoding="utf-8").splitlines()
    return tuple(parse_sentence(line) for line in lines if line and not line.startswith("#"))


def parse_sentence(line: str) -> Sentence:
    """'The/det:dog dog/nsubj:ran ran .' -> a Sentence; the head is the nearest word spelled so.

    Raises:
        ValueError: an unknown relation, or a head that isn't in the sentence.
    """
    items = [item.split("/", 1) for item in line.split()]
    words = tuple(item[0] for item in items)
    relations = []
    for place, item in enumerate(items):
        if len(item) == 1:
            continue
        name, _, head = item[1].partition(":")
        spots = [n for n, word in enumerate(words) if word == head and n != place]
        if name not in RELATIONS or not spots:
            raise ValueError(f"{'/'.join(item)!r} in {line!r}: unknown relation, or no such head word")
        relations.append((name, place, min(spots, key=lambda n: (abs(n - place), n))))
    return Sentence(words, tuple(relations))


class RelationTest(NamedTuple):
    """One relation on the corpus.

    Attributes:
        name: of RELATIONS.
        n: cases in the half that is scored.
        layer, head: 0-based, chosen on the other half.
        direction: of DIRECTIONS, chosen with it.
        accuracy: of that head on the scored half, 0 to 1.
        baseline: of the best fixed distance, chosen and scored the same way.
        offset: that distance in words.
        chance: how often a fair coin would favour the head at least so much, over the scored
            cases in which one of the two is right and the other is not; 0 to 1.
    """

    name: str
    n: int
    layer: int
    head: int
    direction: str
    accuracy: float
    baseline: float
    offset: int
    chance: float

    @property
    def verdict(self) -> str:
        """What the scored half says of the head, in words."""
        if self.accuracy < self.baseline + MARGIN:
            return "no better"
        return "stands out" if self.chance < CHANCE else "too few cases"


class HeadRoles(NamedTuple):
    """Everything that was tested for one model.

    Attributes:
        sentences: how many were read.
        tests: one for each relation.
        accuracy: (R, 2, L, H), each head's accuracy over all sentences.
        cases: (R,), how many each of these stands on.
        baselines: (R, 2), best fixed distance over all sentences.
        chance: (R, 2, L, H), `sign_test` of each head against that distance; 0 to 1.
        places: (6, L, H), share of tokens whose largest weight points there.
    """

    sentences: int
    tests: tuple[RelationTest, ...]
    accuracy: Array
    cases: Array
    baselines: Array
    chance: Array
    places: Array


def measure_roles(engine: Engine, model: str | None, corpus: Sequence[Sentence] | None = None) -> HeadRoles:
    """Test every head of a model on every relation and place.

    Args:
        corpus: the shipped sentences if None.
    """
    corpus = head_corpus() if corpus is None else corpus
    hits: list[list[Array]] = [[] for _ in RELATIONS]  # each (2, L, H) of bool
    fixed: list[list[Array]] = [[] for _ in RELATIONS]  # each (2, offsets) of bool
    halves: list[list[int]] = [[] for _ in RELATIONS]
    places = []
    traces = corpus_traces(engine, model, corpus, ("attention_probs",))
    for number, (sentence, trace) in enumerate(zip(corpus, traces, strict=True)):
        targets = word_targets(trace, len(sentence.words))  # (L, H, W)
        places.append(place_shares(trace))
        for name, dependent, head in sentence.relations:
            row, ways = RELATIONS.index(name), ((dependent, head), (head, dependent))
            hits[row].append(np.stack([targets[:, :, start] == end for start, end in ways]))
            fixed[row].append(np.array([[end - start == offset for offset in OFFSETS] for start, end in ways]))
            halves[row].append(number % 2)
    stacked = [(np.array(h), np.array(f), np.array(half)) for h, f, half in zip(hits, fixed, halves, strict=True)]
    tests = tuple(_score(name, *parts) for name, parts in zip(RELATIONS, stacked, strict=True) if len(parts[0]))
    return HeadRoles(
        len(corpus), tests, np.stack([h.mean(axis=0) for h, _, _ in stacked]),
        np.array([len(h) for h, _, _ in stacked]), np.stack([f.mean(axis=0).max(axis=-1) for _, f, _ in stacked]),
        np.stack([_chances(h, f) for h, f, _ in stacked]), np.mean(places, axis=0),
    )


def corpus_traces(
    engine: Engine, model: str | None, corpus: Sequence[Sentence], parts: tuple[str, ...]
) -> Iterator[Trace]:
    """A Trace of every sentence, some at a time, each with its own turn among the visitors', and none kept."""
    requests = [TraceRequest(" ".join(s.words), model=model, parts=parts) for s in corpus]
    for first in range(0, len(requests), SENTENCES_A_CALL):
        yield from engine.run_many(requests[first:first + SENTENCES_A_CALL], EVERYONE, keep=False)


def _score(name: str, hits: Array, fixed: Array, half: Array) -> RelationTest:
    """Choose head and distance where half is 0, score them where it is 1.

    Args:
        hits: (n, 2, L, H); fixed: (n, 2, offsets); half: (n,).
    """
    chosen, scored = half == 0, half == 1
    means = hits[chosen].mean(axis=0)
    way, layer, head = np.unravel_index(means.argmax(), means.shape)
    offset = fixed[chosen][:, way].mean(axis=0).argmax()
    ours, rule = hits[scored][:, way, layer, head], fixed[scored][:, way, offset]
    return RelationTest(
        name, int(scored.sum()), int(layer), int(head), DIRECTIONS[way], float(ours.mean()), float(rule.mean()),
        OFFSETS[offset], sign_test(int((ours & ~rule).sum()), int((rule & ~ours).sum())))


def _chances(hits: Array, fixed: Array) -> Array:
    """(2, L, H): sign test of every head against the best fixed distance, where one is right and the other is not.

    Args:
        hits: (n, 2, L, H); fixed: (n, 2, offsets).
    """
    best = fixed.mean(axis=0).argmax(axis=-1)  # (2,)
    rule = np.take_along_axis(fixed, best[None, :, None], axis=-1)[..., None]  # (n, 2, 1, 1)
    won, lost = (hits & ~rule).sum(axis=0), (rule & ~hits).sum(axis=0)
    return np.array([sign_test(*pair) for pair in zip(won.ravel().tolist(), lost.ravel().tolist(), strict=True)]
                    ).reshape(won.shape)


@functools.lru_cache(maxsize=4096)
def sign_test(won: int, lost: int) -> float:
    """Probability that of so many throws a fair coin shows heads `won` times or more (exact)."""
    throws = won + lost
    return sum(math.comb(throws, k) for k in range(won, throws + 1)) / 2**throws


def word_targets(trace: Trace, words: int) -> Array:
    """(L, H, W): the other word that each word attends to most; specials don't count.

    -1 for a word that is cut off, and for one that sees no other, as a one-way model's first.
    """
    groups = corpus_groups(trace, words)
    merged = merge_words(trace.attention_probs, groups)  # (L, H, W, W)
    merged[..., np.arange(words), np.arange(words)] = -1.0
    looks = [bool(pieces) for pieces in groups] & (merged.max(axis=-1) > 0)  # (L, H, W)
    return np.where(looks, merged.argmax(axis=-1), -1)


def corpus_groups(trace: Trace, words: int) -> list[list[int]]:
    """Positions of the pieces of each word between spaces."""
    text, groups = trace.encoding.text, [[] for _ in range(words)]
    for position, (start, _) in enumerate(trace.encoding.offsets):
        if not trace.encoding.special[position]:
            lead = len(text[start:]) - len(text[start:].lstrip())  # some tokenizers count the space in
            groups[text[:start + lead].count(" ")].append(position)
    return groups


def place_shares(trace: Trace) -> Array:
    """(6, L, H): share of content tokens whose largest weight points to each of PLACES; 0 where there is no content.

    The first token counts as [CLS] only where it is a special token.
    """
    encoding = trace.encoding
    content = np.array(encoding.content, dtype=int)
    target = trace.attention_probs[:, :, content].argmax(axis=-1)  # (L, H, C)
    stops = [i for i in content if _written(encoding, i) in STOPS or encoding.tokens[i] in STOPS]
    hits = (target == content - 1, target == content + 1, target == content, (target == 0) & encoding.special[0],
            np.isin(target, separator_positions(encoding)), np.isin(target, stops))
    return np.stack([hit.sum(axis=-1) for hit in hits]) / max(len(content), 1)


def _written(encoding: Encoding, position: int) -> str:
    """A token as it stands in the text, without the space that some tokenizers put into it."""
    text = (encoding.pair if encoding.sequence_ids[position] else encoding.text) or ""
    start, end = encoding.offsets[position]
    return text[start:end].strip()


class Role(NamedTuple):
    """What one head seems to be for, and on what evidence."""

    name: str
    score: float
    baseline: float | None
    n: int


def roles_of(roles: HeadRoles, layer: int, head: int) -> tuple[Role, ...]:
    """The clear roles of a head: at most one place and one relation, none where nothing stands out.

    A place needs half of the rows; a relation needs MARGIN above the best fixed
    distance, and that by more than chance would do once in all that is searched: every
    relation, read in either direction, of every head (Bonferroni). A head that rests
    on a special token may still point at a relation with what is left, since
    relations are tested without specials.
    """
    found = []
    places = roles.places[:, layer, head]
    if places.max() >= PLACE_SHARE:
        found.append(Role(PLACES[places.argmax()], float(places.max()), None, roles.sentences))
    is_clear = roles.chance[:, :, layer, head] < CHANCE / roles.chance.size  # (R, 2), of all R 2 L H
    above = np.where(is_clear, roles.accuracy[:, :, layer, head] - roles.baselines, 0.0)
    relation, way = np.unravel_index(above.argmax(), above.shape)
    if above[relation, way] >= MARGIN:
        accuracy = float(roles.accuracy[relation, way, layer, head])
        baseline, cases = float(roles.baselines[relation, way]), int(roles.cases[relation])
        found.append(Role(f"{RELATIONS[relation]}, {DIRECTIONS[way]}", accuracy, baseline, cases))
    return tuple(found)


def place_holds(shares: Array, role: Role, layer: int, head: int) -> bool | None:
    """Whether a place role holds on this text too; None for a relation, which needs a parse.

    Args:
        shares: (6, L, H), place_shares of the text.
    """
    if role.name not in PLACES:
        return None
    return bool(shares[PLACES.index(role.name), layer, head] >= PLACE_SHARE)
