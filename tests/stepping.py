"""What works a step at a time (Engine.call, a live run), brought to its end."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

Value = TypeVar("Value")


def finish(steps: Generator[None, None, Value]) -> tuple[Value, int]:
    """What a generator returns, and how often it pauses before."""
    pauses = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, pauses
        pauses += 1
