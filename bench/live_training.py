"""Live training: a tiny BERT on the shipped text, and four ways to fine-tune on each shipped task.

Everything runs as on the pages: one thread, the trainer's own classes. Seconds
are of this process's processor time and of the clock; on an idle machine the
two agree. Accuracies are on lines and test sets that are never learned from.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bert_core.measures.classification import accuracy
from bert_core.training.live.finetuning import FinetuneRun
from bert_core.training.live.folder import RunFolder
from bert_core.training.live.pretraining import PretrainRun
from bert_core.training.live.specs import TASKS, WAYS, FinetuneSpec, PretrainSpec

SEEDS, PRETRAIN_SECONDS = 5, 180.0


def run() -> dict[str, dict[str, Any]]:
    """Pre-training by seed, then every task and way over five seeds."""
    torch.set_num_threads(1)
    results = {f"pretrain/seed-{seed}": pretrain(seed) for seed in range(3)}
    for task in TASKS:
        found = {way: [finetune(task, way, seed) for seed in range(SEEDS)] for way in WAYS}
        results |= {f"finetune/{task}/{way}": spread(rows) for way, rows in found.items()}
    return results


def pretrain(seed: int) -> dict[str, Any]:
    """The default run of the Pre-train page, cut at three minutes of processor time."""
    with tempfile.TemporaryDirectory() as scratch:
        clock, work = time.monotonic(), time.process_time()
        folder = RunFolder(Path(scratch))
        one = PretrainRun(PretrainSpec(seed=seed), folder)
        while one.step < one.steps and time.process_time() - work < PRETRAIN_SECONDS:
            one.advance()
        levels = folder.values("levels")
        best = max(levels["commonest"], levels["lookup"])
        step, loss, right, nsp = one.probes[-1]
        return {
            "ratio": round(right / best, 3), "steps": int(step), "accuracy": round(right, 4),
            "commonest": round(levels["commonest"], 4), "lookup": round(levels["lookup"], 4),
            "points_above": round(100 * (right - best), 1), "loss_nats": round(loss, 3),
            "plateau_nats": round(levels["unigram_loss"], 3), "nsp_accuracy": round(nsp, 3),
            "work_s": round(time.process_time() - work, 1), "clock_s": round(time.monotonic() - clock, 1),
        }


def finetune(task: str, way: str, seed: int) -> dict[str, float]:
    """One run of the Fine-tune page to its end."""
    with tempfile.TemporaryDirectory() as scratch:
        clock, work = time.monotonic(), time.process_time()
        folder = RunFolder(Path(scratch))
        one = FinetuneRun(FinetuneSpec(task=task, way=way, seed=seed), folder)
        while one.step < one.steps:
            one.advance()
        classes = one.data.indices("test")
        found = {key: accuracy(value, classes) for key, value in folder.arrays("baselines").items()}
        return {"accuracy": one.curves["test_accuracy"][-1], **found,
                "work_s": time.process_time() - work, "clock_s": time.monotonic() - clock}


def spread(rows: list[dict[str, float]]) -> dict[str, Any]:
    """Mean and standard deviation over the seeds, beside both baselines."""
    values = {key: np.array([row[key] for row in rows]) for key in rows[0]}
    best = max(values["words"].mean(), values["lstm"].mean())
    return {
        "ratio": round(float(values["accuracy"].mean() / best), 3),
        **{f"{key}_mean": round(float(values[key].mean()), 4) for key in ("accuracy", "words", "lstm")},
        **{f"{key}_std": round(float(values[key].std(ddof=1)), 4) for key in ("accuracy", "words", "lstm")},
        "work_s_max": round(float(values["work_s"].max()), 1), "clock_s_max": round(float(values["clock_s"].max()), 1),
        "seeds": len(rows),
    }
