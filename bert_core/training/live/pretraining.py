"""A tiny BERT learns from random weights, one step at a time, and leaves a film behind."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bert_core.config import BertConfig
from bert_core.model import Inputs, Model
from bert_core.training.live.folder import RunFolder
from bert_core.training.live.levels import levels
from bert_core.training.live.pairs import (
    MAX_TOKENS,
    held_out_pairs,
    lesson_of,
    scored,
    seen_at,
    to_batch,
)
from bert_core.training.live.specs import PretrainSpec
from bert_core.training.objectives import Batch, Losses, losses
from bert_core.training.optim import adamw, clip_gradients, learning_rate_factor, set_learning_rate
from bert_core.training.start import random_weights, shapes

#: Spread of the random start; 0.02, as for wide models, would leave a narrow one asleep for longer.
START_SPREAD = 0.06
HELD_OUT_PAIRS, CLIP, FRAMES = 300, 1.0, 24
HEADS = frozenset({"pooler", "mlm", "nsp"})
POSITIONS = "bert.embeddings.position_embeddings.weight"

#: Curves with a value for each look at the held-out pairs.
PROBE_CURVES = ("held_loss", "held_accuracy", "held_nsp")


class Losing(NamedTuple):
    """What one step did, a curve each: nats, shares and sizes."""

    loss: float
    accuracy: float
    nsp_loss: float
    lr: float
    gradient: float


def config_of(spec: PretrainSpec, vocabulary: int) -> BertConfig:
    """The architecture that the spec asks for."""
    return BertConfig(
        vocab_size=vocabulary, hidden_size=spec.width, num_hidden_layers=spec.layers,
        num_attention_heads=spec.heads, intermediate_size=4 * spec.width,
        max_position_embeddings=MAX_TOKENS, architectures=("BertForPreTraining",),
    )


def start_of(spec: PretrainSpec, vocabulary: int) -> dict[str, Tensor]:
    """The random weights that a run begins with: frame 0."""
    weights = random_weights(shapes(config_of(spec, vocabulary), "mlm"), START_SPREAD, spec.seed)
    weights[POSITIONS] = waves(MAX_TOKENS, spec.width) * START_SPREAD * 2**0.5
    return weights


def waves(length: int, width: int) -> Tensor:
    """(length, width) sines and cosines (Vaswani et al. 2017, section 3.5), where the learned positions start.

    Near positions start alike, so that heads find neighbours sooner; from then
    on the table is learned as in BERT.
    """
    rates = 10_000.0 ** (-torch.arange(0, width, 2) / width)  # (width / 2,)
    angles = torch.arange(length)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


def as_seen(inputs: Inputs, spec: PretrainSpec) -> Inputs:
    """The inputs under the spec's experiments: a causal mask, no position embeddings."""
    batch = len(inputs.input_ids)
    if spec.causal:
        inputs = inputs._replace(causal=torch.ones(batch, dtype=torch.bool))
    if not spec.positions:
        inputs = inputs._replace(embedding_gate=torch.tensor([[1.0, 1.0, 0.0]]).expand(batch, 3))
    return inputs


def joint_loss(found: Losses) -> Tensor:
    """Mean masked-LM loss plus mean next-sentence loss, nats (Devlin et al. 2018, A.2)."""
    loss = found.token / max(1, found.tokens)
    return loss + found.nsp / found.pairs if found.pairs else loss


class PretrainRun:
    """See `worker.Run`: prepared once, then stepped until it is done.

    Args:
        spec: what to train.
        folder: where the film goes; holds text.txt if spec.text is 'own'.
    """

    def __init__(self, spec: PretrainSpec, folder: RunFolder) -> None:
        self.spec, self.folder, self.step, self.steps = spec, folder, 0, spec.steps
        self.lesson = lesson_of(folder.read_text("text.txt") if spec.text == "own" else None)
        vocabulary = self.lesson.tokenizer.get_vocab_size()
        config = config_of(spec, vocabulary)
        self.weights = {n: t.requires_grad_() for n, t in start_of(spec, vocabulary).items()}
        self.model = Model(config, self.weights, HEADS)
        self.optimizer = adamw(self.weights, spec.lr, spec.lr)
        self.rows: list[Losing] = []
        self.probes: list[tuple[int, float, float, float]] = []
        self._probe_at = set(np.linspace(0, spec.steps, 41).astype(int).tolist())
        self._film_at = film_steps(spec.steps)
        self._prepare()

    def _prepare(self) -> None:
        """Levels, vocabulary and frame 0, before the first step."""
        pairs = held_out_pairs(self.lesson, HELD_OUT_PAIRS)
        self.probe_batch = to_batch(pairs, self.lesson)
        self.folder.set_values("levels", levels(self.lesson, pairs)._asdict())
        self.folder.set_values("scored", scored(self.lesson, pairs)._asdict())
        self.folder.set_values("config", self.model.config.to_dict())
        self.folder.write("tokenizer.json", self.lesson.tokenizer.to_str().encode())
        self._look()

    def advance(self) -> None:
        """One optimiser step."""
        factor = learning_rate_factor(self.step, self.steps, max(1, self.steps // 20), self.steps)
        set_learning_rate(self.optimizer, factor)
        batch = to_batch(seen_at(self.lesson, self.spec, self.step), self.lesson, self.spec.nsp)
        self.optimizer.zero_grad(set_to_none=True)
        found = self._losses(batch)
        joint_loss(found).backward()
        gradient = clip_gradients(self.weights, CLIP)
        self.optimizer.step()
        self.step += 1
        nsp = float(found.nsp.detach()) / found.pairs if found.pairs else float("nan")
        count = max(1, found.tokens)
        self.rows.append(Losing(float(found.token.detach()) / count, int(found.token_hits) / count, nsp,
                                self.spec.lr * factor, gradient))
        self._look()

    def _losses(self, batch: Batch) -> Losses:
        return losses(self.model, batch._replace(inputs=as_seen(batch.inputs, self.spec)))

    def _look(self) -> None:
        """At some steps: the held-out pairs, and a frame of the film."""
        if self.step in self._probe_at:
            with torch.no_grad():
                found = self._losses(self.probe_batch)
            self.probes.append((self.step, float(found.token) / found.tokens, int(found.token_hits) / found.tokens,
                                int(found.pair_hits) / found.pairs if found.pairs else float("nan")))
        if self.step in self._film_at:
            self.folder.set_frame(self.step, self.weights)

    def report(self) -> None:
        """Write the curves as they are now."""
        rows = np.array(self.rows, dtype=np.float32).reshape(-1, len(Losing._fields))
        probes = np.array(self.probes, dtype=np.float32)
        curves = {name: rows[:, n] for n, name in enumerate(Losing._fields)}
        curves |= {name: probes[:, n + 1] for n, name in enumerate(PROBE_CURVES)}
        self.folder.set_arrays("curves", curves | {"held_step": probes[:, 0]})


def film_steps(steps: int) -> frozenset[int]:
    """Steps with a frame: 0, close together at first, where most happens, and the last."""
    ramp = np.linspace(0, 1, FRAMES) ** 1.5
    return frozenset(np.rint(ramp * steps).astype(int).tolist())
