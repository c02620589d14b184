"""The text of a live pre-training: documents, a held-out part, and a small vocabulary."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

from bert_core.counting import counted
from bert_core.training.corpus import SPECIAL_TOKENS, sentences
from bert_core.training.live.world import TEACHING

#: Bounds of a visitor's own text, in characters and sentences.
MAX_CHARACTERS, MIN_SENTENCES, MAX_SENTENCE = 300_000, 20, 400
#: Words that stay whole, more than the shipped text has; and letters.
MAX_WORDS, MAX_LETTERS = 1500, 200
#: What ends a sentence where no blank follows, with the quotes and brackets that it closes.
_FULL_STOP = re.compile(r"[。！？]+[」』”’）]*")
#: Every so many-th document is held out.
HELD_OUT_EVERY = 10
#: Sentences of a document that is cut from one long text; and the fewest in a short text's.
BLOCK, SHORT_BLOCK = 6, 4

Document = list[str]


@dataclass(frozen=True)
class Text:
    """Documents to learn from and documents kept aside.

    Attributes:
        train, held_out: documents, each a list of sentences.
    """

    train: tuple[Document, ...]
    held_out: tuple[Document, ...]


@lru_cache(maxsize=1)
def shipped_text() -> str:
    """The stories of the small world, a sentence a line, a blank line between stories."""
    return (TEACHING / "world.txt").read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def shipped_split() -> Text:
    """The shipped stories, a tenth of them held out."""
    return split_text(shipped_text())


def decode_text(data: bytes, form: str = "plain text") -> str:
    """The text of a file that a visitor brings.

    Args:
        form: what it should be saved as, for the message.

    Raises:
        ValueError: it is no text, or in another encoding, whose letters would be lost.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"the file is no UTF-8 text; save it as {form} in UTF-8") from None
    if "\0" in text:
        raise ValueError(f"the file is no text; save it as {form} in UTF-8")
    return text


def check_text(text: str) -> str:
    """A visitor's text, if it can be learned from.

    Raises:
        ValueError: it is too long or too short, with the numbers.
    """
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"the text has {len(text):,} characters; at most {MAX_CHARACTERS:,} are taken")
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    clean = re.sub(r"[^\S\n]+", " ", lines)  # tabs and no-break spaces part words too
    clean = "".join(c for c in clean if c == "\n" or c.isprintable())
    count = sum(len(document) for document in documents(clean))
    if count < MIN_SENTENCES:
        raise ValueError(f"the text has {counted(count, 'sentence')}; at least {MIN_SENTENCES} are needed, better some "
                         "hundreds")
    return clean


def documents(text: str) -> list[Document]:
    """Split at blank lines into documents, and these into sentences."""
    parts = re.split(r"\n\s*\n", text.replace("\r\n", "\n"))
    split = [[s[:MAX_SENTENCE] for s in sentences(_FULL_STOP.sub(r"\g<0>\n", part))] for part in parts if part.strip()]
    if len(split) < HELD_OUT_EVERY:  # one long text: every few sentences make a document
        split = _blocks([s for document in split for s in document])
    return [document for document in split if document]


def example(text: str, most: int) -> str:
    """A sentence of a text, of at most so many characters, with its middle word hidden: at best of 4 to 12 words.

    One of a script without blanks has no words to tell apart, and loses its middle character.
    """
    flat = [sentence for document in documents(text) for sentence in document]
    fits = [sentence for sentence in flat if 4 <= len(sentence.split()) <= 12 and len(sentence) < most - len("[MASK]")]
    sentence = (fits or flat)[0][: most - len("[MASK]")]
    parts, between = (sentence.split(), " ") if len(sentence.split()) > 2 else (list(sentence), "")
    parts[len(parts) // 2] = "[MASK]"
    return between.join(parts)


def _blocks(flat: list[str]) -> list[Document]:
    """BLOCK sentences each; a text too short for HELD_OUT_EVERY of them is cut evenly, no block below SHORT_BLOCK."""
    if len(flat) >= BLOCK * HELD_OUT_EVERY:
        return [flat[i : i + BLOCK] for i in range(0, len(flat), BLOCK)]
    count = max(1, min(HELD_OUT_EVERY, len(flat) // SHORT_BLOCK))
    cuts = [n * len(flat) // count for n in range(count + 1)]
    return [flat[start:end] for start, end in itertools.pairwise(cuts)]


def split_text(text: str) -> Text:
    """Hold out every tenth document, of fewer the last; nothing that is held out is trained on.

    Raises:
        ValueError: there is only one document, and too little in it to be divided.
    """
    found = documents(text)
    if len(found) < 2:
        raise ValueError(f"the text has too few sentences to hold some out; at least {MIN_SENTENCES} are needed")
    if len(found) < HELD_OUT_EVERY:
        return Text(tuple(found[:-1]), tuple(found[-1:]))
    kept = tuple(d for n, d in enumerate(found) if n % HELD_OUT_EVERY != HELD_OUT_EVERY - 1)
    aside = tuple(d for n, d in enumerate(found) if n % HELD_OUT_EVERY == HELD_OUT_EVERY - 1)
    return Text(kept, aside)


def learn_vocabulary(text: Sequence[Document]) -> Tokenizer:
    """A WordPiece vocabulary of the text's own words, lower-cased.

    The commonest words stay whole, so that a gap is a word; rarer ones are
    spelled in letters. Learning merges would leave half of so small a table to
    beginnings of words.
    """
    empty = Tokenizer(WordPiece({"[UNK]": 0}, unk_token="[UNK]"))
    empty.normalizer = BertNormalizer(lowercase=True)
    empty.pre_tokenizer = BertPreTokenizer()
    counts: Counter[str] = Counter()
    for document in text:
        for line in document:
            clean = empty.normalizer.normalize_str(line)
            counts.update(word for word, _ in empty.pre_tokenizer.pre_tokenize_str(clean))
    letters = sorted({letter for word in counts for letter in word})[:MAX_LETTERS]
    whole = [word for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))][:MAX_WORDS]
    pieces = dict.fromkeys([*SPECIAL_TOKENS, *whole, *letters, *(f"##{letter}" for letter in letters)])
    return with_vocabulary({piece: n for n, piece in enumerate(pieces)})


def with_vocabulary(vocabulary: dict[str, int]) -> Tokenizer:
    """BERT's uncased tokenizer over these pieces."""
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    specials = [(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=specials)
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    return tokenizer
