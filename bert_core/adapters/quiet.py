"""Keeping transformers' log lines and progress bars off standard error, where our own messages go."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator

_lock = threading.Lock()
#: What the process had said before it became quiet (verbosity, progress bars), once for each thread that is inside.
_before: list[tuple[int, bool]] = []


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No log lines below critical and no progress bars from transformers in here; the last to leave puts them back."""
    from transformers.utils import logging as theirs

    with _lock:
        _before.append(_before[0] if _before else (theirs.get_verbosity(), theirs.is_progress_bar_enabled()))
        theirs.set_verbosity(logging.CRITICAL)
        theirs.disable_progress_bar()
    try:
        yield
    finally:
        with _lock:
            verbosity, bars = _before.pop()
            if not _before:
                theirs.set_verbosity(verbosity)
                if bars:
                    theirs.enable_progress_bar()


def first_line(error: BaseException) -> str:
    """What an exception says, as one line of at most 200 characters."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
