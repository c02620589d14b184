"""Attention page: the stream that reaches one token of the last layer, as the component draws it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_core.figures.masking import percent
from bert_core.measures.flow import Flow, gathered
from bert_core.measures.predictions import Gap
from bert_core.trace import Array

#: Most tokens that are drawn; the others are one.
ROWS = 32
#: Other tokens that are named in words.
NAMED = 3


def flow_payload(
    found: Flow, pieces: Sequence[tuple[str, str]], position: int, lens: Sequence[Gap] = ()
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and arrays of the picture.

    Args:
        found: of the whole input.
        pieces: (text, kind) of each token, as `chips.describe` gives them.
        position: the token that is followed.
        lens: what the head would answer in each vector of it, from the input on; none where there is no such head.

    Returns:
        Header `rows` ({t: text, k: kind, i: position}, at most ROWS, the last one without a position for all others),
        `target` (a row), `lens` ([piece, probability] of each column); arrays `shares` (L+1, rows) and `edges`
        (L, rows, rows), float32.
    """
    drawn, kept = gathered(found, ROWS, position)
    rows: list[dict[str, Any]] = [{"t": pieces[n][0], "k": pieces[n][1], "i": n} for n in kept]
    if len(kept) < len(pieces):
        rows.append({"t": f"{len(pieces) - len(kept)} others", "k": "others"})
    header = {"rows": rows, "target": list(kept).index(position),
              "lens": [[gap.guesses[0].token, gap.guesses[0].probability] for gap in lens]}
    return header, {"shares": drawn.shares.astype(np.float32), "edges": drawn.edges.astype(np.float32)}


def in_words(found: Flow, names: Sequence[str], position: int) -> str:
    """Of what the token is made, by the input: itself, and the others that give most.

    Args:
        names: of each token, told apart where two are written the same.
    """
    shares = found.shares[0]
    others = [n for n in np.argsort(-shares, kind="stable").tolist() if n != position and shares[n] > 0][:NAMED]
    most = ", ".join(f"{names[n]} {percent(float(shares[n]))}" for n in others)
    start = f"{percent(float(shares[position]))} of the last layer's {names[position]} is its own input"
    return f"{start}; the largest of the rest: {most}." if others else f"{start}: it sees no other token."
