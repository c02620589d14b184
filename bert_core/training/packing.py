"""Whole-sentence packing into the pairs that BERT is pre-trained on.

Devlin et al. 2018, section 3.1 and appendix A.2: [CLS] A [SEP] B [SEP], B the
real next sentences half of the time. Half of the false ones come from the same
document, so that the task is order and not topic. Everything is drawn from one
seed, so the twins read the identical pairs in the same order.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tokenizers import Tokenizer

from bert_core.loading.files import in_place_of
from bert_core.training.ahead import ahead
from bert_core.training.corpus import sentences
from bert_core.training.pieces import Pieces

#: Most pieces of a source that are packed as one; the others begin from seeds of their own.
PART_TOKENS = 20_000_000
#: Sequences whose ids are gathered at a time when they change their order.
SEQUENCES_A_TIME = 100_000
#: Documents that are tokenised together.
TOGETHER = 256

IS_NEXT, NOT_NEXT, NO_PAIR = 0, 1, -1

Sentence = list[int]


class Special(NamedTuple):
    """Ids of the special tokens."""

    pad: int
    unk: int
    cls: int
    sep: int
    mask: int

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Special:
        if not isinstance(tokenizer, Tokenizer):  # some families have theirs in Python only
            raise ValueError(f"{type(tokenizer).__name__} is no tokenizer.json; training and its scores need one")
        ids = [tokenizer.token_to_id(t) for t in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")]
        if None in ids:
            raise ValueError("the tokenizer lacks one of [PAD] [UNK] [CLS] [SEP] [MASK]")
        return cls(*ids)


class Lengths(NamedTuple):
    """How long the packed sequences are, specials included.

    Attributes:
        usual: length of most sequences.
        longest: length of `long_share` of them, so that long inputs work.
        short_share: share with a length drawn evenly from 12 to `usual`.
    """

    usual: int = 128
    longest: int = 512
    long_share: float = 0.02
    short_share: float = 0.15

    def draw(self, rng: np.random.Generator) -> int:
        chance = rng.random()
        if chance < self.long_share:
            return self.longest
        if chance < self.long_share + self.short_share:
            return int(rng.integers(12, self.usual + 1))
        return self.usual


USUAL_LENGTHS = Lengths()


class Example(NamedTuple):
    """One packed sequence.

    Attributes:
        ids: (T,) with [CLS] and [SEP], not padded.
        first: length of the first segment, [CLS] and its [SEP] included.
        label: IS_NEXT, NOT_NEXT, or NO_PAIR where there is one segment only.
        index: its number in the packed corpus; seeds its corruption.
    """

    ids: np.ndarray
    first: int
    label: int
    index: int


@dataclass(frozen=True)
class Packed:
    """All sequences of a run, in the order in which they are read.

    Attributes:
        ids: every sequence behind the other, uint16 or int32.
        offsets: (n + 1,) where each one starts.
        first, label: (n,) as in Example.
        origin: what they were packed with, as far as their file says it.
    """

    ids: np.ndarray
    offsets: np.ndarray
    first: np.ndarray
    label: np.ndarray
    origin: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.label)

    def __getitem__(self, index: int) -> Example:
        ids = self.ids[self.offsets[index] : self.offsets[index + 1]].astype(np.int64)
        return Example(ids, int(self.first[index]), int(self.label[index]), index)

    @property
    def tokens(self) -> int:
        """Pieces in all, specials included."""
        return int(self.offsets[-1])

    @property
    def longest(self) -> int:
        """Pieces of the longest sequence."""
        return int(np.diff(self.offsets).max())

    def save(self, path: Path, origin: Mapping[str, Any] | None = None) -> None:
        """Write to `path` at once or not at all; `origin` says what the pairs were packed with."""
        with in_place_of(path) as part, part.open("wb") as file:
            np.savez(file, ids=self.ids, offsets=self.offsets, first=self.first, label=self.label,
                     origin=json.dumps(origin or {}))

    @classmethod
    def load(cls, path: Path, origin: Mapping[str, Any] | None = None) -> Packed:
        """Read a packed file.

        Args:
            origin: what it should have been packed with; what a file of an
                older version doesn't say passes.

        Raises:
            ValueError: it was packed with something else, or is no packed file.
        """
        try:
            with np.load(path, allow_pickle=False) as data:
                stored = json.loads(str(data["origin"])) if "origin" in data else {}
                found = cls(data["ids"], data["offsets"], data["first"], data["label"], stored)
        except (KeyError, EOFError, TypeError, AttributeError, ValueError, zipfile.BadZipFile):
            raise ValueError(f"{path} holds no packed pairs") from None
        for name, wanted in (origin or {}).items():
            if stored.get(name, wanted) != wanted:
                raise ValueError(f"{path} was packed with {name} {stored[name]!r}, not {wanted!r}; "
                                 "give what it was packed with, or another --packed file")
        return found

    @classmethod
    def of(cls, rows: Sequence[tuple[Sentence, int, int]], vocab_size: int) -> Packed:
        """Join (ids, first, label) rows."""
        dtype = np.uint16 if vocab_size <= 2**16 else np.int32
        lengths = np.array([len(row[0]) for row in rows], dtype=np.int64)
        ids = np.concatenate([np.asarray(row[0], dtype=dtype) for row in rows])
        first, label = (np.array([row[k] for row in rows], dtype=np.int32) for k in (1, 2))
        return cls(ids, np.concatenate([[0], np.cumsum(lengths)]), first, label)

    def in_order(self, order: np.ndarray) -> Packed:
        """The sequences that `order` (n,) names, in its order; some at a time, as 400 million pieces are many."""
        lengths = np.diff(self.offsets)[order]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        ids = np.empty(int(offsets[-1]), dtype=self.ids.dtype)
        for at in range(0, len(order), SEQUENCES_A_TIME):
            chosen = order[at : at + SEQUENCES_A_TIME]
            bounds = zip(self.offsets[chosen], self.offsets[chosen + 1], strict=True)
            end = min(at + SEQUENCES_A_TIME, len(order))
            ids[offsets[at] : offsets[end]] = np.concatenate([self.ids[a:b] for a, b in bounds])
        return Packed(ids, offsets, self.first[order], self.label[order])


def joined(parts: Sequence[Packed]) -> Packed:
    """The sequences of all parts, one part behind the other."""
    before = np.cumsum([0, *(part.tokens for part in parts)])[:-1]
    offsets = [part.offsets[1:] + start for part, start in zip(parts, before, strict=True)]
    ids, first, label = (np.concatenate([getattr(part, name) for part in parts]) for name in ("ids", "first", "label"))
    return Packed(ids, np.concatenate([[0], *offsets]), first, label)


def vocabulary_digest(tokenizer: Tokenizer) -> str:
    """Of pieces and ids: two tokenizers of one digest mean the same by an id."""
    return hashlib.sha256(json.dumps(sorted(tokenizer.get_vocab().items())).encode()).hexdigest()


def pack(
    texts: Mapping[str, Sequence[str] | Pieces], mix: Mapping[str, float], tokenizer: Tokenizer, tokens: int,
    lengths: Lengths = USUAL_LENGTHS, excerpt: int = 1200, seed: int = 0, workers: int = 0,
) -> Packed:
    """Pack a weighted mix of sources into shuffled pairs.

    Args:
        texts: source name -> documents, as text or tokenised before.
        mix: source name -> share of the pieces; a small source is read as
            often as its share asks for.
        tokens: pieces wanted in all, specials included; reached within one
            sequence a source.
        excerpt: most pieces taken from one document at a time.
        workers: processes that pack side by side; what comes out is the same
            for any number.

    Raises:
        ValueError: a source has no text.
    """
    parts = _Parts(texts, _parts_of(mix, tokens), tokenizer, lengths, excerpt, seed)
    done: list[Packed] = []
    for found in ahead(parts, range(len(parts)), workers):
        if isinstance(found, ValueError):
            raise found
        done.append(found)
    order = np.random.default_rng((seed, len(mix))).permutation(sum(map(len, done)))
    return joined(done).in_order(order)


class _Part(NamedTuple):
    """A stretch of what one source gives: its name, what seeds it beside the run's seed, and its pieces."""

    name: str
    seed: tuple[int, ...]
    tokens: float


def _parts_of(mix: Mapping[str, float], tokens: int) -> list[_Part]:
    """Every source in turn, a large one in parts that can be packed side by side."""
    found = []
    for number, (name, share) in enumerate(sorted(mix.items())):
        wanted, part = share * tokens, 0
        while part == 0 or wanted > 0:
            found.append(_Part(name, (number, part) if part else (number,), min(wanted, PART_TOKENS)))
            wanted, part = wanted - PART_TOKENS, part + 1
    return found


@dataclass(frozen=True)
class _Parts:
    """The parts of a corpus, each packed when it is asked for, in whatever process asks."""

    texts: Mapping[str, Sequence[str] | Pieces]
    parts: Sequence[_Part]
    tokenizer: Tokenizer
    lengths: Lengths
    excerpt: int
    seed: int

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, index: int) -> Packed | ValueError:
        """A process that ends with an error tells its parent a traceback; so what went wrong is a value here."""
        part, special = self.parts[index], Special.of(self.tokenizer)
        rng, source = np.random.default_rng((self.seed, *part.seed)), self.texts[part.name]
        if isinstance(source, Pieces):
            excerpts = _tokenised_excerpts(part.name, source, self.excerpt, rng)
        else:
            excerpts = _excerpts(part.name, source, self.tokenizer, self.excerpt, rng)
        try:
            rows = _take(_pairs(excerpts, self.lengths, special, rng), part.tokens)
        except ValueError as error:
            return error
        return Packed.of(rows, self.tokenizer.get_vocab_size())


def _take(rows: Iterator[tuple[Sentence, int, int]], wanted: float) -> list[tuple[Sentence, int, int]]:
    taken, total = [], 0
    for row in rows:
        taken.append(row)
        total += len(row[0])
        if total >= wanted:
            break
    return taken


def _excerpts(
    name: str, docs: Sequence[str], tokenizer: Tokenizer, limit: int, rng: np.random.Generator
) -> Iterator[list[Sentence]]:
    """Stretches of whole sentences, pass after pass over the documents in a new order."""
    while True:
        pieces_seen = 0
        order = rng.permutation(len(docs))
        for start in range(0, len(order), TOGETHER):
            chosen = [_stretch(sentences(docs[i]), limit, rng) for i in order[start : start + TOGETHER]]
            flat = tokenizer.encode_batch([s for doc in chosen for s in doc], add_special_tokens=False)
            pieces = iter(flat)
            for doc in chosen:
                encoded = [next(pieces).ids for _ in doc]
                pieces_seen += sum(map(len, encoded))
                yield [ids for ids in encoded if ids]
        if not pieces_seen:
            raise _no_documents(name)


def _tokenised_excerpts(name: str, docs: Pieces, limit: int, rng: np.random.Generator) -> Iterator[list[Sentence]]:
    """The same from a source that was tokenised before; its stretches are counted in pieces, not in letters."""
    if not docs.tokens:
        raise _no_documents(name)
    while True:
        for number in rng.permutation(len(docs)):
            yield docs.stretch(int(number), limit, rng)


def _no_documents(name: str) -> ValueError:
    return ValueError(f"no documents in {name!r}; a source of the mix needs text")


def _stretch(doc: list[str], limit: int, rng: np.random.Generator) -> list[str]:
    """A run of sentences from a random start, about `limit` pieces long (5 letters a piece)."""
    letters = np.cumsum([len(s) for s in doc])
    room = max(1, int(np.searchsorted(letters, max(0, letters[-1] - 5 * limit))) + 1) if doc else 1
    start = int(rng.integers(room))
    taken, total = [], 0
    for sentence in doc[start:]:
        taken.append(sentence)
        total += len(sentence)
        if total >= 5 * limit:
            break
    return taken


def _pairs(
    excerpts: Iterator[list[Sentence]], lengths: Lengths, special: Special, rng: np.random.Generator
) -> Iterator[tuple[Sentence, int, int]]:
    """Rows (ids, first, label) from one excerpt after the other."""
    others: deque[list[Sentence]] = deque(maxlen=64)
    for doc in excerpts:
        if not doc:
            continue
        at = 0
        while at < len(doc):
            room = lengths.draw(rng) - 3
            row, at = _one(doc, at, room, others, special, rng)
            yield row
        others.append(doc)


def _one(
    doc: list[Sentence], at: int, room: int, others: Sequence[list[Sentence]], special: Special,
    rng: np.random.Generator,
) -> tuple[tuple[Sentence, int, int], int]:
    """One row from `doc[at:]`, and where the next one starts."""
    end = at + _fitting(doc, at, room)
    if end - at < 2 or room < 6:
        return _row(doc[at : at + 1], None, room, special, NO_PAIR), at + 1
    middle = at + int(rng.integers(1, end - at))
    if rng.random() < 0.5:
        return _row(doc[at:middle], doc[middle:end], room, special, IS_NEXT), end
    left = room - sum(map(len, doc[at:middle]))
    false = _false_next(doc, at, middle, others, left, rng)
    if false is None:
        return _row(doc[at:middle], None, room, special, NO_PAIR), middle
    source, start = false
    stop = start + _fitting(source, start, left)
    if source is doc and start < at:
        stop = min(stop, at)
    return _row(doc[at:middle], source[start:stop], room, special, NOT_NEXT), middle


def _fitting(doc: list[Sentence], at: int, room: int) -> int:
    """How many whole sentences from `at` on fit into `room` pieces."""
    total = 0
    for count, sentence in enumerate(doc[at:]):
        total += len(sentence)
        if total > room:
            return count
    return len(doc) - at


def _false_next(
    doc: list[Sentence], at: int, middle: int, others: Sequence[list[Sentence]], left: int, rng: np.random.Generator
) -> tuple[list[Sentence], int] | None:
    """Where a false second segment starts: half of the time in the same document.

    Never with the true next sentence, which another excerpt holds too where a small corpus is read again, and never
    with one longer than the room that is `left`: cut off, it would give itself away, as a true one is always whole.
    """
    true = doc[middle]
    here = [i for i in range(len(doc)) if (i < at or i > middle) and doc[i] != true and len(doc[i]) <= left]
    if here and (rng.random() < 0.5 or not others):
        return doc, here[int(rng.integers(len(here)))]
    if not others:
        return None
    other = others[int(rng.integers(len(others)))]
    there = [i for i in range(len(other)) if other[i] != true and len(other[i]) <= left]
    return (other, there[int(rng.integers(len(there)))]) if there else None


def _row(
    first: list[Sentence], second: list[Sentence] | None, room: int, special: Special, label: int
) -> tuple[Sentence, int, int]:
    """[CLS] A [SEP] B [SEP]; only a sentence longer than the room is cut."""
    a = [i for sentence in first for i in sentence][:room]
    ids = [special.cls, *a, special.sep]
    if second is None:
        return ids, len(ids), label
    b = [i for sentence in second for i in sentence][: max(1, room - len(a))]
    return [*ids, *b, special.sep], len(ids), label


def unigram_log_frequency(packed: Packed, vocab_size: int) -> np.ndarray:
    """(V,) log relative frequency of each piece, in nats, one added to every count."""
    counts = np.bincount(packed.ids, minlength=vocab_size)[:vocab_size] + 1.0
    return np.log(counts / counts.sum())
