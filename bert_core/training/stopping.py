"""A run that is told to stop, by Ctrl-C or SIGTERM, ends behind its step, so that nothing of it is lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def behind_a_step() -> Iterator[Callable[[], bool]]:
    """`with behind_a_step() as is_told: ...`: whether the run has been told to stop.

    The first signal takes its usual course at the end of the block, a second one at once; what the process was
    started to ignore (a shell's background job Ctrl-C) stays ignored.
    """
    told: list[int] = []
    before: dict[int, Any] = {}

    def go_back() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(number: int, frame: object) -> None:
        told.append(number)
        go_back()

    if threading.current_thread() is threading.main_thread():  # others can't take signals
        for number in SIGNALS:
            if signal.getsignal(number) not in (None, signal.SIG_IGN):  # another language's would not come back
                before[number] = signal.signal(number, note)
    try:
        yield lambda: bool(told)
    finally:
        go_back()
    if told:
        signal.raise_signal(told[0])
