"""A run's folder: how the trainer process and the pages tell each other things.

JSON, safetensors and .npz without pickles, each file replaced at once or not at
all, so that a page that reads while the trainer writes sees one or the other.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from bert_core.loading.files import patiently, put_in_place, write_tensors
from bert_core.training.live.moves import pack, unpack

RUN_ID = re.compile(r"[0-9a-f]{32}")
#: States from which a run does not go on; in the others it still wants the trainer.
ENDED = ("done", "stopped", "failed")


class NoFrame(ValueError):
    """There is no such frame, or no longer."""


@dataclass(frozen=True)
class Status:
    """Where a run is.

    Attributes:
        state: 'waiting', 'running', 'paused', or one of ENDED.
        step, steps: optimiser steps done and planned.
        work: seconds of the trainer's own processor time spent on it.
        seconds: seconds of the clock while it was running.
        left: seconds to go while it runs, None where unknown.
        place: in the queue; 1 is next, 0 is not waiting, or the trainer has yet to say.
        message: one line for the visitor, where something went wrong.
    """

    state: str = "waiting"
    step: int = 0
    steps: int = 0
    work: float = 0.0
    seconds: float = 0.0
    left: float | None = None
    place: int = 0
    message: str = ""

    @property
    def ended(self) -> bool:
        return self.state in ENDED


@dataclass(frozen=True)
class RunFolder:
    """The files of one run; every reader is ready for a file that isn't there yet."""

    path: Path

    def write(self, name: str, data: bytes) -> None:
        part = self.path / f".{name}.part"
        part.write_bytes(data)
        put_in_place(part, self.path / name)

    def bytes(self) -> int:
        """Size of all its files; one that goes meanwhile counts nothing."""
        total = 0
        with contextlib.suppress(FileNotFoundError), os.scandir(self.path) as files:
            for file in files:
                with contextlib.suppress(FileNotFoundError):
                    total += file.stat().st_size
        return total

    def read_text(self, name: str) -> str | None:
        try:
            return patiently(lambda: (self.path / name).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None

    # --- status

    def set_status(self, status: Status) -> bool:
        """Write the status; in vain if the visitor has left and the folder is gone.

        Returns:
            False where the disk took nothing, for now.
        """
        try:
            self.write("status.json", json.dumps(dataclasses.asdict(status)).encode())
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True

    def status(self) -> Status:
        text = self.read_text("status.json")
        return Status(**json.loads(text)) if text else Status()

    # --- small results

    def set_values(self, name: str, values: Mapping[str, Any]) -> None:
        """Write NAME.json."""
        self.write(f"{name}.json", json.dumps(values).encode())

    def values(self, name: str) -> dict[str, Any] | None:
        text = self.read_text(f"{name}.json")
        return json.loads(text) if text else None

    # --- arrays

    def set_arrays(self, name: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Write NAME.npz."""
        part = self.path / f".{name}.part.npz"
        np.savez(part, **arrays)
        put_in_place(part, self.path / f"{name}.npz")

    def arrays(self, name: str) -> dict[str, np.ndarray]:
        """Read NAME.npz; empty if it isn't there yet."""
        try:
            with patiently(lambda: np.load(self.path / f"{name}.npz", allow_pickle=False)) as data:
                return {key: data[key] for key in data.files}
        except FileNotFoundError:
            return {}

    # --- film of checkpoints

    def set_frame(self, step: int, weights: Mapping[str, Tensor]) -> None:
        """Save weights as they are after `step` steps, in half precision."""
        write_tensors({n: t.detach().to(torch.float16) for n, t in weights.items()}, self._frame(step))

    def set_moves(self, step: int, moves: Mapping[str, Tensor]) -> None:
        """Save how far weights are from their start after `step` steps, a byte for each number."""
        write_tensors(pack(moves), self._frame(step))

    def frames(self) -> tuple[int, ...]:
        """Steps that have a frame, ascending."""
        return tuple(sorted(int(p.stem.split("-")[1]) for p in self.path.glob("frame-*.safetensors")))

    def frame(self, step: int) -> dict[str, Tensor]:
        """Float32 weights of the frame at `step`.

        Raises:
            NoFrame: there is none.
        """
        return {name: tensor.float() for name, tensor in self._stored(step).items()}

    def moves(self, step: int) -> dict[str, Tensor]:
        """Float32 moves of the frame at `step`.

        Raises:
            NoFrame: there is none.
        """
        return unpack(self._stored(step))

    def thin(self) -> bool:
        """Let every other frame between the first and the last go; False where none stands there."""
        some_went = False
        for step in self.frames()[1:-1][::2]:
            with contextlib.suppress(PermissionError):  # on Windows one that somebody looks at stays
                self._frame(step).unlink(missing_ok=True)
                some_went = True
        return some_went

    def _frame(self, step: int) -> Path:
        return self.path / f"frame-{step:06d}.safetensors"

    def _stored(self, step: int) -> dict[str, Tensor]:
        try:
            return load_file(self._frame(step))
        except FileNotFoundError:
            there = ", ".join(map(str, self.frames())) or "none"
            raise NoFrame(f"step {step} has no checkpoint; there are {there}") from None
