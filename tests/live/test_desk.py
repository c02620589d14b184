"""The trainer process and its queue: steered, bounded, left behind, killed; nothing leaks."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from bert_core.training.live import desk as desks
from bert_core.training.live import worker
from bert_core.training.live.desk import TrainingDesk
from bert_core.training.live.folder import RunFolder, Status
from tests.live.runs import PATIENCE, TEXT, TINY, start, wait_for
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(1800)

ROOT = Path(__file__).resolve().parents[2]


def test_a_closed_desk_takes_no_run_and_starts_no_trainer(desk):
    run_id = start(desk, "ann")
    desk.close()
    with pytest.raises(ValueError, match="the server is stopping"):
        start(desk, "ann")
    assert not desk.command("ann", run_id, "pause")
    assert (desk.pid, len(desk), desk.root.exists()) == (None, 0, False)


def test_a_trainer_made_ready_takes_the_first_run_and_ends_where_none_comes(desk, monkeypatch):
    desk.make_ready()
    ready = desk.pid
    desk.look_once()
    assert desk.pid == ready
    assert wait_for(desk, start(desk, "ann"), "ann", lambda s: s.ended).state == "done"
    assert desk.pid == ready
    monkeypatch.setattr(desk, "_entries", {})
    desk.look_once()
    assert desk.pid == ready
    monkeypatch.setattr(desk, "_ready_until", time.monotonic() - 1)
    desk.look_once()
    assert desk.pid is None
    with pytest.raises(ProcessLookupError):
        os.kill(ready, 0)


def test_a_trainer_that_stops_at_once_is_not_made_ready_at_each_look_at_a_page(desk, monkeypatch):
    begun = []
    monkeypatch.setattr(desk, "_running_process", lambda: begun.append(1))
    for _ in range(3):
        desk.make_ready()
    assert len(begun) == 1
    monkeypatch.setattr(desk, "_ready_until", time.monotonic())
    desk.make_ready()
    assert len(begun) == 2
    desk.close()
    monkeypatch.setattr(desk, "_ready_until", 0.0)
    desk.make_ready()
    assert len(begun) == 2


def test_a_look_that_waited_while_the_desk_closed_looks_no_more(desk, monkeypatch):
    looks = []
    monkeypatch.setattr(desks, "LOOK_EVERY", 0.01)
    monkeypatch.setattr(desk, "look_once", lambda: looks.append(desk._closing.is_set()))
    desk._keeper.join(0)
    keeper = threading.Thread(target=desk._look_after, daemon=True)
    with desk._lock:
        keeper.start()
        time.sleep(0.1)  # it waits for the lock now
        desk.close()
    keeper.join(10)
    assert not keeper.is_alive()
    assert True not in looks


def test_a_trainer_that_does_not_listen_is_not_told_again_and_again_who_is_watched(desk, monkeypatch):
    start(desk, "ann")
    sent = []
    monkeypatch.setattr(desk, "_send", sent.append)
    monkeypatch.setattr(type(desk._commands), "is_behind", property(lambda self: True))
    for _ in range(10):
        desk.look_once()
    assert not sent
    monkeypatch.setattr(type(desk._commands), "is_behind", property(lambda self: False))
    desk.look_once()
    assert [command["do"] for command in sent] == ["seen"]


def test_every_run_that_waits_is_said_to_be_watched_at_each_look(desk, connected, monkeypatch):
    connected |= {f"visitor {n}" for n in range(9)}
    runs = [start(desk, owner, steps=3000) for owner in sorted(connected)]
    send, sent = desk._send, []
    monkeypatch.setattr(desk, "_send", lambda command: (sent.append(command), send(command)))
    for _ in range(5):
        wait_until(lambda: not desk._commands.is_behind)
        with desk._lock:  # the desk's own look comes after it
            sent.clear()
            desk.look_once()
            told = [command["run"] for command in sent if command["do"] == "seen"]
        assert told == runs


def test_a_root_that_was_cleaned_away_is_made_again_for_its_owner_alone(desk):
    shutil.rmtree(desk.root, ignore_errors=True)
    start(desk, "ann")
    assert desk.root.stat().st_mode & 0o777 == 0o700


def test_a_run_is_trained_to_the_end_by_one_modest_process(desk, monkeypatch):
    monkeypatch.delenv("BOTH_WAYS_TRAINER_NICE")
    run_id = start(desk, "ann")
    status = wait_for(desk, run_id, "ann", lambda s: s.ended)
    assert (status.state, status.step, status.steps) == ("done", 40, 40)
    assert os.getpriority(os.PRIO_PROCESS, desk.pid) == 19
    folder = desk.watch("ann", run_id)
    assert folder.frames()[0] == 0
    assert folder.frames()[-1] == 40
    assert len(folder.arrays("curves")["loss"]) == 40
    assert set(folder.values("levels")) == {"commonest", "lookup", "unigram_loss"}


def test_one_step_pause_and_play(warm):
    run_id = start(warm, "ann", play=False, steps=3000)
    assert wait_for(warm, run_id, "ann", lambda s: s.state == "paused").step == 1
    warm.command("ann", run_id, "step")
    wait_for(warm, run_id, "ann", lambda s: s.state == "paused" and s.step == 2)
    warm.command("ann", run_id, "play")
    wait_for(warm, run_id, "ann", lambda s: s.state == "running" and s.step > 2)
    warm.command("ann", run_id, "pause")
    at = wait_for(warm, run_id, "ann", lambda s: s.state == "paused").step
    time.sleep(0.5)
    assert warm.watch("ann", run_id).status().step == at
    warm.command("ann", run_id, "stop")
    assert wait_for(warm, run_id, "ann", lambda s: s.ended).state == "stopped"


@pytest.mark.parametrize(("asked", "given"), [("0", 0), ("7", 7), ("20", 19), ("-5", 19), ("low", 19), ("", 19)])
def test_a_trainer_never_pushes_ahead_whatever_is_asked(monkeypatch, asked, given):
    monkeypatch.setenv("BOTH_WAYS_TRAINER_NICE", asked)
    assert worker.niceness() == given


def test_two_visitors_queue_and_one_has_one_run(warm):
    first, second = start(warm, "ann", steps=3000), start(warm, "ben", steps=30)
    assert wait_for(warm, second, "ben", lambda s: s.place).state == "waiting"
    third = start(warm, "ann", steps=30)
    status = wait_for(warm, first, "ann", lambda s: s.ended)
    assert (status.state, status.message) == ("stopped", "another run of yours took its place")
    for run_id, visitor in ((second, "ben"), (third, "ann")):
        assert wait_for(warm, run_id, visitor, lambda s: s.ended).state == "done"


def test_others_may_watch_but_not_steer_until_the_owner_is_gone(desk, connected, monkeypatch):
    run_id = start(desk, "ann", steps=3000)
    assert desk.watch("ben", run_id) is not None
    assert not desk.command("ben", run_id, "stop")
    connected.remove("ann")  # a reload takes a moment
    desk.watch("ben", run_id)
    assert desk.owns("ann", run_id)
    monkeypatch.setattr(desks, "GRACE", 0.0)
    desk.watch("ben", run_id, may_steer=False)
    assert desk.owns("ann", run_id)
    desk.watch("ben", run_id)
    assert desk.owns("ben", run_id)
    assert desk.command("ben", run_id, "pause")
    connected.add("ann")
    assert desk.unfinished("ann", "pretrain") == run_id
    assert desk.owns("ann", run_id)
    assert not desk.command("ben", run_id, "stop")
    assert desk.command("ann", run_id, "stop")


def test_a_paused_run_is_found_again_by_its_owner_alone(still):
    run_id = start(still, "ann")
    still.watch("ann", run_id).set_status(Status("paused", 1, 40))
    assert still.unfinished("ann", "pretrain") == run_id
    assert still.unfinished("ann", "finetune") is None
    assert still.unfinished("ben", "pretrain") is None
    still.leave("ann", "finetune")
    assert still.unfinished("ann", "pretrain") == run_id
    still.leave("ann", "pretrain")
    assert still.unfinished("ann", "pretrain") is None
    again = start(still, "ann")
    assert still.unfinished("ann", "pretrain") == again
    still.watch("ann", again).set_status(Status("done", 40, 40))
    assert still.unfinished("ann", "pretrain") is None


def test_what_is_left_is_stopped_and_nobody_elses_run(still, monkeypatch):
    runs = {owner: start(still, owner) for owner in ("ann", "ben")}
    ended = start(still, "ann")
    still.watch("ann", ended).set_status(Status("done", 40, 40))
    sent = []
    monkeypatch.setattr(still, "_send", sent.append)
    still.leave("ann", "finetune")
    assert not sent
    for _ in range(2):
        still.leave("ann", "pretrain")
        assert sent == [{"do": "stop", "run": runs["ann"]}]


def test_who_rests_leaves_the_trainer_to_others_and_loses_nothing(still, monkeypatch):
    runs = {owner: start(still, owner) for owner in ("ann", "ben")}
    sent = []
    monkeypatch.setattr(still, "_send", sent.append)
    still.rest("ann")
    assert sent == [{"do": "pause", "run": runs["ann"]}]
    assert still.unfinished("ann", "pretrain") == runs["ann"]
    still.watch("ann", runs["ann"]).set_status(Status("done", 40, 40))
    still.rest("ann")
    assert len(sent) == 1


def test_a_run_lives_while_its_owner_is_on_another_page_after_a_reload(still, connected, monkeypatch):
    run_id = start(still, "ann")
    still.keep = 0.0
    with still._lock:
        connected.remove("ann")  # the reload: who watched is gone, a moment later the visitor is there again
        still._entries[run_id].watchers.clear()
        connected.add("ann")
        still.look_once()
    assert still.unfinished("ann", "pretrain") == run_id
    connected.remove("ann")
    still.look_once()
    assert len(still) == 0


def test_a_run_that_nobody_watches_ends_with_its_files_and_the_process(desk, connected):
    run_id = start(desk, "ann", steps=3000)
    folder = desk.watch("ann", run_id).path
    wait_for(desk, run_id, "ann", lambda s: s.state == "running")
    trainer = desk.pid
    connected.clear()
    desk.keep = 0.0
    wait_until(lambda: len(desk) == 0, PATIENCE)
    wait_until(lambda: not folder.exists(), PATIENCE)
    wait_until(lambda: desk.pid is None, PATIENCE)
    with pytest.raises(ProcessLookupError):
        os.kill(trainer, 0)
    connected.add("ben")
    later = start(desk, "ben", steps=20)
    assert wait_for(desk, later, "ben", lambda s: s.ended).state == "done"


def test_a_killed_trainer_is_said_and_replaced(warm):
    run_id = start(warm, "ann", steps=3000)
    wait_for(warm, run_id, "ann", lambda s: s.state == "running" and s.step)
    first = warm.pid
    os.kill(first, signal.SIGKILL)
    status = wait_for(warm, run_id, "ann", lambda s: s.ended)
    assert status.state == "failed"
    assert "begin again" in status.message
    assert "Reset" not in status.message  # a button that Fine-tune lacks
    again = start(warm, "ann", steps=20)
    assert wait_for(warm, again, "ann", lambda s: s.ended).state == "done"
    assert warm.pid != first


def test_a_trainer_killed_while_the_disk_is_full_leaves_no_run_going_for_ever(warm, monkeypatch):
    run_id = start(warm, "ann", steps=3000)
    wait_for(warm, run_id, "ann", lambda s: s.state == "running" and s.step)
    folder, write = warm.watch("ann", run_id), RunFolder.write

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with warm._lock:  # no look meanwhile
        monkeypatch.setattr(RunFolder, "write", full)
        os.kill(warm.pid, signal.SIGKILL)
        warm._process.wait()
        with pytest.raises(ValueError, match="No space left"):
            start(warm, "ben")  # which begins another trainer
        assert folder.status().state == "running"
        assert warm.status(run_id).state == "failed"
        assert warm.unfinished("ann", "pretrain") is None
        monkeypatch.setattr(RunFolder, "write", write)
    wait_until(lambda: folder.status().state == "failed", PATIENCE)
    assert "begin again" in folder.status().message


def test_a_trainer_with_no_ear_for_the_desk_holds_nobody_up_and_hears_it_later(warm):
    run_id = start(warm, "ann", steps=3000)
    wait_for(warm, run_id, "ann", lambda s: s.state == "running")
    os.kill(warm.pid, signal.SIGSTOP)
    try:
        for _ in range(3000):  # an hour and a half of looks, more than a pipe takes
            with warm._lock:
                warm.look_once()
        warm.command("ann", run_id, "stop")
    finally:
        os.kill(warm.pid, signal.SIGCONT)
    assert wait_for(warm, run_id, "ann", lambda s: s.ended).state == "stopped"


def test_closing_leaves_no_process_and_no_file(tmp_path):
    root = tmp_path / "runs"
    root.mkdir()
    desk = TrainingDesk(lambda visitor: True, root)
    start(desk, "ann", steps=3000)
    pid = desk.pid
    desk.close()
    assert not root.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_the_trainer_ends_with_its_server():
    process = subprocess.Popen([sys.executable, "-m", "bert_core.training.live.worker"], stdin=subprocess.PIPE)
    process.stdin.write(b'nonsense\n{"do": "stop", "run": "x"}\n[]\n{"do": "start", "run": "../x", "folder": "/"}\n')
    process.stdin.close()
    assert process.wait(PATIENCE) == 0


WITHOUT = """
import os
import select
import sys
def no_socket(*_):
    raise OSError("an operation was attempted on something that is not a socket")
del os.nice, os.set_blocking, os.fork
select.select, sys.modules["resource"] = no_socket, None
"""
A_RUN = """
import time
from bert_core.training.live.desk import TrainingDesk
from bert_core.training.live.specs import PretrainSpec
desk = TrainingDesk(lambda visitor: True)
run_id = desk.start("ann", PretrainSpec(**{spec}), {{"text.txt": {text!r}}})
while not (status := desk.status(run_id)).ended:
    time.sleep(0.05)
desk.close()
print(status.state, status.step, status.message)
"""


def test_a_run_needs_nothing_that_windows_lacks(tmp_path):
    """Desk and trainer on a Python that starts by losing it."""
    (tmp_path / "sitecustomize.py").write_text(WITHOUT, encoding="utf-8")
    home = os.pathsep.join([str(tmp_path), str(ROOT)])
    done = subprocess.run([sys.executable, "-c", A_RUN.format(spec=TINY.__dict__, text=TEXT)], cwd=ROOT,
                          env={**os.environ, "PYTHONPATH": home, "BOTH_WAYS_TRAINER_NICE": "0"}, capture_output=True,
                          text=True, check=False, timeout=PATIENCE)
    assert done.stdout == "done 40 \n", done.stderr


def test_where_memory_takes_no_bound_the_trainer_is_modest_all_the_same(monkeypatch):
    def refuse(*_):  # as macOS does
        raise ValueError("current limit exceeds maximum limit")

    done = []
    monkeypatch.setenv("BOTH_WAYS_TRAINER_NICE", "7")
    monkeypatch.setattr("resource.setrlimit", refuse)
    for name in ("os.nice", "torch.set_num_threads", "torch.set_num_interop_threads"):
        monkeypatch.setattr(name, lambda count, name=name: done.append((name, count)))
    monkeypatch.setattr("bert_core.training.live.uncompiled.spare_the_compiler", lambda: done.append("spared"))
    worker.be_modest()
    assert done == [("os.nice", 7), ("torch.set_num_threads", 1), ("torch.set_num_interop_threads", 1), "spared"]


def test_a_full_disk_is_said_and_leaves_no_folder(desk, monkeypatch):
    def full(_self, _name, _data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(RunFolder, "write", full)
    with pytest.raises(ValueError, match="No space left on device"):
        start(desk, "ann")
    assert not list(desk.root.iterdir())
    assert not len(desk)
    monkeypatch.undo()
    going = start(desk, "ann")
    sent = []
    monkeypatch.setattr(RunFolder, "write", full)
    monkeypatch.setattr(desk, "_send", sent.append)
    with pytest.raises(ValueError, match="No space left on device"):
        start(desk, "ann")
    assert sent == []  # the run that was going goes on
    assert desk.owns("ann", going)
    RunFolder(desk.root).set_status(Status("running"))  # neither the trainer nor the keeper ends by it


def test_the_keeper_outlives_a_look_that_failed(desk, monkeypatch, caplog):
    looks = []

    def fail():
        looks.append(1)
        raise OSError("No space left on device")

    monkeypatch.setattr(desks, "LOOK_EVERY", 0.01)
    monkeypatch.setattr(desk, "look_once", fail)
    wait_until(lambda: len(looks) > 2)
    assert "a look after the training runs failed" in caplog.text
