"""A few sessions' scripts at a time, in the order they came, instead of all at once.

Python runs one thread at a time. Sixty scripts started together would share it
in slices and all end last; one after the other they end spread over the same
time, so half of the class has its picture in half of it. A script that waits
for the engine gives its turn away meanwhile, so that the engine still sees many
requests at once. A class that follows its teacher, and pages that look at a run
by themselves, draw after whoever has done something: the teacher's own next key
among them.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

#: Scripts that draw at the same time: one that runs, one whose bytes are on their way.
AT_A_TIME = 2
#: Seconds after which a script goes on without a turn: one slow page must not hold up the others.
PATIENCE = 1.0


class Turns:
    """Turns at drawing, held by threads."""

    def __init__(self, at_a_time: int = AT_A_TIME, patience: float = PATIENCE) -> None:
        self._lock = threading.Lock()
        self._free = at_a_time  # more than none only while nobody waits
        self._lines: tuple[deque[threading.Event], ...] = deque(), deque()
        self._patience = patience
        self._mine = threading.local()

    @property
    def held(self) -> bool:
        """Whether this thread has a turn."""
        return getattr(self._mine, "held", False)

    @contextmanager
    def one(self, follows: bool = False, patience: float | None = None) -> Iterator[None]:
        """Wait for a turn, for as long as patience lasts, and give it back at the end; a part of a page is of its turn.

        Args:
            follows: this thread waits until nobody does who doesn't follow.
            patience: seconds, where it has more than others.
        """
        if getattr(self._mine, "inside", False):
            yield
            return
        self._mine.inside, self._mine.line = True, int(follows)
        self._mine.patience = self._patience if patience is None else patience
        self._take()
        try:
            yield
        finally:
            self._give()
            self._mine.inside = False

    @contextmanager
    def away(self, unless: bool = False) -> Iterator[None]:
        """Give the turn to another while this thread waits for something; does nothing without one.

        Args:
            unless: there is nothing to wait for, and who gave a turn away would wait for another behind everybody.
        """
        if unless or not self.held:
            yield
            return
        self._give()
        try:
            yield
        finally:
            self._take()

    def _take(self) -> None:
        called, line = threading.Event(), self._lines[self._mine.line]
        with self._lock:
            if self._free:
                self._free -= 1
                called.set()
            else:
                line.append(called)
        called.wait(self._mine.patience)
        with self._lock:
            self._mine.held = called.is_set()
            if not self._mine.held:
                line.remove(called)

    def _give(self) -> None:
        if not self.held:
            return
        self._mine.held = False
        with self._lock:
            line = next((line for line in self._lines if line), None)
            if line is None:
                self._free += 1
            else:
                line.popleft().set()


#: The turns of this server's sessions.
TURNS = Turns()
