"""What a visitor may ask the trainer for: plain, bounded, checked data.

A spec travels from the page to the trainer process as JSON; both sides check.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Names of the shipped tasks, files in assets/teaching.
TASKS = ("topic", "sentiment", "order")
#: What of the encoder learns in fine-tuning.
WAYS = ("full", "last", "frozen", "scratch")
#: What a chosen piece becomes: [MASK] / random / kept, in per cent.
SPLITS = {"80/10/10": (0.8, 0.1, 0.1), "100/0/0": (1.0, 0.0, 0.0)}

WIDTHS, HEADS = (64, 128, 192, 256), (2, 4)
MAX_STEPS, MAX_EPOCHS = 6000, 60
#: A run ends after this many seconds of the trainer's own time, or of the clock.
MAX_WORK_SECONDS, MAX_SECONDS = 240.0, 900.0
MAX_SEED = 9999


def _within(name: str, value: Any, low: float, high: float) -> None:
    whole = isinstance(low, int) and isinstance(high, int)
    good = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
    if not good or not low <= value <= high:
        raise ValueError(f"{name} is {value!r}; choose {'a whole number ' if whole else ''}from {low} to {high}")


def _one_of(name: str, value: Any, allowed) -> None:
    if value not in tuple(allowed):
        raise ValueError(f"{name} is {value!r}; choose one of {', '.join(map(str, allowed))}")


def _flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise ValueError(f"{name} is {value!r}; it must be true or false")


@dataclass(frozen=True)
class PretrainSpec:
    """A tiny BERT to pre-train from random weights.

    Attributes:
        layers, width, heads: L, D, H; the feed-forward part is 4 D wide.
        steps, batch: optimiser steps, and sentence pairs in each.
        lr: peak learning rate of AdamW.
        rate: share of the pieces that is chosen.
        split: a key of SPLITS.
        nsp: next-sentence prediction is part of the loss.
        causal: a token sees only what stands before it.
        positions: position embeddings are added.
        seed: of the random start and of everything drawn.
        text: 'shipped', or 'own' where the run's folder brings a text.
    """

    layers: int = 2
    width: int = 128
    heads: int = 4
    steps: int = 3000
    batch: int = 16
    lr: float = 1.5e-3
    rate: float = 0.15
    split: str = "80/10/10"
    nsp: bool = True
    causal: bool = False
    positions: bool = True
    seed: int = 0
    text: str = "shipped"

    kind = "pretrain"

    def __post_init__(self) -> None:
        _within("layers", self.layers, 1, 4)
        _one_of("width", self.width, WIDTHS)
        _one_of("heads", self.heads, HEADS)
        _within("steps", self.steps, 1, MAX_STEPS)
        _within("batch", self.batch, 4, 32)
        _within("lr", self.lr, 1e-5, 0.1)
        _within("rate", self.rate, 0.01, 0.9)
        _one_of("split", self.split, SPLITS)
        for name in ("nsp", "causal", "positions"):
            _flag(name, getattr(self, name))
        _within("seed", self.seed, 0, MAX_SEED)
        _one_of("text", self.text, ("shipped", "own"))


@dataclass(frozen=True)
class FinetuneSpec:
    """A classifier to fine-tune.

    Attributes:
        task: one of TASKS, or 'own' where the run's folder brings the rows.
        way: 'full' learns everything, 'last' the last two layers and the head,
            'frozen' the head alone, 'scratch' everything from random weights.
        epochs: passes over the training set; None takes what suits the way.
        lr: peak learning rate; None takes what suits the way.
        base: the model to start from.
    """

    task: str = "topic"
    way: str = "full"
    epochs: int | None = None
    lr: float | None = None
    batch: int = 16
    seed: int = 0
    base: str = "twin-bert"

    kind = "finetune"

    def __post_init__(self) -> None:
        _one_of("task", self.task, (*TASKS, "own"))
        _one_of("way", self.way, WAYS)
        if self.epochs is not None:
            _within("epochs", self.epochs, 1, MAX_EPOCHS)
        if self.lr is not None:
            _within("lr", self.lr, 1e-6, 0.1)
        _within("batch", self.batch, 4, 32)
        _within("seed", self.seed, 0, MAX_SEED)
        if not isinstance(self.base, str) or not 0 < len(self.base) <= 300:
            raise ValueError(f"base is {self.base!r}; give the name of a model")


Spec = PretrainSpec | FinetuneSpec
KINDS = {PretrainSpec.kind: PretrainSpec, FinetuneSpec.kind: FinetuneSpec}


def to_json(spec: Spec) -> str:
    """The spec as JSON, its kind included."""
    return json.dumps({"kind": spec.kind, **dataclasses.asdict(spec)}, sort_keys=True)


def from_json(text: str) -> Spec:
    """Read a spec and check every field.

    Raises:
        ValueError: no spec, or a value out of its bounds.
    """
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: a number of thousands of digits too
        raise ValueError(f"no spec: {error}") from None
    if not isinstance(values, Mapping) or values.get("kind") not in tuple(KINDS):
        raise ValueError(f"a spec needs a kind out of {', '.join(KINDS)}")
    kind = KINDS[values["kind"]]
    fields = {f.name for f in dataclasses.fields(kind)}
    unknown = sorted(values.keys() - fields - {"kind"})
    if unknown:
        raise ValueError(f"{values['kind']} knows no {unknown[0]!r}; known: {', '.join(sorted(fields))}")
    return kind(**{name: value for name, value in values.items() if name != "kind"})
