"""Text to WordPiece tokens with ids, segments, and word and character alignment.

A thin layer over the `tokenizers` library (Devlin et al. 2018, section 3, for
the [CLS] A [SEP] B [SEP] form; Wu et al. 2016, arXiv 1609.08144, for WordPiece).
It imports no transformers, which would cost two seconds at start-up.
"""

from __future__ import annotations

import bisect
import functools
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tokenizers import Tokenizer as FastTokenizer

from bert_core.loading.files import MAX_JSON
from bert_core.loading.word_pieces import as_settings_say, from_vocabulary, special_settings

MASK = "[MASK]"
#: Role -> BERT's own name for it.
ROLES = {"cls": "[CLS]", "sep": "[SEP]", "mask": MASK, "pad": "[PAD]", "unk": "[UNK]"}
#: The same as RoBERTa and its kin call them.
_OTHER_NAMES = {"cls": "<s>", "sep": "</s>", "mask": "<mask>", "pad": "<pad>", "unk": "<unk>"}
#: What a text of GPT's kin begins and ends with, where its folder says so.
ENDS = ("bos", "eos")
#: Longest text that is looked at, in characters; far beyond any model's limit.
MAX_CHARACTERS = 200_000

Offsets = tuple[int, int]


@dataclass(frozen=True)
class Encoding:
    """One input as a model gets it; every sequence has T entries.

    Attributes:
        text, pair: what was encoded.
        tokens: the pieces, specials included.
        input_ids: vocabulary ids.
        token_type_ids: 0 for the first sentence, 1 for the second.
        special: True for [CLS], [SEP] and padding, False for [MASK].
        word_ids: index of the word within its sentence, None for specials.
        sequence_ids: 0 or 1 for the sentence, None for specials.
        offsets: [start, end) in code points of its sentence, (0, 0) for specials.
        mask_positions: positions of [MASK].
        dropped: number of pieces cut off at the model's limit.
        cut_at: for each sentence, the code point where the cut fell, or None.
        masks_beyond: positions, in the uncut input, of each [MASK] that was
            cut off.
    """

    text: str
    pair: str | None
    tokens: tuple[str, ...]
    input_ids: tuple[int, ...]
    token_type_ids: tuple[int, ...]
    special: tuple[bool, ...]
    word_ids: tuple[int | None, ...]
    sequence_ids: tuple[int | None, ...]
    offsets: tuple[Offsets, ...]
    mask_positions: tuple[int, ...]
    dropped: int = 0
    cut_at: tuple[int | None, int | None] = (None, None)
    masks_beyond: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def truncated(self) -> bool:
        return self.dropped > 0

    @property
    def content(self) -> tuple[int, ...]:
        """Positions that are not specials."""
        return tuple(i for i, special in enumerate(self.special) if not special)


class Span(NamedTuple):
    """Where one piece stands in a text: code points, end exclusive, and the index of its word."""

    start: int
    end: int
    word: int | None


class Tokenizer:
    """A model's tokenizer, read-only and safe to share between threads.

    Args:
        fast: the library's tokenizer, already with its template of specials.
        limit: longest input in tokens, specials included.
        specials: names of the special tokens by role: 'cls', 'sep', 'mask',
            'pad', 'unk', 'bos', 'eos'; a role the family lacks is left out.
        has_segments: False where the model has no segment table.
    """

    #: Which sentence of a pair keeps one piece more where both are cut to an odd number: the longer, or the first.
    _first_keeps_more = False

    def __init__(self, fast: FastTokenizer, limit: int, specials: dict[str, str], has_segments: bool = True):
        fast.no_padding()
        fast.no_truncation()
        self._whole = fast
        self._set_up(limit, specials, has_segments)

    def _set_up(self, limit: int, specials: dict[str, str], has_segments: bool) -> None:
        """What every kind of tokenizer keeps."""
        if limit < 3:
            raise ValueError(f"a limit of {limit} tokens leaves no room for text besides the special tokens")
        self.limit = limit
        self.specials = dict(specials)
        self.has_segments = has_segments
        self.mask_token = specials.get("mask")
        self.mask_id = self.id_of(self.mask_token) if self.mask_token else None
        self._special_ids = {self.id_of(name) for role, name in specials.items() if role not in ("mask", "unk")}

    @property
    def vocab_size(self) -> int:
        return self._whole.get_vocab_size()

    @property
    def has_cls(self) -> bool:
        """Whether every input begins with [CLS], or with what the family calls it ('<s>')."""
        return "cls" in self.specials

    @functools.cached_property
    def largest_id(self) -> int:
        """Largest id of the vocabulary proper, pieces added later left out; read once, as the library makes it anew."""
        return max(self._whole.get_vocab(with_added_tokens=False).values(), default=0)

    def knows(self, index: int) -> bool:
        """Whether a piece has this id."""
        return self._whole.id_to_token(int(index)) is not None

    @property
    def backend(self) -> FastTokenizer:
        """The library's own object, to show its steps (normaliser, pre-tokeniser)."""
        return self._whole

    def id_of(self, token: str) -> int | None:
        """Vocabulary id of a piece, None if it is not in the vocabulary."""
        return self._whole.token_to_id(token)

    def token_of(self, index: int) -> str:
        """The piece with this vocabulary id.

        Raises:
            ValueError: no piece has it.
        """
        token = self._whole.id_to_token(int(index))
        if token is None:
            raise ValueError(f"id {index} is outside the vocabulary of {self.vocab_size} pieces")
        return token

    def decode(self, ids: list[int]) -> str:
        """Pieces joined to text, specials left out."""
        return self._whole.decode([int(i) for i in ids])

    def spans(self, text: str) -> list[Span]:
        """Every piece of a text of any length, uncut and without specials."""
        text = self._clean(text)
        found = self._encode((self._with_mask(text),), specials=False)
        offsets = _with_marks(text, self._unmasked_offsets(text, found.offsets))
        return [Span(*span, word) for span, word in zip(offsets, found.word_ids, strict=True)]

    def encode(self, text: str, pair: str | None = None) -> Encoding:
        """Tokenise one sentence or a pair, cut at the model's limit.

        Args:
            text: any string; [MASK] stands for this model's mask token.
            pair: the second sentence, or None.

        Returns:
            The Encoding; `dropped` says how many pieces did not fit.
        """
        text, pair = self._clean(text), None if pair is None else self._clean(pair)
        parts = (self._with_mask(text),) if pair is None else (self._with_mask(text), self._with_mask(pair))
        return self._freeze((text, pair), self._encode(parts))

    def _encode(self, parts: tuple[str, ...], specials: bool = True):
        """The library's encoding, uncut; ValueError where its vocabulary can't spell the text."""
        return _encode(self._whole, parts, specials)

    def _clean(self, text: str) -> str:
        """Bound the length and replace what is no character (lone surrogates)."""
        return text[:MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8")

    def _with_mask(self, text: str) -> str:
        return text.replace(MASK, self.mask_token) if self.mask_token else text

    def _unmasked_offsets(self, text: str, offsets: list[Offsets]) -> list[Offsets]:
        """Offsets in the text as given, where [MASK] stands for a mask token of another length (<special1>)."""
        longer = len(self.mask_token or MASK) - len(MASK)
        if not longer:
            return offsets
        ends = [found.end() + longer * n for n, found in enumerate(re.finditer(re.escape(MASK), text), start=1)]
        return [tuple(place - longer * bisect.bisect_right(ends, place) for place in span) for span in offsets]

    def _freeze(self, texts: tuple[str, str | None], whole) -> Encoding:
        """The Encoding of what fits.

        The library's own truncation also makes every window that was cut off, for a pair each of one sentence with
        each of the other: gigabytes of two long texts.
        """
        places = _fitting(whole.sequence_ids, self.limit, self._first_keeps_more)
        ids, sequence_ids, type_ids, word_ids, spans = (
            tuple(values[n] for n in places)
            for values in (whole.ids, whole.sequence_ids, whole.type_ids, whole.word_ids, whole.offsets))
        special = tuple(s is None or i in self._special_ids for s, i in zip(sequence_ids, ids, strict=True))
        offsets = self._offsets(texts, spans, sequence_ids)
        return Encoding(
            text=texts[0], pair=texts[1], tokens=self._pieces_of(ids), input_ids=ids,
            token_type_ids=type_ids if self.has_segments else (0,) * len(ids), special=special, word_ids=word_ids,
            sequence_ids=sequence_ids, offsets=offsets, mask_positions=self._mask_positions(ids),
            dropped=len(whole.ids) - len(ids), cut_at=_cut_places(texts, offsets, sequence_ids, whole.sequence_ids),
            masks_beyond=tuple(sorted({*self._mask_positions(whole.ids)}.difference(places))),
        )

    def _pieces_of(self, ids: Sequence[int]) -> tuple[str, ...]:
        """The pieces as the vocabulary has them; the library's own list has what was typed for <mask> and <unk>."""
        return tuple(map(self.token_of, ids))

    def _mask_positions(self, ids: Sequence[int]) -> tuple[int, ...]:
        return tuple(n for n, i in enumerate(ids) if i == self.mask_id)

    def _offsets(
        self, texts: tuple[str, str | None], spans: Sequence[Offsets], sequence_ids: Sequence[int | None]
    ) -> tuple[Offsets, ...]:
        """Offsets of each token in its own sentence as it was given."""
        found: list[Offsets] = [(0, 0)] * len(spans)
        for number, text in enumerate(texts):
            places = [n for n, sequence in enumerate(sequence_ids) if sequence == number]
            given = self._unmasked_offsets(text or "", [spans[n] for n in places])
            for n, span in zip(places, _with_marks(text or "", given), strict=True):
                found[n] = span
        return tuple(found)


def _with_marks(text: str, offsets: list[Offsets]) -> list[Offsets]:
    """Offsets that end behind the combining marks of their last letter.

    Where accents are stripped the library ends a piece before the marks, if they are characters of their own.
    """
    if text.isascii():
        return offsets
    begun = {start for start, end in offsets if start < end}
    found = []
    for start, end in offsets:
        while start < end < len(text) and end not in begun and unicodedata.category(text[end]).startswith("M"):
            end += 1
        found.append((start, end))
    return found


def _encode(fast: FastTokenizer, parts: tuple[str, ...], specials: bool = True):
    try:
        return fast.encode(*parts, add_special_tokens=specials)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the library raises bare Exception, and panics outside of it
        raise ValueError(f"the tokenizer can't split this text ({error})") from None


def _fitting(sequence_ids: Sequence[int | None], limit: int, first_keeps_more: bool = False) -> list[int]:
    """Places of the tokens that fit: all specials, and what the library's `longest_first` keeps of the sentences.

    The longer one loses pieces at its end until it is as short as the other, then both do; an odd piece is the longer
    one's, or the first one's.
    """
    lengths = [sequence_ids.count(sentence) for sentence in (0, 1)]
    room = max(limit - sequence_ids.count(None), 0)
    shorter = min(*lengths, room // 2)
    left = {None: len(sequence_ids), 0: shorter, 1: room - shorter}
    if lengths[0] > lengths[1] or (first_keeps_more and room // 2 < min(lengths)):
        left[0], left[1] = left[1], left[0]
    places = []
    for place, sentence in enumerate(sequence_ids):
        if left[sentence]:
            left[sentence] -= 1
            places.append(place)
    return places


def _cut_places(
    texts: tuple[str, str | None], offsets: Sequence[Offsets], kept: Sequence[int | None], whole: Sequence[int | None]
) -> tuple[int | None, int | None]:
    """For each sentence, the code point where what fits ends; None where it loses nothing that can be read.

    Args:
        offsets: of the tokens that fit.
        kept, whole: the sentence of each token, of those that fit and of all.
    """
    places = []
    for number, text in enumerate(texts):
        if kept.count(number) == whole.count(number):
            places.append(None)
            continue
        end = max((span[1] for span, sentence in zip(offsets, kept, strict=True) if sentence == number), default=0)
        places.append(end if end < len(text.rstrip()) else None)
    return places[0], places[1]


def read_tokenizer(folder: Path, limit: int, has_segments: bool) -> Tokenizer:
    """Read the tokenizer.json of a checkpoint folder, or else its vocab.txt (BERT's older form).

    Raises:
        ValueError: the file can't be read.
    """
    path = folder / "tokenizer.json"
    fast = as_settings_say(_read_fast(path), folder) if path.exists() else from_vocabulary(folder)
    return Tokenizer(fast, limit, special_tokens(folder, fast), has_segments)


def _read_fast(path: Path) -> FastTokenizer:
    if path.stat().st_size > MAX_JSON:
        raise ValueError(f"{path.name} is larger than {MAX_JSON >> 20} MiB")
    try:
        return FastTokenizer.from_file(str(path))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the library raises bare Exception, and panics outside of it
        raise ValueError(f"{path.name} can't be read ({error})") from None


def special_tokens(folder: Path, fast: FastTokenizer) -> dict[str, str]:
    """Role -> token, from the folder's own files, by BERT's names, or else by RoBERTa's among the added tokens.

    RoBERTa's own folder names none: transformers has them in its code. Where '<s>' and '</s>' stand for something else
    (GPT's kin), nothing begins and ends with them.
    """
    names: dict[str, str] = {}
    settings = special_settings(folder)
    for role in (*ROLES, *ENDS):
        value = settings.get(f"{role}_token")
        value = value.get("content") if isinstance(value, dict) else value
        if isinstance(value, str):
            names[role] = value
    added = {token.content for token in fast.get_added_tokens_decoder().values() if token.special}
    ends = _encode(fast, ("",)).tokens
    outside = {"cls": ends[:1], "sep": ends[-1:]}
    for role, token in ROLES.items():
        other = _OTHER_NAMES[role]
        known = fast.token_to_id(token) is not None or other not in added or other not in outside.get(role, added)
        names.setdefault(role, token if known else other)
    return {role: token for role, token in names.items() if fast.token_to_id(token) is not None}
