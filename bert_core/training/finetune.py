"""Fine-tuning: one head on top of the encoder, low-rank updates below (or everything).

Devlin et al. 2018, section 4; the updates as in lora.py. Which rows, targets
and loss a task has is in taskdata.py.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from bert_core.config import BertConfig
from bert_core.model import Model, activate
from bert_core.shapes import head_shapes
from bert_core.training import lora
from bert_core.training.optim import adamw, clip_gradients, learning_rate_factor, set_learning_rate
from bert_core.training.packing import Special
from bert_core.training.taskdata import Row, Task


@dataclass(frozen=True)
class FineTuneRecipe:
    """Numbers of one fine-tuning.

    Attributes:
        rank: of the low-rank updates; 0 trains every weight.
        scale: factor on the updates.
        batch: sequences a step.
        lr, head_lr: peak learning rates of the updates and of the head.
        warmup: share of the steps with a rising rate; it falls for the rest.
        word_dropout: share of the input's pieces hidden behind [MASK], others at
            every step, so that the words around them have to serve.
        precision: 'fp32' or 'bf16' (autocast, float32 weights).
    """

    epochs: float = 2.0
    rank: int = 16
    scale: float = 2.0
    batch: int = 32
    lr: float = 1e-3
    head_lr: float = 1e-3
    weight_decay: float = 0.01
    warmup: float = 0.1
    clip: float = 1.0
    word_dropout: float = 0.0
    seed: int = 0
    precision: str = "fp32"


def start(base: Model, config: BertConfig, head: str | None, recipe: FineTuneRecipe) -> tuple[
    dict[str, Tensor], dict[str, Tensor]
]:
    """Frozen weights of the base, and what learns.

    With a rank, factors for the matrices, all biases and LayerNorms, and the
    head learn; without, everything but the base's own heads. A classifier on a
    base without a pooler gets a fresh one, as its head is. All are on the
    base's device, and what is drawn is drawn on the CPU: the same on every device.
    """
    encoder = {n: w.detach().float() for n, w in base.weights.items() if n.startswith("bert.")}
    if recipe.rank:
        learned = {n: w.to(base.device) for n, w in lora.factors(encoder, recipe.rank, recipe.seed).items()}
        learned |= {n: encoder[n].clone() for n in encoder if encoder[n].dim() == 1}
    else:
        learned = {n: w.clone() for n, w in encoder.items()}
    if head is not None:
        generator = torch.Generator().manual_seed(recipe.seed)
        wanted = head_shapes(config, head) | (head_shapes(config, "pooler") if head == "classification" else {})
        for name, shape in wanted.items():
            if name not in encoder:
                fresh = torch.randn(shape, generator=generator) * config.initializer_range
                learned[name] = (torch.zeros(shape) if name.endswith("bias") else fresh).to(base.device)
    frozen = {n: w for n, w in encoder.items() if n not in learned}
    return frozen, {n: w.requires_grad_() for n, w in learned.items()}


def go_on_from(learned: dict[str, Tensor], earlier: Mapping[str, Tensor]) -> None:
    """Put what an earlier fine-tuning learned in the place of what `start` made.

    A base that was trained on takes the updates of its last state well, so that
    a short run does what a long one did before.

    Raises:
        ValueError: it learned other tensors, or with another rank.
    """
    shapes, others = ({n: tuple(w.shape) for n, w in side.items()} for side in (learned, earlier))
    if shapes != others:
        name = min(n for n in shapes.keys() | others.keys() if shapes.get(n) != others.get(n))
        there, here = (f"with shape {side[name]}" if name in side else "not at all" for side in (others, shapes))
        raise ValueError(f"--warm-start: it learned {name} {there}, this run learns it {here}; "
                         "give the --task and --rank that it was trained with")
    with torch.no_grad():
        for name, weight in learned.items():
            weight.copy_(earlier[name])


def assemble(
    config: BertConfig, frozen: dict[str, Tensor], learned: dict[str, Tensor], heads: frozenset[str], scale: float
) -> Model:
    """A model that runs base and updates side by side, so that no matrix of the base needs a gradient."""
    weights = {**frozen, **{n: w for n, w in learned.items() if not lora.is_factor(n)}}
    fast = {}
    for name in learned:
        if name.endswith(lora.LOW_RANK_IN):
            linear = name.removesuffix(f".weight{lora.LOW_RANK_IN}")
            fast[linear] = _updated_linear(
                weights[f"{linear}.weight"], weights[f"{linear}.bias"], learned[name],
                learned[f"{linear}.weight{lora.LOW_RANK_OUT}"], scale,
            )
    return Model(config, weights, heads, fast)


def _updated_linear(
    weight: Tensor, bias: Tensor, into: Tensor, out: Tensor, scale: float
) -> Callable[[Tensor, str | None], Tensor]:
    """x -> x W^T + b + scale x in^T out^T, then the activation."""

    def run(x: Tensor, activation: str | None) -> Tensor:
        y = F.linear(x, weight, bias) + scale * F.linear(F.linear(x, into), out)
        return y if activation is None else activate(y, activation)

    return run


def steps_of(rows: int, batch: int, epochs: float) -> int:
    """Steps of a run: every pass has as many as it takes to see each row once."""
    return max(1, round(epochs * -(-rows // batch)))


def batches(rows: Sequence[Row], size: int, epochs: float, seed: int) -> list[list[Row]]:
    """Shuffled batches of like length, pass after pass; the last pass may be partial."""
    assert rows, "nothing to draw from"
    rng, made, wanted = np.random.default_rng(seed), [], steps_of(len(rows), size, epochs)
    while len(made) < wanted:
        order = rng.permutation(len(rows))
        one_pass = []
        for start_at in range(0, len(order), 16 * size):
            pool = sorted(order[start_at : start_at + 16 * size], key=lambda i: rows[i].length)
            one_pass += [[rows[i] for i in pool[k : k + size]] for k in range(0, len(pool), size)]
        made += [one_pass[i] for i in rng.permutation(len(one_pass))]
    return made[:wanted]


def with_hidden_pieces(rows: Sequence[Row], share: float, special: Special, rng: np.random.Generator) -> list[Row]:
    """The rows with a share of their pieces replaced by [MASK]; what they should give stays."""

    def hide(ids: tuple[int, ...]) -> tuple[int, ...]:
        drawn = rng.random(len(ids)) < share
        return tuple(special.mask if d and i not in special else i for i, d in zip(ids, drawn, strict=True))

    return [replace(row, sequences=tuple((hide(ids), kinds) for ids, kinds in row.sequences)) for row in rows]


def finetune(
    base: Model, config: BertConfig, task: Task, rows: Sequence[Row], recipe: FineTuneRecipe, special: Special,
    curve: Path | None = None, earlier: Mapping[str, Tensor] | None = None,
) -> tuple[dict[str, Tensor], float]:
    """Train a task.

    Args:
        curve: file for loss and rate of every step.
        earlier: what an earlier fine-tuning learned, to go on from.

    It runs where the base's weights are.

    Returns:
        What learned (factors, biases, LayerNorms, head), on the CPU, and the seconds it took.
    """
    frozen, learned = start(base, config, task.head, recipe)
    if earlier is not None:
        go_on_from(learned, earlier)
    heads = frozenset({task.head, "pooler"} - {None})
    model = assemble(config, frozen, learned, heads, recipe.scale)
    optimizer = adamw(learned, recipe.lr, recipe.head_lr, recipe.weight_decay)
    plan = batches(rows, recipe.batch, recipe.epochs, recipe.seed)
    rng = np.random.default_rng(recipe.seed)
    warmup, began, lines = int(recipe.warmup * len(plan)), time.perf_counter(), []
    for step, batch in enumerate(plan):
        factor = learning_rate_factor(step, len(plan), warmup, len(plan) - warmup)
        set_learning_rate(optimizer, factor)
        if recipe.word_dropout:
            batch = with_hidden_pieces(batch, recipe.word_dropout, special, rng)
        with torch.autocast(base.device.type, dtype=torch.bfloat16, enabled=recipe.precision == "bf16"):
            loss = task.loss(model, batch, special.pad)
        loss.backward()
        norm = clip_gradients(learned, recipe.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        lines.append({"step": step + 1, "loss": loss.item(), "lr": factor * recipe.lr, "grad_norm": norm})
        _progress(lines, len(plan), time.perf_counter() - began)
    if curve is not None:
        curve.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return {n: w.detach().cpu() for n, w in learned.items()}, time.perf_counter() - began


def _progress(lines: Sequence[dict[str, Any]], steps: int, seconds: float) -> None:
    """One line on standard error, every 20 steps."""
    done = len(lines)
    if done % 20 and done != steps:
        return
    recent = sum(line["loss"] for line in lines[-20:]) / len(lines[-20:])
    left = int(seconds / done * (steps - done))
    sys.stderr.write(f"{done}/{steps} loss {recent:.4f} left {left // 60}:{left % 60:02d}\n")
    sys.stderr.flush()
