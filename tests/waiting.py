"""Waiting for what another thread or process does, and making it wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from bert_core.trace import run_batch


def wait_until(condition: Callable[[], object], seconds: float = 120.0) -> None:
    """Look again until it is true.

    Raises:
        AssertionError: if it is not after `seconds`.
    """
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not true after {seconds:.0f} s"
        time.sleep(0.02)


def gate_passes(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Local engines' passes wait from here on: (set once the first has begun, set it to let them go on)."""
    taken, gate = threading.Event(), threading.Event()

    def slow(loaded, requests):
        taken.set()
        gate.wait(60)
        return run_batch(loaded, requests)

    monkeypatch.setattr("bert_core.serving.local.run_batch", slow)
    return taken, gate
