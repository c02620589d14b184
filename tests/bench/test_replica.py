"""Which process the benchmark of a killed replica may kill."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench.replica import replicas

MINE, OTHERS = 40, 50


def process(proc: Path, pid: int, parent: int, command: bytes) -> None:
    """A process as Linux shows it in /proc."""
    (proc / str(pid)).mkdir()
    (proc / str(pid) / "cmdline").write_bytes(command)
    (proc / str(pid) / "status").write_text(f"Name:\tray::Serve\nState:\tS (sleeping)\nPid:\t{pid}\nPPid:\t{parent}\n")


@pytest.fixture
def proc(tmp_path) -> Path:
    """This benchmark's cluster and another's, each with a raylet, two replicas and their controller."""
    (tmp_path / "meminfo").write_text("MemTotal: 1 kB\n")
    process(tmp_path, 1, 0, b"/sbin/init\0")
    for start in (OTHERS, MINE):
        process(tmp_path, start, 1, b"python\0-m\0bench\0replica\0")
        process(tmp_path, start + 1, start, b"raylet\0--session_dir=/tmp/ray/session\0")
        process(tmp_path, start + 2, start + 1, b"ray::ServeController.run\0")
        for number in (3, 4):
            process(tmp_path, start + number, start + 1, b"ray::ServeReplica:both-ways:encoder.handle\0")
    return tmp_path


def test_only_replicas_of_the_cluster_that_it_started_are_found(proc):
    assert sorted(replicas(MINE, proc)) == [MINE + 3, MINE + 4]
    assert sorted(replicas(OTHERS, proc)) == [OTHERS + 3, OTHERS + 4]
    assert replicas(MINE + 3, proc) == []  # it has started none itself


def test_a_process_that_ends_while_it_is_looked_at_is_none(proc):
    (proc / str(MINE + 3) / "status").unlink()
    (proc / str(OTHERS + 1) / "status").unlink()
    assert replicas(MINE, proc) == [MINE + 4]
    assert replicas(OTHERS, proc) == []


def test_without_a_cluster_there_is_none_on_this_machine():
    assert replicas(os.getpid()) == []
