"""Desks for tests: with a trainer of their own, with one that serves several tests, and with one that does nothing."""

from __future__ import annotations

import math

import pytest

from bert_core.training.live.desk import TrainingDesk


@pytest.fixture
def connected() -> set[str]:
    """Visitors whose browser is there."""
    return {"ann", "ben"}


@pytest.fixture
def desk(tmp_path, connected, monkeypatch):
    """A desk whose trainer runs at ordinary priority: at the lowest it may wait for minutes beside other tests."""
    monkeypatch.setenv("BOTH_WAYS_TRAINER_NICE", "0")
    made = TrainingDesk(connected.__contains__, tmp_path / "runs")
    (tmp_path / "runs").mkdir()
    yield made
    made.close()


@pytest.fixture
def still(desk, monkeypatch):
    """A desk whose trainer does nothing; the test says how far a run is."""
    monkeypatch.setattr(desk, "_send", lambda command: None)
    monkeypatch.setattr(desk, "_running_process", lambda: None)
    return desk


@pytest.fixture(scope="module")
def trainer(tmp_path_factory):
    """The desk of `warm`, which keeps its trainer between tests: to start one takes seconds."""
    made = TrainingDesk(lambda _visitor: True, tmp_path_factory.mktemp("runs"))
    made._ready_until = math.inf
    yield made
    made.close()


@pytest.fixture
def warm(trainer, connected, monkeypatch):
    """As `desk`, with the trainer of the tests before it if it lives; at the end its runs are stopped and forgotten."""
    monkeypatch.setenv("BOTH_WAYS_TRAINER_NICE", "0")
    monkeypatch.setattr(trainer, "alive", connected.__contains__)
    yield trainer
    with trainer._lock:
        for run_id in list(trainer._entries):
            trainer._forget(run_id)
