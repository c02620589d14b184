"""Numbers of the command line: each fits, or one line says which do."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable


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


COUNT = number("a whole number, at least 1", int, lambda n: 1 <= n < 2**48)
