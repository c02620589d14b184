"""Sentences of our own for parity tests, made from a seed: everyday words, punctuation, accents, emoji."""

from __future__ import annotations

import random

SUBJECTS = ("the dog", "a cat", "my sister", "the old baker", "nobody", "Paris", "Dr. Ünal", "each of the children")
VERBS = ("barked", "slept", "wrote a letter", "walked home", "isn't ready", "bought 3 loaves", "sang, badly,", "knew")
PLACES = ("in the garden", "by the river", "at 7:45", "near the bank", "in São Paulo", "under a tree", "— who knows?")
#: Texts that have broken tokenizers and pages elsewhere.
ODD = ["", " ", "[MASK]", "[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK][MASK]", "##ing", "<script>alert(1)</script>",
       "&amp;", "\x00", "\x1b[31m", "\u202eevil", "\ud800", "e\u0301", "\u200d", "👩‍👩‍👧", "مرحبا",
       "中文", "İ", "ﬁ", "\n\t\r", "a" * 300,
       "\ufeff", "[mask]", "x[MASK]y", "\U000e0001"]

ENDS = (".", "!", "?", " 😀", "...", " (again).", "")


def check_one_line(error: ValueError) -> None:
    """A message for people is one line that says something."""
    assert str(error).strip()
    assert "\n" not in str(error)


def sentences(count: int, seed: int) -> list[str]:
    """`count` sentences; the same for the same seed."""
    draw = random.Random(seed)
    made = []
    for _ in range(count):
        clauses = [f"{draw.choice(SUBJECTS)} {draw.choice(VERBS)} {draw.choice(PLACES)}"
                   for _ in range(draw.randint(1, 3))]
        made.append(draw.choice((" and ", ", but ", "; ")).join(clauses) + draw.choice(ENDS))
    return made


def with_masks(texts: list[str], seed: int) -> list[str]:
    """The same with one or two words of each replaced by [MASK]."""
    draw = random.Random(seed)
    made = []
    for text in texts:
        words = text.split()
        for place in draw.sample(range(len(words)), min(draw.randint(1, 2), len(words))):
            words[place] = "[MASK]"
        made.append(" ".join(words))
    return made
