"""The one error of loading."""

from __future__ import annotations

#: Longest message, in characters: what a file says of itself may be a million of them.
MAX_MESSAGE = 500


class LoadError(ValueError):
    """A model can't be loaded.

    The message is one line of printable characters, at most MAX_MESSAGE of
    them, whatever names it repeats from a stranger's files.
    """

    def __init__(self, message: str):
        start = message[:MAX_MESSAGE + 1]
        line = "".join(c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}" for c in start)
        super().__init__(line if len(line) <= MAX_MESSAGE else line[:MAX_MESSAGE - 1] + "…")
