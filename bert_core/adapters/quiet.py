"""Keeping transformers' log lines and progress bars off standard error, where our own messages go."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No log lines below critical and no progress bars from transformers in here."""
    from transformers.utils import logging as theirs

    before, bars = theirs.get_verbosity(), theirs.is_progress_bar_enabled()
    theirs.set_verbosity(logging.CRITICAL)
    theirs.disable_progress_bar()
    try:
        yield
    finally:
        theirs.set_verbosity(before)
        if bars:
            theirs.enable_progress_bar()


def first_line(error: BaseException) -> str:
    """What an exception says, as one line of at most 200 characters."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
