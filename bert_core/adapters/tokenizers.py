"""Tokenizers of other kinds: BPE, unigram, SentencePiece, and those written in Python."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

from bert_core.adapters.quiet import first_line, quiet
from bert_core.loading.errors import LoadError
from bert_core.tokenizer import ROLES, Span, Tokenizer, read_tokenizer

#: Pieces that are no vocabulary yet, only special tokens.
SMALLEST = 16


def read_other_tokenizer(folder: Path, limit: int, has_segments: bool) -> Tokenizer:
    """The tokenizer of a folder: its tokenizer.json, or whatever transformers makes of its other files.

    Raises:
        ValueError: there is none that can be read without running its code.
    """
    if (folder / "tokenizer.json").exists():
        return read_tokenizer(folder, limit, has_segments)
    theirs = _from_transformers(folder)
    if len(theirs) <= SMALLEST:  # without its files transformers makes one that knows no word at all
        raise LoadError("the folder has no tokenizer.json and no other tokenizer files")
    named = {role: getattr(theirs, f"{role}_token", None) for role in ROLES}
    specials = {role: str(token) for role, token in named.items() if token is not None}
    if theirs.is_fast:
        return Tokenizer(theirs.backend_tokenizer, limit, specials, has_segments)
    return PythonTokenizer(theirs, limit, specials, has_segments)


def _from_transformers(folder: Path):
    from transformers import AutoTokenizer

    try:
        with quiet():
            return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # many kinds: missing files, missing packages, wrong contents
        raise LoadError(f"no tokenizer can be read ({first_line(error)})") from None


class PythonTokenizer(Tokenizer):
    """A tokenizer written in Python (FlauBERT, XLM, PhoBERT), which gives no offsets.

    Words are what stands between spaces; every piece of a word gets the word's
    offsets, the finest alignment there is.
    """

    def __init__(self, theirs, limit: int, specials: dict[str, str], has_segments: bool):
        self._theirs = theirs
        self._set_up(limit, specials, has_segments)

    @property
    def vocab_size(self) -> int:
        return len(self._theirs)

    @property
    def largest_id(self) -> int:
        return self._theirs.vocab_size - 1

    @property
    def backend(self):
        """The transformers tokenizer itself."""
        return self._theirs

    def id_of(self, token: str) -> int | None:
        found = self._theirs.convert_tokens_to_ids(token)
        unknown = found == self._theirs.unk_token_id and token != self._theirs.unk_token
        return None if unknown else found

    def knows(self, index: int) -> bool:
        return 0 <= index < self.vocab_size

    def token_of(self, index: int) -> str:
        if not self.knows(index):
            raise ValueError(f"id {index} is outside the vocabulary of {self.vocab_size} pieces")
        return self._theirs.convert_ids_to_tokens(int(index))

    def decode(self, ids: list[int]) -> str:
        return self._theirs.decode(ids, skip_special_tokens=True)

    def _encode(self, parts: tuple[str, ...], specials: bool = True) -> SimpleNamespace:
        """What the fast library's encoding has, worked out word by word."""
        sentences = [self._words(part) for part in parts]
        ids = [[piece for piece, _ in sentence] for sentence in sentences]
        whole = self._theirs.build_inputs_with_special_tokens(*ids) if specials else ids[0]
        segments = self._theirs.create_token_type_ids_from_sequences(*ids) if specials else [0] * len(whole)
        return self._aligned(whole, sentences, segments)

    def _words(self, text: str) -> list[tuple[int, Span]]:
        """(id, place) of every piece of a text."""
        found, place = [], 0
        for number, word in enumerate(text.split()):
            start = text.index(word, place)
            place = start + len(word)
            found += [(piece, Span(start, place, number)) for piece in self._pieces(word)]
        return found

    def _pieces(self, word: str) -> list[int]:
        try:
            return self._theirs.convert_tokens_to_ids(self._theirs.tokenize(word))
        except Exception as error:  # each tokenizer written in Python raises its own
            raise ValueError(f"the tokenizer can't split this text ({first_line(error)})") from None

    def _aligned(
        self, whole: list[int], sentences: list[list[tuple[int, Span]]], segments: list[int]
    ) -> SimpleNamespace:
        """Find each sentence's pieces in the sequence with specials, in order."""
        offsets, words = [(0, 0)] * len(whole), [None] * len(whole)
        numbers: list[int | None] = [None] * len(whole)
        place = 0
        for number, sentence in enumerate(sentences):
            ids = [piece for piece, _ in sentence]
            place = _find(whole, ids, place)
            for step, (_, span) in enumerate(sentence):
                offsets[place + step], words[place + step] = (span.start, span.end), span.word
                numbers[place + step] = number
            place += len(ids)
        return SimpleNamespace(ids=whole, offsets=offsets, word_ids=words, sequence_ids=numbers, type_ids=segments)


def _find(whole: Sequence[int], part: Sequence[int], start: int) -> int:
    """First place from `start` where `part` stands in `whole`; specials may come before it."""
    while start < len(whole) and list(whole[start:start + len(part)]) != list(part):
        start += 1
    return start
