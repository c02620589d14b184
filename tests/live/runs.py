"""Tiny runs for a desk's tests."""

from __future__ import annotations

import time

from bert_core.training.live.desk import TrainingDesk
from bert_core.training.live.folder import Status
from bert_core.training.live.specs import PretrainSpec

TINY = PretrainSpec(layers=1, width=64, heads=2, steps=40, batch=4, text="own")
TEXT = "\n\n".join(f"The {a} sees the {b}.\nThe {b} likes the {a}.\nThey sleep in the {c}."
                   for a in ("dog", "cat", "cow") for b in ("man", "girl", "king", "queen") for c in ("barn", "house"))
#: Seconds for the trainer to start and to train on a busy machine.
PATIENCE = 600.0


def start(desk: TrainingDesk, owner: str, play: bool = True, **changes) -> str:
    spec = PretrainSpec(**{**TINY.__dict__, **changes})
    return desk.start(owner, spec, {"text.txt": TEXT}, play)


def wait_for(desk: TrainingDesk, run_id: str, visitor: str, condition) -> Status:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        status = desk.watch(visitor, run_id).status()
        if condition(status):
            return status
        time.sleep(0.05)
    raise AssertionError(f"still {status}")
