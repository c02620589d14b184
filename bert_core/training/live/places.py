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
import time
from pathlib import Path

from filelock import FileLock, Timeout

_PREFIX, _LOCK = "both-ways-", "server.lock"
#: Seconds for which a lock that nobody holds is let be: its server may be about to take it.
_NEW = 60.0


def claim_folder() -> tuple[Path, FileLock]:
    """A new folder of this server, and the lock that says so until it is released."""
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    lock = FileLock(folder / _LOCK, thread_local=False)  # the thread that closes is another one
    lock.acquire(timeout=0)
    return folder, lock


def remove_left_behind() -> None:
    """Remove the folders of this user's servers that are no more."""
    for lock in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_LOCK}"):
        with contextlib.suppress(OSError, Timeout):
            if _is_ours(lock) and time.time() - lock.stat().st_mtime > _NEW:
                with FileLock(lock, timeout=0):
                    shutil.rmtree(lock.parent, ignore_errors=True)
                shutil.rmtree(lock.parent, ignore_errors=True)  # Windows removes no open file


def _is_ours(lock: Path) -> bool:
    """Whether folder and lock are this user's own, and no links to somewhere else."""
    user = getattr(os, "getuid", lambda: 0)()  # where files have no users, 0 is said of each
    return all(not path.is_symlink() and path.stat().st_uid == user for path in (lock.parent, lock))
