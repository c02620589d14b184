"""Arguments of the command line: each fits, or one line says what does."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


class UsageError(ValueError):
    """The command line is not understood; the message is one line."""


class Parser(argparse.ArgumentParser):
    """argparse without its usage dump and its own exit code."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Write the help; unlike argparse's own, it says so if it can't."""
        (file or sys.stdout).write(self.format_help())


def number(what: str, kind: type, fits: Callable[[float], bool]) -> Callable[[str], float]:
    """A type for argparse: numbers that fit, one line about all others."""

    def read(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = math.nan  # fits nowhere
        if not fits(value):
            raise argparse.ArgumentTypeError(f"must be {what}, got {text!r}")
        return value

    return read


def path(text: str) -> str:
    """A type for argparse: an empty path, of a shell's unset variable say, is not the present folder."""
    if not text:
        raise argparse.ArgumentTypeError("must be a path, got ''")
    return text


COUNT = number("a whole number, at least 1", int, lambda n: 1 <= n < 2**48)
