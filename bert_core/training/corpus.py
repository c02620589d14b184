"""A corpus folder as documents of sentences, and a WordPiece vocabulary learned from it.

A corpus is a folder of UTF-8 text files, `NAME.txt` or `NAME.txt.zst`, one
source each: one paragraph a line, a blank line between documents. A file
without any blank line holds one document a line (captions, single sentences).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import WordPieceTrainer

#: How the name of a source ends that was tokenised before (pieces.py).
TOKENISED = ".pieces"
SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

#: A full stop after one of these ends no sentence.
_ABBREVIATION = re.compile(r"(?:\b(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|St|Sr|Jr|Gen|Col|Lt|Capt|vs|cf|ca|c|e\.g|i\.e|No|Vol)\.)$")
#: Characters before a boundary that are looked at; with the character before it, for \b.
_LONGEST_ABBREVIATION = 8
_BOUNDARY = re.compile(r"(?<=[.!?])[\"')\]”’]*\s+(?=[\"'(\[“‘]?[A-Z0-9])")


def sources(folder: str | Path) -> dict[str, Path]:
    """Source name -> file, for every text file of a corpus folder, and those tokenised before whose text isn't there.

    Raises:
        ValueError: the folder is missing or holds no text.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"corpus {str(folder)!r} is no folder; give a folder of .txt or .txt.zst files")
    found = {p.name.removesuffix(TOKENISED): p for p in sorted(folder.glob(f"*{TOKENISED}"))}
    found |= {p.name.split(".txt")[0]: p for p in sorted(folder.iterdir()) if p.name.endswith((".txt", ".txt.zst"))}
    if not found:
        raise ValueError(f"corpus {str(folder)!r} holds no .txt or .txt.zst file")
    return found


def read_text(path: str | Path) -> str:
    """All text of one file, unpacked where its name ends in .zst; Windows' line ends become "\\n", and its mark
    at a file's beginning (BOM) goes.

    Raises:
        ValueError: it can't be unpacked, is cut short, or isn't UTF-8.
    """
    data = Path(path).read_bytes()
    if str(path).endswith(".zst"):
        import zstandard  # a machine that reads word pieces only may lack it

        try:
            data = b"".join(_frames(data))
        except (zstandard.ZstdError, EOFError) as error:
            raise ValueError(f"{path} can't be unpacked ({error})") from None
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text (byte {error.start})") from None


def _frames(data: bytes) -> Iterator[bytes]:
    """What each zstd frame holds; EOFError where the last one is cut short."""
    import zstandard

    while data:
        frame = zstandard.ZstdDecompressor().decompressobj()
        yield frame.decompress(data)
        if not frame.eof:
            raise EOFError("it is cut short")
        data = frame.unused_data


def documents(path: str | Path) -> list[str]:
    """The documents of one source, each with one paragraph a line."""
    text = read_text(path).strip("\n")
    parts = re.split(r"\n[ \t]*\n+", text)
    if len(parts) == 1:
        parts = text.split("\n")
    return [part for part in parts if part.strip()]


def sentences(document: str) -> list[str]:
    """Split a document into sentences; a paragraph's end always ends one."""
    return [s for line in document.split("\n") for s in _split(line.strip())]


def _split(paragraph: str) -> Iterator[str]:
    start = 0
    for boundary in _BOUNDARY.finditer(paragraph):
        end = boundary.start()
        if start < end and not _ABBREVIATION.search(paragraph, max(start, end - _LONGEST_ABBREVIATION), end):
            yield paragraph[start : boundary.end()].strip()
            start = boundary.end()
    if paragraph[start:].strip():
        yield paragraph[start:].strip()


def parse_mix(text: str | None, names: Sequence[str]) -> dict[str, float]:
    """Shares of the sources, summing to 1.

    Args:
        text: 'wiki=0.8,captions=0.2'; sources not named are left out. None
            gives every source the same share.
        names: the sources that exist.

    Raises:
        ValueError: an unknown source, or a weight that is no positive number.
    """
    if text is None:
        return {name: 1 / len(names) for name in names}
    weights: dict[str, float] = {}
    for item in text.split(","):
        name, _, value = item.partition("=")
        if name.strip() not in names:
            raise ValueError(f"mix: source {name.strip()!r} is not in the corpus; it has {', '.join(names)}")
        try:
            weights[name.strip()] = float(value)
        except ValueError:
            raise ValueError(f"mix: {item!r} has no number; write NAME=WEIGHT,NAME=WEIGHT") from None
    if not all(0 < weight < math.inf for weight in weights.values()):
        raise ValueError(f"mix: weights must be finite and above 0, got {text!r}")
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def plain_tokenizer(path: str | Path) -> Tokenizer:
    """A tokenizer.json as a tokenizer that neither cuts nor pads."""
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def train_wordpiece(texts: Mapping[str, Sequence[str]], size: int) -> Tokenizer:
    """Learn a WordPiece vocabulary from the corpus (Devlin et al. 2018, section 3).

    The library orders ties differently from one call to the next, so a run
    keeps the tokenizer that it learned.

    Args:
        texts: source name -> documents.
        size: number of pieces, the five special tokens included.

    Raises:
        ValueError: the size leaves no room for the specials and letters, or
            there is no text.
    """
    if not any(texts.values()):
        raise ValueError("no documents in the corpus; a vocabulary can't be learned from nothing")
    if size < 100:
        raise ValueError(f"vocabulary size {size} is too small; give at least 100")
    tokenizer = Tokenizer(WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    trainer = WordPieceTrainer(vocab_size=size, special_tokens=list(SPECIAL_TOKENS), show_progress=False)
    tokenizer.train_from_iterator((doc for docs in texts.values() for doc in docs), trainer)
    cls, sep = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", cls), ("[SEP]", sep)],
    )
    return tokenizer
