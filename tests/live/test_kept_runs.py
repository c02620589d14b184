"""Which ended runs a desk keeps when there are too many, or their files too large."""

from __future__ import annotations

import pytest

from bert_core.training.live import desk as desks
from bert_core.training.live.desk import TrainingDesk
from bert_core.training.live.folder import Status
from tests.live.runs import start, wait_for

pytestmark = pytest.mark.timeout(1800)


def test_the_oldest_ended_runs_go_when_their_files_are_too_many(desk, monkeypatch):
    first, second = (start(desk, owner, steps=2) for owner in ("ann", "ben"))
    wait_for(desk, first, "ann", lambda s: s.ended)
    wait_for(desk, second, "ben", lambda s: s.ended)
    size = desk.watch("ann", first).bytes()
    assert size > 10_000
    monkeypatch.setattr(desks, "KEPT_BYTES", 0.9 * size)
    third = start(desk, "ann")
    assert desk.watch("ann", first) is None
    assert desk.watch("ben", second) is not None
    assert desk.watch("ann", third) is not None


def kept_run(desk: TrainingDesk, owner: str, frames: int = 5) -> str:
    """An ended run with frames of 10 kB."""
    run_id = start(desk, owner)
    folder = desk.watch(owner, run_id)
    for step in range(frames):
        folder.write(f"frame-{step:06d}.safetensors", bytes(10_000))
    folder.set_status(Status("done", 40, 40))
    return run_id


def test_ended_runs_lose_frames_before_one_goes_also_while_nobody_begins_another(still, monkeypatch):
    one, other = kept_run(still, "ann", 9), kept_run(still, "ben")

    def kept(most: int) -> list[tuple[int, ...]]:
        monkeypatch.setattr(desks, "KEPT_BYTES", most)
        with still._lock:
            still.look_once()
        return [folder.frames() for folder in (still.watch("ann", one), still.watch("ben", other)) if folder]

    assert kept(10**6) == [tuple(range(9)), tuple(range(5))]
    assert kept(120_000) == [(0, 2, 4, 6, 8), tuple(range(5))]
    assert kept(70_000) == [(0, 4, 8), (0, 2, 4)]
    assert kept(30_000) == [(0, 4)]
    assert still.watch("ann", one) is None


def test_a_class_keeps_a_run_of_each_way(still, connected):
    connected.update(f"student {n}" for n in range(30))
    runs = [kept_run(still, f"student {n % 30}", 0) for n in range(120)]
    with still._lock:
        still.look_once()
    assert [run_id for run_id in runs if run_id not in still._entries] == []


def test_who_has_many_runs_takes_nobody_else_the_only_one(still, connected, monkeypatch):
    connected.add("eve")
    monkeypatch.setattr(desks, "KEPT_ALL", 4)

    def ended(owner: str) -> str:
        run_id = start(still, owner)
        still.watch(owner, run_id).set_status(Status("done", 40, 40))
        return run_id

    only, left, *many = (ended(owner) for owner in ("ann", "eve", "ben", "ben", "ben"))
    assert [run_id in still._entries for run_id in (only, left, *many)] == [True, True, False, True, True]
    connected.remove("eve")
    with still._lock:
        still.look_once()
    ended("ben")  # hers goes first, as nobody looks at it
    assert [run_id in still._entries for run_id in (only, left, *many)] == [True, False, False, True, True]
