"""WordPiece step by step: every candidate that was tried, longest first.

Wu et al. 2016, arXiv 1609.08144; BERT's greedy longest-match-first form. The
steps are worked out here from the vocabulary; the pieces are those of the
model's own tokenizer, and the tests hold the two together.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from tokenizers import Tokenizer as FastTokenizer
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from bert_core.tokenizer import Encoding, Tokenizer


@dataclass(frozen=True)
class Attempt:
    """One candidate looked up in the vocabulary."""

    candidate: str
    found: bool


@dataclass(frozen=True)
class Word:
    """One word on its way to pieces.

    Attributes:
        raw: as it stands in the text.
        normal: after normalisation (lower case, accents and controls removed).
        pieces: what the tokenizer makes of it.
        attempts: for each piece the candidates in the order of trying, the
            last one found; a word without pieces ends in candidates that all
            failed. Empty for special tokens, which are never cut.
        sentence: 0 or 1.
        first: position of its first piece.
        special: a special token that was typed, such as [MASK].
    """

    raw: str
    normal: str
    pieces: tuple[str, ...]
    attempts: tuple[tuple[Attempt, ...], ...]
    sentence: int
    first: int
    special: bool


def is_wordpiece(tokenizer: Tokenizer) -> bool:
    """Whether this tokenizer works by greedy longest match."""
    return isinstance(getattr(tokenizer.backend, "model", None), models.WordPiece)


def is_byte_level(tokenizer: Tokenizer) -> bool:
    """Whether its pieces are made of bytes, as those of GPT-2 and RoBERTa."""
    return isinstance(getattr(tokenizer.backend, "decoder", None), decoders.ByteLevel)


def greedy(
    word: str, known: Callable[[str], bool], prefix: str = "##", longest: int = 100
) -> tuple[tuple[Attempt, ...], ...]:
    """All look-ups for one normalised word, grouped by piece.

    Args:
        word: without white space.
        known: whether a piece is in the vocabulary.
        prefix: what marks a piece that continues a word.
        longest: words of more characters become [UNK] without a look-up.

    Returns:
        A group a piece; if the last group ends in a failure, the word is [UNK].
    """
    if len(word) > longest:
        return ()
    groups, start = [], 0
    while start < len(word):
        tried = []
        for end in range(len(word), start, -1):
            candidate = word[start:end] if start == 0 else prefix + word[start:end]
            tried.append(Attempt(candidate, known(candidate)))
            if tried[-1].found:
                break
        groups.append(tuple(tried))
        if not tried[-1].found:
            break
        start = end
    return tuple(groups)


def words(tokenizer: Tokenizer, encoding: Encoding) -> tuple[Word, ...]:
    """The words of an input, each with its steps.

    Raises:
        ValueError: the tokenizer is not WordPiece.
    """
    if not is_wordpiece(tokenizer):
        raise ValueError("this model's tokenizer is not WordPiece; its pieces come from merges, not from longest match")
    groups: list[list[int]] = []
    seen = None
    for n in encoding.content:
        place = (encoding.sequence_ids[n], encoding.word_ids[n])
        if place != seen or place[1] is None:
            groups.append([])
        groups[-1].append(n)
        seen = place
    return tuple(_word(tokenizer, encoding, group) for group in groups)


def _word(tokenizer: Tokenizer, encoding: Encoding, group: list[int]) -> Word:
    sentence = encoding.sequence_ids[group[0]] or 0
    text = encoding.text if sentence == 0 else encoding.pair or ""
    start, end = encoding.offsets[group[0]][0], encoding.offsets[group[-1]][1]
    raw, pieces = text[start:end], tuple(encoding.tokens[n] for n in group)
    unknown = tokenizer.specials.get("unk", "[UNK]")
    special = len(pieces) == 1 and pieces[0] in tokenizer.specials.values() and pieces[0] != unknown
    normal = raw if special else _normal(tokenizer, raw, pieces, unknown)
    model = tokenizer.backend.model
    attempts = () if special else greedy(
        normal, lambda piece: tokenizer.id_of(piece) is not None, model.continuing_subword_prefix,
        model.max_input_chars_per_word)
    return Word(raw, normal, pieces, attempts, sentence, group[0], special)


def _normal(tokenizer: Tokenizer, raw: str, pieces: tuple[str, ...], unknown: str) -> str:
    """The normalised word: the pieces put together, or the normaliser's answer for an unknown one."""
    if unknown not in pieces:
        prefix = tokenizer.backend.model.continuing_subword_prefix
        return pieces[0] + "".join(piece.removeprefix(prefix) for piece in pieces[1:])
    normaliser = tokenizer.backend.normalizer
    return (normaliser.normalize_str(raw) if normaliser is not None else raw).strip()


# --- small tokenizers to compare with ----------------------------------------


@functools.lru_cache(maxsize=16)
def train_wordpiece(lines: tuple[str, ...], size: int) -> FastTokenizer:
    """A WordPiece vocabulary of at most `size` pieces, trained on `lines`."""
    tokenizer = FastTokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=size, special_tokens=["[UNK]", "[MASK]"], show_progress=False)
    tokenizer.train_from_iterator(lines, trainer)
    return tokenizer


@functools.lru_cache(maxsize=16)
def train_byte_pairs(lines: tuple[str, ...], size: int) -> FastTokenizer:
    """Byte-level byte-pair encoding as GPT-2's, of at most `size` pieces, trained on `lines`."""
    tokenizer = FastTokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=max(size, 257), show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(lines, trainer)
    return tokenizer


@dataclass(frozen=True)
class Cut:
    """One text as one tokenizer cuts it.

    Attributes:
        name: of the tokenizer.
        pieces: what it makes of the text, special tokens left out.
        vocabulary: how many pieces it knows; None where that is not a table.
    """

    name: str
    pieces: tuple[str, ...]
    vocabulary: int | None


def cuts(tokenizer: Tokenizer, name: str, text: str, lines: tuple[str, ...], size: int) -> tuple[Cut, ...]:
    """One text through five tokenizers.

    Args:
        tokenizer, name: of the model.
        lines: what the two small ones are trained on.
        size: pieces of the two small ones.
    """
    whole = tokenizer.encode(text)
    word, pairs = train_wordpiece(lines, size), train_byte_pairs(lines, size)
    encoded = pairs.encode(whole.text, add_special_tokens=False)
    spelled = tuple(pairs.decode([index]) for index in encoded.ids)
    return (
        Cut(name, tuple(whole.tokens[n] for n in whole.content), tokenizer.vocab_size),
        Cut("small WordPiece", tuple(word.encode(whole.text, add_special_tokens=False).tokens), word.get_vocab_size()),
        Cut("small byte pairs (only the method is GPT-2's)", spelled, pairs.get_vocab_size()),
        Cut("characters", tuple(whole.text), None),
        Cut("bytes (UTF-8)", tuple(f"{byte:02x}" for byte in whole.text.encode("utf-8")), 256),
    )
