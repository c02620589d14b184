"""Lines of text between two processes, neither of which ever waits for the other.

A thread at each end does the waiting: not every system can be asked whether a
pipe is ready (Windows' select takes nothing but sockets).
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from typing import BinaryIO

#: Lines that an end takes in before it lets the pipe fill up.
_MOST_READ = 1000


class LineWriter:
    """Sends lines into a pipe; what its reader has no ear for yet waits here.

    Args:
        pipe: opened for bytes; it is closed after the last line, or when its reader is gone.
    """

    def __init__(self, pipe: BinaryIO) -> None:
        self._pipe = pipe
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=self._write, name="line-writer", daemon=True).start()

    @property
    def is_behind(self) -> bool:
        """Whether lines wait for the reader."""
        return not self._lines.empty()

    def send(self, line: str) -> None:
        """Give a line on its way."""
        self._lines.put(line.encode() + b"\n")

    def close(self) -> None:
        """Close the pipe once all lines are through."""
        self._lines.put(None)

    def _write(self) -> None:
        with contextlib.suppress(OSError, ValueError), self._pipe:  # its reader has gone, or who opened it closed it
            for line in iter(self._lines.get, None):
                self._pipe.write(line)
                self._pipe.flush()


class LineReader:
    """Takes in the lines of a pipe as they come.

    Args:
        descriptor: its number, opened for reading.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lines: queue.Queue[str | None] = queue.Queue(_MOST_READ)
        threading.Thread(target=self._read, name="line-reader", daemon=True).start()

    def read(self, timeout: float) -> list[str] | None:
        """The lines that are there, of which the first may take `timeout` seconds; None when the input has ended."""
        lines: list[str | None] = []
        with contextlib.suppress(queue.Empty):
            lines.append(self._lines.get(timeout=timeout) if timeout > 0 else self._lines.get_nowait())
            while lines[-1] is not None:
                lines.append(self._lines.get_nowait())
        return None if None in lines else lines

    def _read(self) -> None:
        rest = b""
        with contextlib.suppress(OSError):
            while data := os.read(self._descriptor, 65536):
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._lines.put(line.decode("utf-8", "replace"))
        self._lines.put(None)
