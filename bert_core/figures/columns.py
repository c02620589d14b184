"""Tokens as the columns of a map: a gap between a few, none between many, and more than it has pixels joined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bert_core.figures.theme import escape
from bert_core.trace import Array

#: Columns that are at least a pixel wide each on a phone; plotly leaves narrower ones out.
MOST_COLUMNS = 160
#: Columns up to which a gap of a pixel between two leaves enough of them to be seen.
MOST_WITH_GAP = 64


class Columns(NamedTuple):
    """Tokens as a map has them.

    Attributes:
        values: (rows, C).
        names: C names for the axis, as plotly shows them literally, all different.
        said: C times all that a column holds, for the hover label.
        gap: pixels between two columns.
    """

    values: Array
    names: list[str]
    said: list[str]
    gap: int


def joined(count: int) -> int:
    """How many neighbouring tokens stand in one column of a map of `count` tokens."""
    return max(1, -(-count // MOST_COLUMNS))


def columns(values: Array, tokens: Sequence[str]) -> Columns:
    """Values (rows, T) of T tokens, those of neighbours that share a column as the largest of them."""
    size = joined(len(tokens))
    starts = list(range(0, len(tokens), size))
    groups = [[escape(token) for token in tokens[start:start + size]] for start in starts]
    places = [_places(start, len(group)) for start, group in zip(starts, groups)]
    return Columns(
        np.maximum.reduceat(values, starts, axis=1) if size > 1 else values,
        [f"{place} {group[0]}" + (" …" if group[1:] else "") for place, group in zip(places, groups)],
        [f"{place} {' '.join(group)}" for place, group in zip(places, groups)],
        1 if len(tokens) <= MOST_WITH_GAP else 0)


def _places(start: int, count: int) -> str:
    """'6' for one position, '6–8' for three."""
    return str(start) if count == 1 else f"{start}–{start + count - 1}"
