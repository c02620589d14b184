"""Tokenizers of other kinds: BPE, unigram, SentencePiece, and those written in Python."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from bert_core.adapters.alignment import align
from bert_core.adapters.quiet import first_line, quiet
from bert_core.loading.errors import LoadError
from bert_core.tokenizer import ENDS, ROLES, Span, Tokenizer, read_tokenizer

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
    named = {role: getattr(theirs, f"{role}_token", None) for role in (*ROLES, *ENDS)}
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
    """A tokenizer written in Python (FlauBERT, XLM, PhoBERT, Japanese BERT), which gives no offsets.

    The pieces are transformers' for the whole text; `align` finds where they
    stand. Of a pair that is cut to an odd number of pieces the first sentence
    keeps one more, as transformers' own cut has it for them.
    """

    _first_keeps_more = True

    def __init__(self, theirs, limit: int, specials: dict[str, str], has_segments: bool):
        self._theirs = theirs
        vocabulary = theirs.get_vocab()  # '##' alone may be a piece of any
        self._marked = sum(piece.startswith("##") for piece in vocabulary) > 0.05 * len(vocabulary)
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
        """What the fast library's encoding has: transformers' pieces, and where they stand."""
        pieces = [self._pieces(part) for part in parts]
        ids = [self._theirs.convert_tokens_to_ids(sentence) for sentence in pieces]
        marks = [[-1 - number] * len(sentence) for number, sentence in enumerate(ids)]  # no id is negative
        whole = self._theirs.build_inputs_with_special_tokens(*marks) if specials else marks[0]
        segments = self._theirs.create_token_type_ids_from_sequences(*ids) if specials else [0] * len(whole)
        numbers = [-1 - mark if mark in (-1, -2) else None for mark in whole]
        rest = [zip(sentence, align(part, strings, self._theirs.unk_token, self._marked), strict=True)
                for sentence, part, strings in zip(ids, parts, pieces, strict=True)]
        placed = [(mark, Span(0, 0, None)) if number is None else next(rest[number])
                  for mark, number in zip(whole, numbers, strict=True)]
        return SimpleNamespace(
            ids=[piece for piece, _ in placed], offsets=[(span.start, span.end) for _, span in placed],
            word_ids=[span.word for _, span in placed], sequence_ids=numbers, type_ids=segments)

    def _pieces(self, text: str) -> list[str]:
        """Of the whole text: what stands around a word has a say in how it is cut."""
        try:
            return self._theirs.tokenize(text)
        except Exception as error:  # each tokenizer written in Python raises its own
            raise ValueError(f"the tokenizer can't split this text ({first_line(error)})") from None
