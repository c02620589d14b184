"""How torch's OpenMP threads wait for one another: for a moment, then asleep.

A forward pass is hundreds of short parallel steps. Every thread that runs one
(the engine's worker, a page's script) has a team of OpenMP threads of its own,
and where the teams together outnumber the processors, GNU's OpenMP puts a
waiting thread to sleep at once: waking it costs more than the step. Spinning for
a few microseconds first makes a Trace through the engine a seventh faster at
base size, while a thread that waits longer still gives its processor away. The
explorer's server is the exception: it shares its processors with the browser
and with a class, whom a spinning thread keeps waiting.
"""

from __future__ import annotations

import os

#: About 50 microseconds, 10 where threads outnumber processors (libgomp, env.c).
_SETTINGS = {"OMP_WAIT_POLICY": "ACTIVE", "GOMP_SPINCOUNT": "5000"}
_OF_SERVER = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0"}


def wait_briefly() -> None:
    """Set it for the OpenMP that torch is going to load; who has chosen otherwise keeps their choice."""
    if not _SETTINGS.keys() & os.environ.keys():
        os.environ.update(_SETTINGS)


def sleep_at_once() -> None:
    """Set it for a server; only a choice of `wait_briefly`, here or in the process that started this one, is undone."""
    if {name: os.environ[name] for name in _SETTINGS if name in os.environ} in ({}, _SETTINGS):
        os.environ.update(_OF_SERVER)
