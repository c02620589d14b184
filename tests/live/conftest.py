"""Desks for tests: one with a real trainer, one whose trainer does nothing."""

from __future__ import annotations

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
