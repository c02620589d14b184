"""Where a server keeps its runs: a folder of its own, and an end to what a killed server left behind.

A server that is told to stop removes its folder; one that is killed can't, and
the folder may hold texts that visitors were promised would go. So a server
holds a lock in its folder for as long as it lives, and whoever starts later
removes the folders whose lock nobody holds.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # no such locks on this system, so nothing is taken for left behind
    fcntl = None

_PREFIX, _LOCK = "both-ways-", "server.lock"


def claim_folder() -> tuple[Path, IO[str]]:
    """A new folder of this server, and the lock that says so for as long as it is open."""
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    lock = (folder / _LOCK).open("w")
    if fcntl is not None:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        lock.write(str(os.getpid()))  # an empty file is one that is about to be locked
        lock.flush()
    return folder, lock


def remove_left_behind() -> None:
    """Remove the folders of this user's servers that are no more."""
    for folder in _own_folders() if fcntl is not None else ():
        with contextlib.suppress(OSError), (folder / _LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if lock.read(1):
                shutil.rmtree(folder, ignore_errors=True)


def _own_folders() -> Iterator[Path]:
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if not folder.is_symlink() and folder.stat().st_uid == os.getuid():
                yield folder
