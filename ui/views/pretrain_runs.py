"""What the runs of the Pre-train page are called: by experiment and seed, and by what else departs from the default."""

from __future__ import annotations

import tomllib
from functools import cache

from bert_core.counting import counted
from bert_core.training.live.specs import PretrainSpec
from bert_core.training.live.world import TEACHING


@cache
def experiments() -> dict[str, dict]:
    """Name -> title, change, question, options, expected, why."""
    return tomllib.loads((TEACHING / "experiments.toml").read_text(encoding="utf-8"))


def title_of(spec: PretrainSpec) -> str:
    """The experiment that a spec belongs to."""
    changeable = {field for entry in experiments().values() for field in entry["change"]}
    start = PretrainSpec()
    changed = {field: getattr(spec, field) for field in changeable if getattr(spec, field) != getattr(start, field)}
    return next(entry["title"] for entry in experiments().values() if entry["change"] == changed)


def name_of(spec: PretrainSpec) -> str:
    """A run's name: experiment and seed; size, length and text where they are not the default."""
    start, parts = PretrainSpec(), [title_of(spec)]
    if (spec.layers, spec.width) != (start.layers, start.width):
        parts.append(f"{spec.layers} × {spec.width}")
    if spec.steps != start.steps:
        parts.append(counted(spec.steps, "step"))
    if spec.text == "own":
        parts.append("own text")
    return ", ".join([*parts, f"seed {spec.seed}"])


def status_line(spec: PretrainSpec) -> str:
    """The tiny BERT on screen, for the status bar."""
    mask = "causal" if spec.causal else "bidirectional"
    size = f"{spec.layers} layers × {spec.heads} heads"
    return " · ".join(["tiny BERT", "CPU, one thread, float32", name_of(spec), size, mask])
