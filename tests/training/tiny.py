"""A corpus of a few made-up documents, its tokenizer, and runs small enough to repeat."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from bert_core.config import BertConfig
from bert_core.training.objectives import Objective
from bert_core.training.packing import Lengths, Packed, Special, pack
from bert_core.training.pretrain import Recipe, Trainer
from bert_core.training.start import start_weights
from tests.checkpoints import SIZES, wordpiece

CONFIG = BertConfig(**SIZES, initializer_range=0.3)
LENGTHS = Lengths(usual=30, longest=36, long_share=0.1, short_share=0.2)
_SUBJECTS, _VERBS = ("the dog", "a cat", "she", "the good film", "he"), ("barked", "slept", "walked home", "was bad")
_PLACES = ("in the garden", "in paris", "by the river", "all night")


def documents(count: int = 12) -> list[str]:
    """Documents of 8 short sentences, no two alike."""
    rng = np.random.default_rng(5)
    pick = lambda words: words[int(rng.integers(len(words)))]  # noqa: E731
    return ["\n".join(f"{pick(_SUBJECTS).capitalize()} {pick(_VERBS)} {pick(_PLACES)}. It was {n} not good."
                      for _ in range(4)) for n in range(count)]


def corpus(folder: Path) -> Path:
    """A corpus folder: one source of documents, one of single lines."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "stories.txt").write_text("\n\n".join(documents()), encoding="utf-8")
    (folder / "lines.txt").write_text("A cat slept.\nThe dog barked at the cat.\nWe walked home.\n", encoding="utf-8")
    return folder


def packed(tokens: int = 2500, seed: int = 1) -> Packed:
    texts = {"stories": documents(), "lines": ["A cat slept.", "We walked home in paris."]}
    return pack(texts, {"stories": 0.9, "lines": 0.1}, wordpiece(), tokens, LENGTHS, seed=seed)


def objective(kind: str = "mlm", **changes) -> Objective:
    return Objective(kind, Special.of(wordpiece()), np.arange(5, SIZES["vocab_size"]), seed=2, **changes)


def trainer(kind: str = "mlm", dtype: torch.dtype = torch.float32, **recipe) -> Trainer:
    """A fresh run from random weights; two made alike are alike."""
    weights, _ = start_weights(CONFIG, {}, kind, torch.zeros(CONFIG.vocab_size), seed=3)
    weights = {name: tensor.to(dtype) for name, tensor in weights.items()}
    settings = {"step_tokens": 120, "micro_tokens": 70, "lr": 2e-3, "head_lr": 4e-3, **recipe}
    return Trainer(CONFIG, weights, packed(), objective(kind), Recipe(**settings))
