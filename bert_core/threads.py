"""How torch's OpenMP threads wait for one another: for a moment, then asleep.

A forward pass is hundreds of short parallel steps. Every thread that runs one
(the engine's worker, a page's script) has a team of OpenMP threads of its own,
and where the teams together outnumber the processors, GNU's OpenMP puts a
waiting thread to sleep at once: waking it costs more than the step. Spinning for
a few microseconds first makes a Trace through the engine a seventh faster at
base size, while a thread that waits longer still gives its processor away. The
explorer's server is the exception: it shares its processors with the browser
and with a class, whom a spinning thread keeps waiting. And a thread that only
waits gives its team back, so that the teams don't outnumber the processors.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable

#: About 50 microseconds, 10 where threads outnumber processors (libgomp, env.c).
_SETTINGS = {"OMP_WAIT_POLICY": "ACTIVE", "GOMP_SPINCOUNT": "5000"}
_OF_SERVER = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0"}
#: omp_pause_soft of omp.h (OpenMP 5.0): what was set stays set.
_SOFT = 1


def wait_briefly() -> None:
    """Set it for the OpenMP that torch is going to load; who has chosen otherwise keeps their choice."""
    if not _SETTINGS.keys() & os.environ.keys():
        os.environ.update(_SETTINGS)


def sleep_at_once() -> None:
    """Set it for a server; only a choice of `wait_briefly`, here or in the process that started this one, is undone."""
    if {name: os.environ[name] for name in _SETTINGS if name in os.environ} in ({}, _SETTINGS):
        os.environ.update(_OF_SERVER)


def give_team_back() -> None:
    """End the OpenMP threads that wait for the calling thread's next step; that step starts others (70 microseconds).

    Where another OpenMP than GNU's is at work nothing happens.
    """
    _pause()(_SOFT)


@functools.cache
def _pause() -> Callable[[int], int]:
    """libgomp's omp_pause_resource_all, which ends the caller's team and no other; torch must be loaded."""
    def nothing(_kind: int) -> int:
        return -1

    try:
        loaded = ctypes.CDLL(None)
    except (OSError, TypeError):
        return nothing
    is_gnu = hasattr(loaded, "GOMP_parallel") and not hasattr(loaded, "__kmpc_fork_call")
    return getattr(loaded, "omp_pause_resource_all", nothing) if is_gnu else nothing
