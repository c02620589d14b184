"""How many there are of something, in words."""

from __future__ import annotations


def counted(count: int, one: str, many: str = "") -> str:
    """'1 piece', '2,000 pieces'.

    Args:
        many: the plural, where it isn't `one` with an s.
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"
