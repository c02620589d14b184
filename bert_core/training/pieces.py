"""A corpus as word pieces: tokenised once, and small enough to be taken along.

A GPU that is lent for minutes should not wait for a tokenizer. A source's file,
`NAME.pieces`, holds a number for each piece, the commonest 0, packed by LZMA:
8.5 bits a piece of Wikipedia, a tenth less than its text packed by zstd.
"""

from __future__ import annotations

import lzma
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from bert_core.loading.files import in_place_of
from bert_core.training.corpus import sentences

#: Documents that the tokenizer gets at a time.
_BATCH = 512
#: Letters of a sentence that are read: no packed sequence holds as many, and its length has to fit 16 bits.
_MOST_LETTERS = 20_000
#: LZMA for words of two bytes: where in a word a byte stands tells more than the byte before it.
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 0, "lp": 1, "pb": 1, "dict_size": 2**26}]


@dataclass(frozen=True)
class Pieces:
    """The documents of one source, tokenised.

    Attributes:
        ids: (N,) every sentence behind the other, uint16 or int32.
        sentences: (S + 1,) where each sentence starts in `ids`.
        documents: (D + 1,) where each document starts in `sentences`.
        vocabulary: digest of the vocabulary that the ids are of.
    """

    ids: np.ndarray
    sentences: np.ndarray
    documents: np.ndarray
    vocabulary: str

    def __len__(self) -> int:
        return len(self.documents) - 1

    @property
    def tokens(self) -> int:
        return len(self.ids)

    def stretch(self, number: int, limit: int, rng: np.random.Generator) -> list[list[int]]:
        """Sentences of one document from a random start, about `limit` pieces of them."""
        first, end = int(self.documents[number]), int(self.documents[number + 1])
        starts = self.sentences[first : end + 1]  # the last is where the document ends
        latest = int(np.searchsorted(starts[:-1], max(starts[0], starts[-1] - limit), side="right")) - 1
        start = int(rng.integers(latest + 1))
        stop = min(int(np.searchsorted(starts, starts[start] + limit, side="left")), end - first)
        return [self.ids[starts[n] : starts[n + 1]].tolist() for n in range(start, max(stop, start + 1))]

    def save(self, path: Path) -> None:
        """Write to `path` at once or not at all."""
        known, places, counts = np.unique(self.ids, return_inverse=True, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        rank = np.empty(len(known), dtype=self.ids.dtype)
        rank[order] = np.arange(len(known))
        ranks = lzma.compress(rank[places].tobytes(), filters=_FILTERS)
        with in_place_of(path) as part, part.open("wb") as file:
            np.savez_compressed(
                file, ranks=np.frombuffer(ranks, dtype=np.uint8), known=known[order], vocabulary=self.vocabulary,
                lengths=np.diff(self.sentences).astype(np.uint16), counts=np.diff(self.documents).astype(np.uint32),
            )


def read(path: Path) -> Pieces:
    """A file that `save` wrote.

    Raises:
        ValueError: it is damaged, or something else.
    """
    try:
        with np.load(path, allow_pickle=False) as data:
            known, vocabulary = data["known"], str(data["vocabulary"])
            ids = known[np.frombuffer(lzma.decompress(data["ranks"].tobytes()), dtype=known.dtype)]
            starts = [np.concatenate([[0], np.cumsum(data[name], dtype=np.int64)]) for name in ("lengths", "counts")]
    except (lzma.LZMAError, zipfile.BadZipFile, KeyError, EOFError, ValueError, IndexError, TypeError) as error:
        raise ValueError(f"{path} holds no word pieces, or is damaged ({error})") from None
    if starts[0][-1] != len(ids) or starts[1][-1] != len(starts[0]) - 1:
        raise ValueError(f"{path} is damaged: its sentences are not as long as its pieces")
    return Pieces(ids, *starts, vocabulary)


def tokenised(docs: Sequence[str], tokenizer: Tokenizer, vocabulary: str, limit: int | None = None) -> Pieces:
    """Documents as word pieces, in their order; what has none is left out.

    Args:
        vocabulary: the tokenizer's digest.
        limit: pieces after which to end, at the end of a document.
    """
    dtype = np.uint16 if tokenizer.get_vocab_size() <= 2**16 else np.int32
    ids, lengths, counts, total = [], [], [], 0
    for start in range(0, len(docs), _BATCH):
        split = [[s[:_MOST_LETTERS] for s in sentences(doc)] for doc in docs[start : start + _BATCH]]
        encoded = iter(tokenizer.encode_batch([s for doc in split for s in doc], add_special_tokens=False))
        for doc in split:
            found = [piece for _ in doc if (piece := next(encoded).ids)]
            if not found or (limit is not None and total >= limit):
                continue
            ids += [np.array(sentence, dtype=dtype) for sentence in found]
            lengths += [len(sentence) for sentence in found]
            counts.append(len(found))
            total += sum(map(len, found))
        if limit is not None and total >= limit:
            break
    starts = (np.concatenate([[0], np.cumsum(each, dtype=np.int64)]) for each in (lengths, counts))
    return Pieces(np.concatenate([*ids, np.empty(0, dtype)]), *starts, vocabulary)
