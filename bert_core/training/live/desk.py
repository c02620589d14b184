"""The desk of a server: who trains what, and one trainer process behind it.

Pages ask the desk to start, steer and show runs. Whoever started a run steers
it, from any page and after any reload; others who know its id may watch. If its
owner is gone for a minute, the next one who watches takes it over, until who
started it is back; a class that follows its teacher only watches. A run whose
owner and watchers are gone ends, and its files go; after the last one the
trainer's process ends too. It may be made ready before the first one: then that
begins seconds earlier.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import secrets
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bert_core.training.live.folder import RUN_ID, RunFolder, Status
from bert_core.training.live.lines import LineWriter
from bert_core.training.live.places import claim_folder
from bert_core.training.live.specs import Spec, to_json
from bert_core.training.live.worker import priority_class

#: Seconds between two looks at who is still there.
LOOK_EVERY = 2.0
#: Seconds for which a run and its files stay after its last watcher was seen, unless a desk is told another.
KEEP = 300.0
#: Seconds without a connection after which an owner counts as gone: a reload takes less, and so does bad Wi-Fi.
GRACE = 60.0
#: Seconds for which a trainer that was made ready waits for a first run.
READY = 180.0
#: Ended runs that a visitor keeps, and runs kept in all: a class of thirty with each of the four ways of fine-tuning.
KEPT_EACH, KEPT_ALL = 5, 120
#: Bytes of all runs' files above which ended runs lose frames, and in the end go, those first that are missed least.
KEPT_BYTES = 2 * 2**30
COMMANDS = ("play", "pause", "step", "stop")

log = logging.getLogger("both_ways")


@dataclass
class Entry:
    """What the desk knows of a run.

    Attributes:
        owner: who steers it.
        starter: who started it, and steers it again once they are back.
        left: whether its owner put it aside (reset) and wants it no more.
        last_seen: when somebody who watches it was connected.
        owner_seen: when its owner was.
        lost: how it ended with its trainer, while the disk takes no word of that.
    """

    folder: RunFolder
    owner: str
    kind: str
    watchers: set[str] = field(default_factory=set)
    starter: str = ""
    left: bool = False
    last_seen: float = field(default_factory=time.monotonic)
    owner_seen: float = field(default_factory=time.monotonic)
    lost: Status | None = None

    def status(self) -> Status:
        """Where the run is."""
        return self.lost or self.folder.status()

    @property
    def ended(self) -> bool:
        return self.status().ended

    def tell(self) -> None:
        """Write what the disk did not take before."""
        if self.lost is not None and self.folder.set_status(self.lost):
            self.lost = None


class TrainingDesk:
    """See the module; every method may be called from any thread.

    Args:
        alive: whether a visitor is still connected.
        root: where runs keep their files; a folder of its own by default.
        keep: seconds for which a run that nobody watches any more stays.
    """

    def __init__(self, alive: Callable[[str], bool], root: Path | None = None, keep: float = KEEP) -> None:
        self.alive, self.keep = alive, keep
        self.root, self._claim = (root, None) if root is not None else claim_folder()
        self._entries: dict[str, Entry] = {}
        self._leaving: set[Path] = set()
        self._lock = threading.RLock()
        self._process: subprocess.Popen | None = None
        self._commands: LineWriter | None = None
        self._ready_until = 0.0
        self._closing = threading.Event()
        self._keeper = threading.Thread(target=self._look_after, name="training-desk", daemon=True)
        self._keeper.start()
        atexit.register(self.close)

    # --- what a page asks

    def start(self, owner: str, spec: Spec, files: Mapping[str, str] | None = None, play: bool = True) -> str:
        """Put a run in the queue; a visitor's other run that still wants the trainer is stopped.

        Args:
            owner: the visitor.
            files: name -> text that the run needs ('text.txt', 'train.tsv').
            play: False pauses after the first step.

        Returns:
            The run's id.

        Raises:
            ValueError: the disk takes no files, or the server is stopping.
        """
        with self._lock:
            if self._closing.is_set():
                raise ValueError("the server is stopping; nothing is trained any more")
            self._running_process()
            run_id = secrets.token_hex(16)
            folder = RunFolder(self.root / run_id)
            try:
                self.root.mkdir(mode=0o700, parents=True, exist_ok=True)  # what cleans /tmp may have taken it
                folder.path.mkdir()
                folder.write("spec.json", to_json(spec).encode())
                for name, text in (files or {}).items():
                    folder.write(name, text.encode())
            except OSError as error:
                shutil.rmtree(folder.path, ignore_errors=True)
                raise ValueError(f"the server can't keep the run's files now ({error.strerror})") from None
            self._stop_running(owner)  # not before the new one can be kept
            folder.set_status(Status("waiting"))
            self._entries[run_id] = Entry(folder, owner, spec.kind, {owner}, owner)
            self._send({"do": "start", "run": run_id, "folder": str(folder.path), "play": play})
            self._drop_oldest(owner)
        return run_id

    def make_ready(self) -> None:
        """Somebody may soon start a run: the trainer's process begins now, as its imports take seconds.

        It ends again where none is started.
        """
        now = time.monotonic()
        if now + READY / 2 < self._ready_until:  # also where it stopped at once: not anew at each look at a page
            return
        with self._lock:
            if not self._closing.is_set():
                self._ready_until = now + READY
                self._running_process()

    def command(self, owner: str, run_id: str, what: str) -> bool:
        """Steer a run: one of COMMANDS; False if it isn't this visitor's to steer."""
        with self._lock:
            entry = self._entries.get(run_id)
            if entry is None or entry.owner != owner or what not in COMMANDS or self._closing.is_set():
                return False
            if what in ("play", "step") and not entry.ended:
                self._stop_running(owner, but=run_id)
            self._send({"do": what, "run": run_id})
        return True

    def watch(self, visitor: str, run_id: str, may_steer: bool = True) -> RunFolder | None:
        """The folder of a run, and a note that this visitor looks at it; None if there is no such run.

        Args:
            may_steer: whether the visitor takes it over where its owner has been gone for long.
        """
        if not RUN_ID.fullmatch(run_id):
            return None
        with self._lock:
            entry = self._entries.get(run_id)
            if entry is None:
                return None
            self._give_back(visitor)
            entry.watchers.add(visitor)
            now = entry.last_seen = time.monotonic()
            if entry.owner == visitor or self.alive(entry.owner):
                entry.owner_seen = now
            elif may_steer and now - entry.owner_seen > GRACE:
                entry.owner, entry.owner_seen = visitor, now
            return entry.folder

    def status(self, run_id: str) -> Status | None:
        """Where a run is; None if there is no such run."""
        entry = self._entries.get(run_id)
        return None if entry is None else entry.status()

    def unfinished(self, owner: str, kind: str) -> str | None:
        """This visitor's newest run of the kind that still wants the trainer, paused ones included."""
        with self._lock:
            found = [one for one in self.runs(owner, kind) if not self._entries[one].ended]
        return found[-1] if found else None

    def runs(self, owner: str, kind: str) -> list[str]:
        """This visitor's runs of the kind that are kept and were not left, the newest last."""
        with self._lock:
            self._give_back(owner)
            return [run_id for run_id, e in self._entries.items() if (e.owner, e.kind, e.left) == (owner, kind, False)]

    def _give_back(self, starter: str) -> None:
        """Who started runs and is back steers them again, whoever took them over meanwhile."""
        for entry in self._entries.values():
            if entry.starter == starter:
                entry.owner = starter

    def leave(self, owner: str, kind: str) -> None:
        """The visitor wants none of their runs of this kind found again; what of them goes on is stopped.

        Nobody else could stop it, and others would wait behind it.
        """
        with self._lock:
            for run_id, entry in self._entries.items():
                if (entry.owner, entry.kind, entry.left) == (owner, kind, False):
                    entry.left = True
                    if not entry.ended:
                        self._send({"do": "stop", "run": run_id})

    def rest(self, owner: str) -> None:
        """Pause whatever this visitor has in the queue, and leave the trainer to others."""
        with self._lock:
            for run_id, entry in self._entries.items():
                if entry.owner == owner and not entry.ended:
                    self._send({"do": "pause", "run": run_id})

    def owns(self, visitor: str, run_id: str) -> bool:
        """Whether this visitor steers the run."""
        entry = self._entries.get(run_id)
        return entry is not None and entry.owner == visitor

    def __len__(self) -> int:
        return len(self._entries)

    # --- the process

    @property
    def pid(self) -> int | None:
        """Process id of the trainer, None while there is none."""
        return self._process.pid if self._process is not None else None

    def _send(self, command: dict) -> None:
        """Tell the trainer; nobody waits for it to listen, deep in a step on a busy machine."""
        self._running_process()
        self._commands.send(json.dumps(command))

    def _running_process(self) -> subprocess.Popen:
        if self._process is not None and self._process.poll() is not None:
            self._fail_all()
            self._commands.close()
            self._process = None
        if self._process is None:
            one = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
            home = str(Path(__file__).resolve().parents[3])
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bert_core.training.live.worker"], stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL, cwd=home, env={**os.environ, **one}, creationflags=priority_class(),
            )
            self._commands = LineWriter(self._process.stdin)
        return self._process

    def _fail_all(self) -> None:
        """The trainer is gone: its unfinished runs say so; the next start makes a new one."""
        for entry in self._entries.values():
            status = entry.status()
            if not status.ended:
                entry.lost = Status("failed", status.step, status.steps, message=(
                    "the trainer stopped unexpectedly (out of memory?); begin again"))
                entry.tell()

    # --- looking after the runs

    def _look_after(self) -> None:
        while not self._closing.wait(LOOK_EVERY):
            with self._lock:
                if self._closing.is_set():  # while it waited for the lock: a look could start another trainer
                    return
                try:
                    self.look_once()
                except Exception:  # one look in vain (a full disk, say) must not be the last
                    log.exception("a look after the training runs failed")

    def look_once(self) -> None:
        """Tell the trainer which runs are watched, and forget those long left."""
        if self._process is not None and self._process.poll() is not None:
            self._fail_all()
        self._sweep()
        self._keep_within()
        now = time.monotonic()
        listens = not (self._commands and self._commands.is_behind)  # before it is told of the first
        for run_id, entry in list(self._entries.items()):
            entry.tell()
            entry.watchers = {visitor for visitor in entry.watchers if self.alive(visitor)}
            is_there = self.alive(entry.owner)
            if is_there:
                entry.owner_seen = now
            if entry.watchers or (is_there and not entry.left):
                entry.last_seen = now
                if not entry.ended and listens:
                    self._send({"do": "seen", "run": run_id})
            elif now - entry.last_seen > self.keep:
                self._forget(run_id)
        if not self._entries and now > self._ready_until:
            self._dismiss()

    def _stop_running(self, owner: str, but: str | None = None) -> None:
        for run_id, entry in self._entries.items():
            if entry.owner == owner and run_id != but and not entry.ended:
                self._send({"do": "stop", "run": run_id, "why": "another run of yours took its place"})

    def _drop_oldest(self, owner: str) -> None:
        own = [r for r, e in self._entries.items() if e.owner == owner and e.ended]
        for run_id in own[: max(0, len(own) - KEPT_EACH)]:
            self._forget(run_id)
        self._keep_within()

    def _keep_within(self) -> None:
        """Ended runs lose frames, or go, until what is kept fits its bounds; runs that are on their way stay."""
        while len(self._entries) > KEPT_ALL or self._bytes() > KEPT_BYTES:
            if len(self._entries) <= KEPT_ALL and self._thin_one():
                continue
            run_id = self._least_missed()
            if run_id is None:
                return
            self._forget(run_id)

    def _thin_one(self) -> bool:
        """Every other frame of an ended run goes: of one that nobody watches, else of the largest; False if none can.

        Its curves, its start and its end stay.
        """
        ended = [entry for entry in self._entries.values() if entry.ended]
        ended.sort(key=lambda entry: (bool(entry.watchers), -entry.folder.bytes()))
        return any(entry.folder.thin() for entry in ended)

    def _least_missed(self) -> str | None:
        """The ended run to go next: one that nobody watches, else one of who has most; the oldest of those."""
        each = Counter(entry.owner for entry in self._entries.values())
        ended = [run_id for run_id, entry in self._entries.items() if entry.ended]
        return min(ended, default=None, key=lambda run_id: (
            bool(self._entries[run_id].watchers), -each[self._entries[run_id].owner]))

    def _bytes(self) -> int:
        return sum(entry.folder.bytes() for entry in self._entries.values())

    def _forget(self, run_id: str) -> None:
        entry = self._entries.pop(run_id)
        if not entry.ended:
            self._send({"do": "stop", "run": run_id})
        self._leaving.add(entry.folder.path)
        self._sweep()

    def _sweep(self) -> None:
        """Remove the files of forgotten runs; a trainer that still wrote then is swept after again."""
        for path in list(self._leaving):
            shutil.rmtree(path, ignore_errors=True)
            if not path.exists():
                self._leaving.discard(path)

    def _dismiss(self) -> None:
        """End the trainer's process, if there is one; what it did is wanted by nobody any more."""
        process = self._process
        if process is not None:
            process.kill()  # not asked to end: deep in a step, or in its imports, it would not hear it for seconds
            process.wait()
            self._commands.close()
        self._process = None

    def close(self) -> None:
        """End the trainer and remove all files."""
        self._closing.set()
        atexit.unregister(self.close)
        with self._lock:  # not in the middle of a look, which would start another trainer
            self._dismiss()
            self._entries.clear()
            shutil.rmtree(self.root, ignore_errors=True)
            if self._claim is not None:
                self._claim.release()
                shutil.rmtree(self.root, ignore_errors=True)  # Windows removes no open file
