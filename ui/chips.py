"""Token chips: the same tokens, drawn and chosen the same way, on every page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bert_core.tokenizer import Encoding
from ui import components, state

#: Digits of the largest position that the address may name.
DIGITS = 6


def tokens(
    source: Encoding | Sequence[str],
    key: str,
    select: str = "none",
    selected: Sequence[int] = (),
    values: Sequence[float | None] | None = None,
    labels: Sequence[str] | None = None,
    fixed: Sequence[int] | None = None,
    label: str = "Tokens",
    opens: bool = False,
) -> tuple[int, ...]:
    """Draw tokens as chips; the choice lives in the address under `key`.

    Args:
        source: an Encoding, or the pieces themselves.
        key: name of the parameter in the address, and of the component.
        select: 'none', 'one' or 'many'.
        selected: positions chosen where the address says nothing.
        values: for each chip a probability (0 to 1) that shades it, or None.
        labels: for each chip a short text below the token.
        fixed: positions that can't be chosen; by default the special tokens
            of an Encoding, none of a plain sequence.
        label: name of the row for screen readers.
        opens: a token is chosen to be looked at, not to be hidden.

    Returns:
        The chosen positions, sorted; with select='none' an empty tuple.
    """
    pieces = describe(source)
    if fixed is None:
        fixed = [n for n, (_, kind) in enumerate(pieces) if kind == "special"] if isinstance(source, Encoding) else []
    chosen = () if select == "none" else chosen_positions(key, len(pieces), selected, fixed, select == "one")
    data = components.pack({
        "chips": [_chip(n, piece, values, labels) for n, piece in enumerate(pieces)],
        "select": select, "selected": list(chosen), "fixed": list(fixed), "label": label,
        "opens": opens,
    })
    components.mount("chips", key, data, on_event=receive_positions(key, len(pieces)))
    return chosen


def describe(source: Encoding | Sequence[str]) -> list[tuple[str, str]]:
    """(text to show, kind) for each token; '##' stays, so that pieces are seen as such."""
    if not isinstance(source, Encoding):
        return [(piece, _kind(piece, piece.startswith("[") and piece.endswith("]"))) for piece in source]
    pairs = zip(source.tokens, source.special, strict=True)
    pieces = [(token, _kind(token, special)) for token, special in pairs]
    for n in source.mask_positions:
        pieces[n] = ("[MASK]", "mask")
    return pieces


def _kind(token: str, special: bool) -> str:
    if token in ("[MASK]", "<mask>"):
        return "mask"
    if token in ("[UNK]", "<unk>"):
        return "unk"
    if special:
        return "special"
    return "sub" if token.startswith("##") else "word"


def _chip(n: int, piece: tuple[str, str], values, labels) -> dict[str, Any]:
    chip: dict[str, Any] = {"t": piece[0], "k": piece[1], "i": n}
    if values is not None and values[n] is not None:
        chip["v"] = round(float(values[n]), 5)
    if labels is not None and labels[n]:
        chip["l"] = str(labels[n])
    return chip


# --- the choice until one is made --------------------------------------------


def first_choice(encoding: Encoding) -> int:
    """The token that a page asks about until one is chosen: the first [MASK] that was typed, or else the second word.

    The same on every page, so that one who goes on to another finds there the token that was open before.
    """
    return encoding.mask_positions[0] if encoding.mask_positions else second_word(encoding)


def second_word(encoding: Encoding) -> int:
    """Position of the second word's first piece; of the first where there is one only, 0 where there is none."""
    words: dict[tuple[int | None, int | None], int] = {}
    for n in encoding.content:
        words.setdefault((encoding.sequence_ids[n], encoding.word_ids[n]), n)
    starts = list(words.values())
    return (starts[1:2] or starts or [0])[0]


# --- positions in the address ------------------------------------------------


def position(raw: str) -> int:
    """A position as the address writes it; ValueError if it is none that a text can have."""
    raw = raw.strip()
    if len(raw) > DIGITS or not raw.isdecimal():
        raise ValueError(f"no position: {raw[:20]}")
    return int(raw)


def place(count: int, first: int = 0) -> Callable[[str], int]:
    """Parser of one of `count` places, from `first` on in the address and from 0 on here; ValueError if it is none."""

    def parse(raw: str) -> int:
        value = position(raw)
        if not first <= value < first + count:
            raise ValueError(f"{value} is outside {first} to {first + count - 1}")
        return value - first

    return parse


def chosen_positions(
    key: str, count: int, default: Sequence[int] = (), fixed: Sequence[int] = (), only_one: bool = False
) -> tuple[int, ...]:
    """Positions that the address names under `key`, without those that aren't there.

    What the visitor chose here is kept in the address while the text changes,
    and only what is on screen counts. What came with a link and isn't on screen
    is dropped and said.
    """

    def parse(raw: str) -> tuple[int, ...]:
        values = () if raw == "-" else sorted({position(part) for part in raw[:4000].split(",")})
        there = tuple(n for n in values if 0 <= n < count and n not in fixed)
        if len(there) < len(values) and not state.was_set_here(key):
            raise ValueError(f"no such position: {raw}")
        return there

    chosen = tuple(n for n in state.param(key, parse, tuple(default)) if n < count)
    return chosen[:1] if only_one else chosen


def set_positions(key: str, positions: Sequence[int]) -> None:
    """Put positions in the address; for use in a callback."""
    state.set_param(key, ",".join(str(n) for n in positions) or "-")


def receive_positions(key: str, count: int) -> Callable[[dict[str, Any]], None]:
    """The on_event of a component that sends {'selected': [positions]}."""
    return lambda message: set_positions(key, components.numbers(message, "selected", count))
