"""Going on with a run: is it still the run that it was?

A run's folder says in `run.json` what it was begun with. A sitting that asks
for something else would train another model from there on and record the
wrong settings, so it is refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_core.training.flags import OF_A_SITTING
from bert_core.training.pretrain import STATE, Recipe, Trainer, open_state, steps_of

#: Settings that name a place on disk; two spellings of one place are the same.
PLACES = ("corpus", "init", "packed")
WAY_OUT = "go on with what it had, or give another --out"


def earlier_record(out: Path) -> dict[str, Any]:
    """run.json of the run that goes on in `out`, or ended before its first checkpoint; empty where none is.

    Raises:
        ValueError: it is damaged.
    """
    path = out / "run.json"
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is damaged ({error})") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path} is damaged: it holds no settings")
    return found


def check_settings(settings: Mapping[str, Any], earlier: Mapping[str, Any]) -> None:
    """ValueError if a setting differs that makes the run what it is; what an old record lacks is not compared.

    Those of a sitting may differ; `tokens` has a rule of its own, below.
    """
    for name, new in settings.items():
        old = earlier.get(name, new)
        if name not in (*OF_A_SITTING, "tokens", "end_at", "out") and _place(name, old) != _place(name, new):
            flag = name.replace("_", "-")
            raise ValueError(f"{settings['out']} holds a run with --{flag} {old!r}, not {new!r}; {WAY_OUT}")


def _place(name: str, value: Any) -> Any:
    return os.path.abspath(value) if name in PLACES and value else value


def check_tokens(trainer: Trainer, out: Path, earlier: Mapping[str, Any]) -> None:
    """ValueError if `tokens` changes while the learning rate rises or falls, by the old number or the new."""
    recipe = trainer.recipe
    if earlier.get("tokens", recipe.tokens) == recipe.tokens:
        return
    plans = {len(steps_of(trainer.packed, recipe.step_tokens, earlier["tokens"])), trainer.steps}
    done = steps_done(out)
    moves = _moves(done, plans, recipe)
    if moves:
        raise ValueError(f"{out} holds a run with --tokens {earlier['tokens']}, not {recipe.tokens}, and after {done} "
                         f"steps the learning rate {moves}; {WAY_OUT}")


def _moves(done: int, plans: set[int], recipe: Recipe) -> str:
    """What the learning rate does after so many steps, where it would do otherwise by another of the plans; or ''."""
    rises = {int(recipe.warmup * steps) for steps in plans}
    if len(rises) > 1 and 0 < done < max(rises):  # one that is as long by both goes on as it began
        return "is still rising"
    if len(plans) > 1 and done - 1 > min(last_whole_step(steps, recipe.decay) for steps in plans):
        return "has begun to fall"
    return ""


def last_whole_step(steps: int, decay: float) -> int:
    """The last step, counted from 0, whose learning rate has not begun to fall."""
    return steps - max(1, int(decay * steps))


def steps_done(out: Path) -> int:
    """Steps that the checkpoint of a run has behind it; 0 without one."""
    if not (out / STATE).is_file():
        return 0
    with open_state(out) as file:
        return int(file.metadata()["step"])
