"""The pre-training loop: packed pairs in, checkpoints, curve and a model folder out.

A run lives in one folder: `run.json` (its settings), `packed.npz` (what it
reads), `state.safetensors` (where it is), `curve.jsonl` (how it went). Killed
at any moment and started again, it goes on as if it had never stopped.
"""

from __future__ import annotations

import json
import math
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from safetensors import SafetensorError, safe_open
from torch import Tensor

from bert_core.config import BertConfig
from bert_core.loading.files import in_place_of, write_tensors
from bert_core.model import Model
from bert_core.precision import bf16_is_faster, has_bf16
from bert_core.training import stopping, unpadded
from bert_core.training.ahead import ahead
from bert_core.training.objectives import Batch, Losses, Objective, Sample, losses
from bert_core.training.optim import OPTIMIZERS, clip_on_device, finite, learning_rate_factor, set_learning_rate
from bert_core.training.packing import Packed

STATE = "state.safetensors"
WORDS = "bert.embeddings.word_embeddings.weight"

#: What one more forward and backward pass costs, in pieces, and how many keys
#: cost a query as much as all the rest of its piece (measured, 6 x 384).
PASS_PIECES, KEYS_A_PIECE = 60, 1500


@dataclass(frozen=True)
class Recipe:
    """Numbers of a run that are not data.

    Attributes:
        step_tokens: pieces a step, over all processes; a step takes whole
            sequences until it has them.
        micro_tokens: most padded pieces in one forward pass; unpadded, whole
            sequences until it has them.
        unpadded: one row a pass, without padding between its sequences.
        optimizer: 'adamw', or 'muon' for the matrices of the layers.
        lr, head_lr: peak learning rates of encoder and heads.
        tokens: pieces to read in all; None reads all that is packed. May be
            changed from one sitting to the next between the rise and the fall.
        end_at: pieces after which the run is over, its learning rate still
            that of a run over `tokens`; None goes to the end.
        warmup, decay: shares of the steps with a rising and a falling
            learning rate.
        nsp_weight: factor on the next-sentence loss; 1 is the paper's.
        clip: largest gradient norm.
        precision: 'fp32' or 'bf16' (autocast, float32 weights).
        freeze_words: keep the word embeddings, and with them the decoder's
            matrix, as the start has them.
        learn_words: of so many pieces the word embeddings learn, those that
            are packed most often; None leaves it to `freeze_words`.
        save_seconds: time between two checkpoints.
    """

    step_tokens: int = 1024
    micro_tokens: int = 1024
    unpadded: bool = False
    optimizer: str = "adamw"
    lr: float = 5e-4
    head_lr: float = 2e-3
    tokens: int | None = None
    end_at: int | None = None
    warmup: float = 0.03
    decay: float = 0.4
    weight_decay: float = 0.01
    nsp_weight: float = 1.0
    clip: float = 1.0
    precision: str = "fp32"
    freeze_words: bool = False
    learn_words: int | None = None
    save_seconds: float = 300.0


def pick_device(asked: str | None) -> str:
    """Where to train: a GPU where there is one, unless asked otherwise.

    Raises:
        ValueError: it is no device, or not here.
    """
    chosen = asked or ("cuda" if torch.cuda.is_available() else "cpu")
    if not re.fullmatch(r"cpu|cuda(:\d+)?", chosen):
        raise ValueError(f"--device {chosen!r}: choose cpu or cuda")
    if chosen != "cpu" and not torch.cuda.is_available():
        raise ValueError(f"--device {chosen!r}: this torch finds no CUDA device; leave it out, or choose cpu")
    return chosen


def pick_precision(asked: str, device: str) -> str:
    """'auto' is bf16 where the hardware has instructions for it and, on a processor, they are faster than fp32's."""
    if asked != "auto":
        return asked
    return "bf16" if has_bf16(device) and (device.startswith("cuda") or bf16_is_faster()) else "fp32"


def wait_for_all() -> None:
    """Until every process of the run is here; at once where there is one."""
    if dist.is_initialized():
        dist.barrier()


def steps_of(packed: Packed, step_tokens: int, tokens: int | None = None) -> list[range]:
    """Consecutive sequences grouped into steps of at least `step_tokens` pieces, `tokens` in all."""
    steps, start, end = [], 0, len(packed)
    while start < end and (tokens is None or packed.offsets[start] < tokens):
        wanted = packed.offsets[start] + step_tokens
        stop = min(end, max(start + 1, int(np.searchsorted(packed.offsets, wanted))))
        steps.append(range(start, stop))
        start = stop
    return steps


def still_words(packed: Packed, learning: int, vocab_size: int) -> Tensor:
    """Rows of the word embeddings that stay, in order: all but those of the `learning` pieces packed most often."""
    counts = np.bincount(packed.ids, minlength=vocab_size)[:vocab_size]
    return torch.from_numpy(np.sort(np.argsort(-counts, kind="stable")[learning:]))


def micro_batches(samples: Sequence[Sample], micro_tokens: int) -> Iterator[list[Sample]]:
    """Sequences of like length together, at most `micro_tokens` padded pieces each.

    Where to cut is chosen so that padding, and the price of one more pass, come
    to the least in all.
    """
    ordered = sorted(samples, key=lambda s: -len(s.input_ids))
    lengths = [len(s.input_ids) for s in ordered]
    least, cuts = [0.0], [0]  # of the first n sequences; where their last batch starts
    for end in range(1, len(ordered) + 1):
        found = (math.inf, 0)
        for start in range(end - 1, -1, -1):
            padded = (end - start) * lengths[start]
            if padded > micro_tokens and end - start > 1:
                break
            found = min(found, (least[start] + padded * (1 + lengths[start] / KEYS_A_PIECE) + PASS_PIECES, start))
        least.append(found[0])
        cuts.append(found[1])
    bounds, end = [], len(ordered)
    while end:
        bounds.append((cuts[end], end))
        end = cuts[end]
    yield from (ordered[start:end] for start, end in reversed(bounds))


class Work(NamedTuple):
    """What one step reads.

    Attributes:
        chosen: predictions in the step's loss, over all processes.
        pairs: labelled pairs in it, likewise; both at least 1.
        batches: of this process.
    """

    chosen: int
    pairs: int
    batches: Sequence[Batch | unpadded.Row]


@dataclass(frozen=True)
class Works:
    """The work of every step by its number; the same whichever process makes it.

    Attributes:
        plan: the sequences of each step.
        rank, processes: every `processes`-th sequence is this one's.
        longest: most pieces of a sequence, for unpadded rows; None pads.
    """

    packed: Packed
    objective: Objective
    plan: Sequence[range]
    micro_tokens: int
    rank: int
    processes: int
    longest: int | None

    def __len__(self) -> int:
        return len(self.plan)

    def __getitem__(self, step: int) -> Work:
        """Sequences corrupted and put into batches, on the CPU."""
        samples = [self.objective.sample(self.packed[i]) for i in self.plan[step]]
        chosen = max(1, sum(len(s.targets) for s in samples))
        pairs = max(1, sum(s.label >= 0 for s in samples))
        return Work(chosen, pairs, self._batches(samples[self.rank :: self.processes]))

    def _batches(self, own: Sequence[Sample]) -> Sequence[Batch | unpadded.Row]:
        if self.longest is None:
            return [self.objective.collate(micro) for micro in micro_batches(own, self.micro_tokens)]
        room, pad = unpadded.room_for(self.micro_tokens, self.longest), self.objective.special.pad
        return [unpadded.join(part, room, self.longest, pad, self.objective.kind != "mlm")
                for part in unpadded.rows_of(own, self.micro_tokens)]


@contextmanager
def open_state(folder: Path, device: str = "cpu") -> Iterator[Any]:
    """The checkpoint of a run.

    Raises:
        ValueError: it is damaged, or another run's.
    """
    try:
        with safe_open(folder / STATE, "pt", device=device) as file:
            yield file
    except (SafetensorError, KeyError, TypeError) as error:
        raise ValueError(f"{folder / STATE} is no checkpoint of this run ({error}); without it the run begins "
                         "anew") from None


class Trainer:
    """One run: weights, optimiser, and the step it is at.

    Attributes:
        weights: name -> float32 tensor; all learn but the frozen words.
        still: (V - n,) rows of the word embeddings that stay as the start has
            them while the others learn; None where there are none such.
        step: steps done.
        seconds: time spent training, over all sittings.
    """

    def __init__(
        self, config: BertConfig, weights: dict[str, Tensor], packed: Packed, objective: Objective,
        recipe: Recipe, device: str = "cpu", workers: int = 0,
    ) -> None:
        self.config, self.packed, self.objective, self.recipe = config, packed, objective, recipe
        self.device, self.workers = device, workers
        self.weights = {
            n: w.to(device).requires_grad_(not (recipe.freeze_words and n == WORDS)) for n, w in sorted(weights.items())
        }
        self.still = None if recipe.learn_words is None else still_words(packed, recipe.learn_words, config.vocab_size)
        if self.still is not None:
            self.still = self.still.to(device)
            self._start = self.weights[WORDS].detach()[self.still]
        self.model = Model(config, self.weights)
        self.optimizer = OPTIMIZERS[recipe.optimizer](self.weights, recipe.lr, recipe.head_lr, recipe.weight_decay)
        self.plan = steps_of(packed, recipe.step_tokens, recipe.tokens)
        self.step = 0
        self.seconds = 0.0
        self.rank = dist.get_rank() if dist.is_initialized() else 0
        self.processes = dist.get_world_size() if dist.is_initialized() else 1
        self._coming: Iterator[Work] | None = None  # of the steps from `step` on

    @property
    def steps(self) -> int:
        return len(self.plan)

    @property
    def last(self) -> int:
        """Steps after which the run is over: all of the plan, or those that reach `end_at`."""
        end = self.recipe.end_at
        return self.steps if end is None else min(self.steps, len(steps_of(self.packed, self.recipe.step_tokens, end)))

    def train_step(self) -> dict[str, float]:
        """One optimiser step; returns what the curve records of it.

        A GPU is asked for numbers once, at the end, as it has nothing to do while it is waited for.

        Raises:
            ValueError: the gradient's norm is no number; the weights are none either from here on.
        """
        began = time.perf_counter()
        warmup, decay = (int(share * self.steps) for share in (self.recipe.warmup, self.recipe.decay))
        factor = learning_rate_factor(self.step, self.steps, warmup, decay)
        set_learning_rate(self.optimizer, factor)
        counts = self._accumulate(self._next())
        if self.still is not None:
            self.weights[WORDS].grad[self.still] = 0.0
        norm = clip_on_device(self.weights, self.recipe.clip)
        self.optimizer.step()
        if self.still is not None:  # weight decay reaches them without a gradient
            with torch.no_grad():
                self.weights[WORDS][self.still] = self._start
        self.optimizer.zero_grad(set_to_none=True)
        *sums, norm = torch.cat([counts, norm.detach().double()[None]]).tolist()
        finite(norm)
        self.step += 1
        self.seconds += time.perf_counter() - began
        read = int(self.packed.offsets[self.plan[self.step - 1].stop])
        return {"step": self.step, "tokens": read, **_averages(sums), "lr": factor * self.recipe.lr,
                "grad_norm": norm, "seconds": round(self.seconds, 2)}

    def _next(self) -> Work:
        """What the next step reads."""
        if self._coming is None:
            works = Works(self.packed, self.objective, self.plan, self.recipe.micro_tokens, self.rank, self.processes,
                          self.packed.longest if self.recipe.unpadded else None)
            numbers = range(self.step, self.steps)
            self._coming = ahead(works, numbers, self.workers, pin=self.device != "cpu")
        return next(self._coming)

    def _accumulate(self, work: Work) -> Tensor:
        """Gradients of this step's loss, the same for any number of processes; the summed Losses, (6,)."""
        sums: list[Tensor] = []
        for micro in work.batches:
            done = self._forward(micro.to(self.device))
            (done.token / work.chosen + self.recipe.nsp_weight * done.nsp / work.pairs).backward()
            sums.append(torch.stack([n.detach().double() if isinstance(n, Tensor) else
                                     torch.full((), n, dtype=torch.float64, device=self.device) for n in done]))
        totals = torch.stack(sums).sum(0) if sums else torch.zeros(len(Losses._fields), dtype=torch.float64,
                                                                   device=self.device)
        if self.processes > 1:
            self._share(totals)
        return totals

    def _forward(self, batch: Batch | unpadded.Row) -> Losses:
        kind = self.device.split(":")[0]
        with torch.autocast(kind, dtype=torch.bfloat16, enabled=self.recipe.precision == "bf16"):
            return losses(self.model, batch) if isinstance(batch, Batch) else unpadded.losses(self.model, batch)

    def _share(self, totals: Tensor) -> None:
        """Add gradients and counts up over the processes."""
        learning = [weight for weight in self.weights.values() if weight.requires_grad]
        reached = torch.tensor([weight.grad is not None for weight in learning], dtype=torch.int32, device=self.device)
        dist.all_reduce(reached, op=dist.ReduceOp.MAX)
        for weight, by_any in zip(learning, reached.tolist(), strict=True):
            if not by_any:  # the optimiser passes it over, as it does with one process
                continue
            if weight.grad is None:
                weight.grad = torch.zeros_like(weight)
            dist.all_reduce(weight.grad)
        dist.all_reduce(totals)

    def agreed(self, choice: bool) -> bool:
        """What the first process chose, in every process: their clocks differ."""
        if self.processes == 1:
            return choice
        chosen = torch.tensor(int(choice), device=self.device)
        dist.broadcast(chosen, src=0)
        return bool(chosen)

    # --- checkpoints ---------------------------------------------------------

    def save(self, folder: Path) -> None:
        """Write weights, both moments and the step to `folder`, whole or not at all."""
        tensors = {f"weight/{n}": w.detach() for n, w in self.weights.items()}
        state = self.optimizer.state
        for name, weight in self.weights.items():
            for key, value in state.get(weight, {}).items():
                tensors[f"{key}/{name}"] = value
        write_tensors(tensors, folder / STATE, {"step": str(self.step), "seconds": repr(self.seconds)})

    def restore(self, folder: Path) -> bool:
        """Go back to the last checkpoint of `folder`; False where there is none."""
        if not (folder / STATE).is_file():
            return False
        with open_state(folder, self.device) as file, torch.no_grad():
            self._coming = None
            meta, state = file.metadata(), self.optimizer.state
            self.step, self.seconds = int(meta["step"]), float(meta["seconds"])
            for key in file.keys():  # noqa: SIM118 - not a mapping
                kind, _, name = key.partition("/")
                if kind == "weight":
                    self.weights[name].copy_(file.get_tensor(key))
                else:
                    state[self.weights[name]][kind] = file.get_tensor(key).clone()  # or the file would stay open
        return True


def _averages(counts: Sequence[float]) -> dict[str, float]:
    token, tokens, hits, nsp, pairs, pair_hits = counts
    out = {"loss": token / max(1, tokens), "accuracy": hits / max(1, tokens), "predictions": int(tokens)}
    if pairs:
        out |= {"nsp_loss": nsp / pairs, "nsp_accuracy": pair_hits / pairs}
    return out


def run(trainer: Trainer, folder: Path, stop_after: float | None = None) -> bool:
    """Train until the plan is done; True if it is. A signal to stop is obeyed once the step before it is saved.

    Args:
        stop_after: seconds after which to save and return.
    """
    trainer.restore(folder)
    last = trainer.last
    if trainer.step > last:
        raise ValueError(f"{folder} is at step {trainer.step} already, after --end-at; give a larger one, or none")
    if trainer.rank == 0:
        _cut_curve(folder / "curve.jsonl", trainer.step)
    wait_for_all()
    began = saved = time.monotonic()
    smooth: dict[str, float] = {}
    with stopping.behind_a_step() as is_told, (folder / "curve.jsonl").open("a", encoding="utf-8") as curve:
        while trainer.step < last:
            row = trainer.train_step()
            now = time.monotonic()
            if trainer.rank == 0:
                curve.write(json.dumps(row) + "\n")
                curve.flush()
                _progress(trainer, last, row, smooth)
                if now - saved > trainer.recipe.save_seconds:
                    trainer.save(folder)
                    saved = time.monotonic()
            if trainer.agreed(is_told() or (stop_after is not None and now - began > stop_after)):
                break
        if trainer.rank == 0:
            trainer.save(folder)
            if is_told():
                sys.stderr.write(f"\nstopped after step {trainer.step} of {last}; the same command goes on\n")
    return trainer.step == last


def _cut_curve(path: Path, step: int) -> None:
    """Drop the rows after the checkpoint: they are trained again."""
    if path.is_file():
        rows = path.read_text(encoding="utf-8").splitlines()
        kept = [r for r in rows if r.endswith("}") and json.loads(r)["step"] <= step]
        with in_place_of(path) as part:
            part.write_text("".join(f"{r}\n" for r in kept), encoding="utf-8")


def _progress(trainer: Trainer, last: int, row: dict[str, Any], smooth: dict[str, float]) -> None:
    """One line on standard error: rewritten in place on a terminal, every 20 steps in a log."""
    smooth["loss"] = 0.95 * smooth.get("loss", row["loss"]) + 0.05 * row["loss"]
    smooth["accuracy"] = 0.95 * smooth.get("accuracy", row["accuracy"]) + 0.05 * row["accuracy"]
    terminal = sys.stderr.isatty()
    if not terminal and row["step"] % 20 and row["step"] != last:
        return
    rate = row["tokens"] / max(1e-9, row["seconds"])
    left = (int(trainer.packed.offsets[trainer.plan[last - 1].stop]) - row["tokens"]) / max(1e-9, rate)
    share = row["step"] / last
    bar = "#" * int(20 * share) + "-" * (20 - int(20 * share))
    text = (f"[{bar}] {row['step']}/{last} {rate:,.0f} tokens/s loss {smooth['loss']:.3f} "
            f"accuracy {smooth['accuracy']:.3f} left {int(left // 60)}:{int(left % 60):02d}")
    sys.stderr.write(f"\r{text}" if terminal else f"{text}\n")
    sys.stderr.flush()
