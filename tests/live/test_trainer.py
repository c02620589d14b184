"""The trainer's queue, in this process: places, limits, leases, and ends that are told."""

import errno
import json
import shutil
import time

import pytest

from bert_core.training.live import worker
from bert_core.training.live.folder import RunFolder
from bert_core.training.live.specs import PretrainSpec, to_json


class Counting:
    """A run that only counts, after so many pieces of preparation."""

    def __init__(self, steps: int, fails: bool = False, before: int = 0) -> None:
        self.step, self.steps, self.fails, self.before = 0, steps, fails, before

    def advance(self) -> None:
        if self.fails:
            raise ValueError("the text is no good\nsecond line")
        if self.before:
            self.before -= 1
        else:
            self.step += 1

    def report(self) -> None:
        """Nothing to write."""


@pytest.fixture
def trainer(monkeypatch, tmp_path):
    """A trainer whose runs count, and a way to start one."""
    made = worker.Trainer()
    monkeypatch.setattr(worker, "begin", lambda spec, folder: Counting(spec.steps, spec.seed == 13))

    def begin(number: int, **changes) -> RunFolder:
        folder = RunFolder(tmp_path / str(number))
        folder.path.mkdir()
        folder.write("spec.json", to_json(PretrainSpec(**changes)).encode())
        run_id = f"{number:032x}"
        made.obey(json.dumps({"do": "start", "run": run_id, "folder": str(folder.path)}))
        return folder

    return made, begin


def test_places_count_down_as_runs_finish(trainer):
    made, begin = trainer
    folders = [begin(n, steps=2) for n in range(4)]
    assert [f.status().place for f in folders[1:]] == [1, 2, 3]
    while not folders[0].status().ended:
        made.work()
    assert [f.status().place for f in folders[2:]] == [1, 2]


def test_a_failing_run_says_why_and_the_next_one_trains(trainer):
    made, begin = trainer
    bad, good = begin(1, steps=3, seed=13), begin(2, steps=3)
    while not good.status().ended:
        made.work()
    assert (bad.status().state, bad.status().message) == ("failed", "the text is no good")
    assert good.status().state == "done"


def test_a_run_ends_at_the_limit_of_its_time(trainer, monkeypatch):
    made, begin = trainer
    monkeypatch.setattr(worker, "MAX_SECONDS", 0.0)
    folder = begin(1, steps=50)
    made.work()
    assert folder.status().state == "stopped"
    assert folder.status().message == "0 seconds of training are the limit here"


@pytest.fixture
def unready(trainer, monkeypatch):
    """A run that has prepared for a while and is not ready yet."""
    made, begin = trainer
    monkeypatch.setattr(worker, "begin", lambda spec, folder: Counting(spec.steps, before=10**6))
    folder = begin(1, steps=50)
    for _ in range(5):
        made.work()
    assert (folder.status().state, folder.status().step) == ("running", 0)
    return made, folder


def test_a_run_is_cancelled_while_it_prepares(unready):
    made, folder = unready
    made.obey(f'{{"do": "stop", "run": "{1:032x}"}}')
    assert folder.status().state == "stopped"
    assert not made.queue


def test_a_run_that_makes_room_for_another_says_so(unready):
    made, folder = unready
    made.obey(f'{{"do": "stop", "run": "{1:032x}", "why": "another run of yours took its place"}}')
    assert folder.status().message == "another run of yours took its place"


def test_a_run_that_prepares_ends_with_its_lease(unready):
    made, folder = unready
    made.queue[0].lease = time.monotonic() - 1
    made.work()
    assert "nobody" in folder.status().message


def test_a_run_that_prepares_ends_at_the_limit_of_its_work(unready, monkeypatch):
    made, folder = unready
    monkeypatch.setattr(worker, "MAX_WORK_SECONDS", 0.0)
    made.work()
    assert folder.status().state == "stopped"
    assert folder.status().message == "0 seconds of the processor are the limit here"


def test_time_left_does_not_count_the_preparation(trainer):
    made, begin = trainer
    folder = begin(1, steps=50)
    made.work()
    job = made.queue[0]
    job.seconds, job.ready, job.run.step = 104.0, 100.0, 10
    made._tell(job, "running")
    assert folder.status().left == pytest.approx(16.0)


def test_a_run_whose_files_are_gone_stops_without_harm_to_the_next(trainer):
    made, begin = trainer
    gone, good = begin(1, steps=50), begin(2, steps=3)
    made.work()
    shutil.rmtree(gone.path)
    made.obey(f'{{"do": "stop", "run": "{1:032x}"}}')
    while not good.status().ended:
        made.work()
    assert good.status().state == "done"


@pytest.mark.parametrize(("command", "state"), [("pause", "paused"), ("stop", "stopped"), (None, "stopped")])
def test_a_run_that_can_not_report_keeps_no_other_from_training(trainer, monkeypatch, command, state):
    made, begin = trainer
    broken, good = begin(1, steps=50), begin(2, steps=1)
    made.work()

    def fails():
        raise ValueError("no such frame")

    monkeypatch.setattr(made.queue[0].run, "report", fails)
    if command:
        made.obey(json.dumps({"do": command, "run": f"{1:032x}"}))
    else:
        made.queue[0].lease = 0.0
    while not good.status().ended:
        made.work()
    assert (broken.status().state, good.status().state) == (state, "done")


def test_an_end_that_a_full_disk_did_not_take_is_told_later(trainer, monkeypatch):
    made, begin = trainer
    monkeypatch.setattr(worker, "REPORT_EVERY", -1.0)
    folder, write = begin(1, steps=50), RunFolder.write
    made.work()

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device", "/srv/runs/1/status.json")

    monkeypatch.setattr(RunFolder, "write", full)
    monkeypatch.setattr(made.queue[0].run, "report", full)
    made.work()
    assert not made.queue
    assert folder.status().state == "running"
    monkeypatch.setattr(RunFolder, "write", write)
    made.work()
    status = folder.status()
    assert (status.state, status.message) == (
        "failed", "the server can't keep the run's files now (No space left on device)")
    assert not made.untold


@pytest.fixture
def full_disk(monkeypatch):
    """A disk that takes nothing until it is called."""
    write = RunFolder.write

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(RunFolder, "write", full)
    return lambda: monkeypatch.setattr(RunFolder, "write", write)


def test_a_pause_that_a_full_disk_did_not_take_is_told_later(trainer, request):
    made, begin = trainer
    folder = begin(1, steps=50)
    made.work()
    has_room = request.getfixturevalue("full_disk")
    made.obey(f'{{"do": "pause", "run": "{1:032x}"}}')
    made.work()
    assert folder.status().state == "running"
    has_room()
    made.work()
    assert folder.status().state == "paused"


def test_a_run_that_goes_on_is_not_said_to_be_paused_by_what_was_untold(trainer, request):
    made, begin = trainer
    folder = begin(1, steps=50)
    made.work()
    has_room = request.getfixturevalue("full_disk")
    made.obey(f'{{"do": "pause", "run": "{1:032x}"}}')
    made.obey(f'{{"do": "play", "run": "{1:032x}"}}')
    has_room()
    made.work()
    assert folder.status().state == "running"


def test_a_lease_that_ran_out_ends_running_waiting_and_paused_runs(trainer):
    made, begin = trainer
    folders = [begin(n, steps=50) for n in range(3)]
    made.work()
    made.obey(f'{{"do": "pause", "run": "{2:032x}"}}')
    for job in (*made.queue, *made.paused.values()):
        job.lease = time.monotonic() - 1
    made.work()
    assert {f.status().state for f in folders} == {"stopped"}
    assert not made.queue
    assert not made.paused


def test_more_runs_than_fit_are_turned_away(trainer, monkeypatch):
    made, begin = trainer
    monkeypatch.setattr(worker, "MAX_RUNS", 2)
    folders = [begin(n, steps=5) for n in range(3)]
    assert folders[2].status().state == "failed"
    assert "try again" in folders[2].status().message
    assert len(made.queue) == 2
