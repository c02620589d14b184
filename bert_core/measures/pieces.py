"""What is read off a tokenizer's whole vocabulary: the library makes it anew each time, 20 ms of a key press."""

from __future__ import annotations

import functools
import hashlib

import numpy as np

from bert_core.tokenizer import Tokenizer
from bert_core.trace import Array

#: Tokenizers whose vocabulary was read last.
KEPT = 8
#: With what a piece begins that begins a word, in the vocabularies of SentencePiece and of byte-level BPE.
BEGINS = ("▁", "Ġ")


@functools.lru_cache(maxsize=KEPT)
def named_ids(tokenizer: Tokenizer) -> Array:
    """(N,) every id that names a piece, read-only."""
    found = np.fromiter(tokenizer.backend.get_vocab().values(), dtype=np.int64)
    found.flags.writeable = False
    return found


@functools.lru_cache(maxsize=KEPT)
def marks_words(tokenizer: Tokenizer) -> bool:
    """Whether what is marked is a piece that begins a word, and not, as in WordPiece, one that goes on."""
    return any(piece.startswith(BEGINS) for piece in tokenizer.backend.get_vocab())


def same_pieces(left: Tokenizer, right: Tokenizer) -> bool:
    """Whether each id means the same piece in both."""
    return left is right or _digest(left) == _digest(right)


@functools.lru_cache(maxsize=KEPT)
def _digest(tokenizer: Tokenizer) -> bytes:
    return hashlib.sha256(repr(sorted(tokenizer.backend.get_vocab().items())).encode("utf-8", "replace")).digest()
