"""The trainer process: one at a time, one thread, out of everybody's way.

`python -m bert_core.training.live.worker` reads one JSON command a line from
standard input ({"do": "start" | "play" | "pause" | "step" | "stop" | "seen",
"run": id} with "folder" and "play" for a start, and "why" for a stop) and tells what it does in the
runs' folders. It ends with its standard input, that is, with the server.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bert_core.training.live.folder import RUN_ID, RunFolder, Status
from bert_core.training.live.lines import LineReader
from bert_core.training.live.specs import MAX_SECONDS, MAX_WORK_SECONDS, FinetuneSpec, PretrainSpec, Spec, from_json

#: Seconds after which a run ends that nobody was seen to watch.
LEASE = 60.0
#: Seconds between two reports of a running run, and between two looks at an idle queue.
REPORT_EVERY, IDLE = 0.5, 0.25
MAX_RUNS = 64
#: Address space of the process, bytes.
MAX_MEMORY = 12 * 2**30


class Run(Protocol):
    """What can be trained; between two calls of `advance` the trainer looks at commands and limits."""

    step: int
    steps: int

    def advance(self) -> None:
        """One optimiser step at most, or a piece of what must be done before or after it."""
        ...

    def report(self) -> None:
        """Write results to the folder."""
        ...


def begin(spec: Spec, folder: RunFolder) -> Run:
    """Prepare the run that a spec describes."""
    if isinstance(spec, PretrainSpec):
        from bert_core.training.live.pretraining import PretrainRun

        return PretrainRun(spec, folder)
    if isinstance(spec, FinetuneSpec):
        from bert_core.training.live.finetuning import FinetuneRun

        return FinetuneRun(spec, folder)
    raise ValueError(f"no run for {type(spec).__name__}")


def import_ahead() -> None:
    """Import what `begin` would, while nobody waits for it."""
    from bert_core.training.live import finetuning, pretraining  # noqa: F401


@dataclass
class Job:
    """A run as the trainer keeps it.

    Attributes:
        until: the step up to which it was asked to go.
        lease: clock time at which it ends if nobody is seen.
        ready: seconds of the clock that it took before its first step.
    """

    id: str
    folder: RunFolder
    until: int | None
    lease: float
    run: Run | None = None
    work: float = 0.0
    seconds: float = 0.0
    ready: float = 0.0
    reported: float = 0.0

    def now(self, state: str, place: int, message: str = "") -> Status:
        """Where it is, in this state."""
        step, steps = (self.run.step, self.run.steps) if self.run else (0, 0)
        left = (self.seconds - self.ready) / step * (steps - step) if state == "running" and step else None
        return Status(state, step, steps, self.work, self.seconds, left, place, message)

    @property
    def goal(self) -> int:
        """The step at which it pauses or is done."""
        return self.run.steps if self.until is None else min(self.until, self.run.steps)


class Trainer:
    """The queue and its runs; the first in the queue has the process until it is done, paused or stopped.

    Attributes:
        untold: id of a run -> writes where it is now, once the disk takes it.
    """

    def __init__(self) -> None:
        self.queue: list[Job] = []
        self.paused: dict[str, Job] = {}
        self.untold: dict[str, Callable[[], bool]] = {}

    # --- commands

    def obey(self, line: str) -> None:
        """Carry out one command; one that makes no sense is ignored."""
        try:
            command = json.loads(line)
            what, run_id = command["do"], command["run"]
        except (json.JSONDecodeError, KeyError, TypeError):
            return
        if what == "start":
            self._start(run_id, command)
            return
        job = self._find(run_id)
        if job is None:
            return
        if what == "seen":
            job.lease = time.monotonic() + LEASE
        elif what == "stop":
            self._end(job, "stopped", str(command.get("why", "")))
        elif what == "pause":
            self._pause(job)
        elif what in ("play", "step"):
            job.until = None if what == "play" else (job.run.step if job.run else 0) + 1
            self._enqueue(job)

    def _find(self, run_id: str) -> Job | None:
        return next((job for job in (*self.queue, *self.paused.values()) if job.id == run_id), None)

    def _start(self, run_id: str, command: dict) -> None:
        if not isinstance(run_id, str) or not RUN_ID.fullmatch(run_id) or self._find(run_id):
            return
        until = None if command.get("play", True) else 1
        job = Job(run_id, RunFolder(Path(command["folder"])), until, time.monotonic() + LEASE)
        if len(self.queue) + len(self.paused) >= MAX_RUNS:
            self._tell(job, "failed", message=f"{MAX_RUNS} runs are waiting already; try again in a few minutes")
            return
        self._enqueue(job)

    def _enqueue(self, job: Job) -> None:
        self.paused.pop(job.id, None)
        self.untold.pop(job.id, None)
        if job not in self.queue:
            self.queue.append(job)
        self._tell_places()

    def _pause(self, job: Job) -> None:
        if job in self.queue:
            self.queue.remove(job)
        _report(job)
        self.paused[job.id] = job
        self._tell(job, "paused")
        self._tell_places()

    def _end(self, job: Job, state: str, message: str = "") -> None:
        if job in self.queue:
            self.queue.remove(job)
        self.paused.pop(job.id, None)
        if state != "failed":
            _report(job)
        self._tell(job, state, message=message)
        job.run = None
        self._tell_places()

    def _tell(self, job: Job, state: str, place: int = 0, message: str = "") -> None:
        """Tell the pages; what the disk does not take is told later, or a page would wait for ever."""
        tell = functools.partial(job.folder.set_status, job.now(state, place, message))
        self.untold.pop(job.id, None)
        if not tell():
            self.untold[job.id] = tell

    def _tell_places(self) -> None:
        for place, job in enumerate(self.queue):
            if place:
                self._tell(job, "waiting", place)

    # --- work

    def work(self) -> None:
        """One step of the run at the head of the queue, if there is one."""
        self._end_unwatched()
        self.untold = {run_id: tell for run_id, tell in self.untold.items() if not tell()}
        if not self.queue:
            return
        job = self.queue[0]
        try:
            self._advance(job)
            self._after(job)
        except MemoryError:
            self._end(job, "failed", "the trainer ran out of memory; choose a smaller model or text")
        except OSError as error:
            why = error.strerror or "nothing can be written"
            self._end(job, "failed", f"the server can't keep the run's files now ({why})")
        except Exception as error:  # whatever a visitor's text or model does, the next one trains
            self._end(job, "failed", f"{error}".splitlines()[0][:300] if str(error) else type(error).__name__)

    def _advance(self, job: Job) -> None:
        """Prepare the run, or do its next step; on the job's account."""
        began, cpu = time.monotonic(), time.process_time()
        if job.run is None:
            self._tell(job, "running")
            spec = from_json(job.folder.read_text("spec.json") or "")
            job.run = begin(spec, job.folder)
            job.run.report()
        elif job.run.step < job.goal:
            job.run.advance()
        job.seconds += time.monotonic() - began
        job.work += time.process_time() - cpu
        if not job.run.step:
            job.ready = job.seconds

    def _after(self, job: Job) -> None:
        """Whether the run goes on, and what the pages are told."""
        if job.run is None or not self.queue or self.queue[0] is not job:
            return
        if job.run.step >= job.run.steps:
            self._end(job, "done")
        elif job.work > MAX_WORK_SECONDS:
            self._end(job, "stopped", f"{MAX_WORK_SECONDS:.0f} seconds of the processor are the limit here")
        elif job.seconds > MAX_SECONDS:
            self._end(job, "stopped", f"{MAX_SECONDS:.0f} seconds of training are the limit here")
        elif job.run.step >= job.goal:
            self._pause(job)
        elif time.monotonic() - job.reported > REPORT_EVERY:
            job.run.report()
            self._tell(job, "running")
            job.reported = time.monotonic()

    def _end_unwatched(self) -> None:
        now = time.monotonic()
        for job in [j for j in (*self.queue, *self.paused.values()) if j.lease < now]:
            self._end(job, "stopped", "nobody was watching any more")


def _report(job: Job) -> None:
    """Write results, if the run has begun and its visitor has not left meanwhile."""
    if job.run is not None:
        with contextlib.suppress(Exception):  # a run that can't tell is paused or ended all the same; the others go on
            job.run.report()


def niceness() -> int:
    """How far the trainer steps back: BOTH_WAYS_TRAINER_NICE, 0 to 19; by default 19, the lowest priority."""
    asked = os.environ.get("BOTH_WAYS_TRAINER_NICE", "")
    return int(asked) if asked in map(str, range(20)) else 19


def priority_class() -> int:
    """The same for Windows, where a process is started with its priority: flags for `subprocess.Popen`; 0 elsewhere."""
    name = "IDLE_PRIORITY_CLASS" if niceness() > 9 else "BELOW_NORMAL_PRIORITY_CLASS" if niceness() else ""
    return getattr(subprocess, name, 0)


def be_modest() -> None:
    """Low priority, one thread, bounded memory; of these what the system has."""
    if hasattr(os, "nice"):
        os.nice(niceness())
    with contextlib.suppress(ImportError, OSError, ValueError):  # Windows has no such bound, macOS takes none
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    import torch

    from bert_core.training.live.uncompiled import spare_the_compiler

    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    spare_the_compiler()


def main() -> None:
    """Work until standard input ends."""
    be_modest()
    trainer, commands = Trainer(), LineReader(sys.stdin.fileno())
    while True:
        lines = commands.read(0.0 if trainer.queue else IDLE)
        if lines is None:
            return
        for line in lines:
            trainer.obey(line)
        if not (lines or trainer.queue):
            import_ahead()
        trainer.work()


if __name__ == "__main__":
    main()
