"""How often words stand in one sentence of a corpus: what a model that is trained on it can have learned from.

    python scripts/count_beside.py ../shared/data/pretrain doctor nurse --beside his her

prints for each word (with or without -s, in any case) how many sentences have it, and how many of them also have each
of the others.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bert_core.training.corpus import documents, sentences, sources


def count(texts: Iterable[str], words: Sequence[str], beside: Sequence[str]) -> Counter[tuple[str, str]]:
    """(word, '') -> sentences of the documents that have it; (word, other) -> those of them that have the other too."""
    patterns = {word: re.compile(rf"\b{re.escape(word)}s?\b", re.IGNORECASE) for word in words}
    others = {other: re.compile(rf"\b{re.escape(other)}\b", re.IGNORECASE) for other in beside}
    found: Counter[tuple[str, str]] = Counter()
    for text in texts:
        here = {word: pattern for word, pattern in patterns.items() if pattern.search(text)}
        for sentence in sentences(text) if here else ():
            for word in (word for word, pattern in here.items() if pattern.search(sentence)):
                found[word, ""] += 1
                found.update((word, other) for other, pattern in others.items() if pattern.search(sentence))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", help="folder of .txt or .txt.zst files")
    parser.add_argument("words", nargs="+")
    parser.add_argument("--beside", nargs="+", required=True)
    given = parser.parse_args()
    texts = (text for file in sources(given.corpus).values() for text in documents(file))
    found = count(texts, given.words, given.beside)
    for word in given.words:
        print(word, found[word, ""], *(f"{other} {found[word, other]}" for other in given.beside), sep="\t")


if __name__ == "__main__":
    main()
