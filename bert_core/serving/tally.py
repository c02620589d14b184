"""Guesses of a class, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


def count_guesses(guesses: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """(word, how often), most often first.

    Spellings that differ in case are one word, for phones begin a line with a capital; it is written as most wrote it.
    """
    spelled: dict[str, Counter[str]] = {}
    for word in guesses:
        spelled.setdefault(word.casefold(), Counter())[word] += 1
    tally = [(max(found, key=lambda word: (found[word], word.islower())), found.total()) for found in spelled.values()]
    return tuple(sorted(tally, key=lambda entry: -entry[1]))
