"""A shipped encoder becomes a classifier, one step at a time, and keeps every epoch.

Devlin et al. 2018, section 3.2: the pooled [CLS] vector, one new linear layer,
and all parameters learn. Beside it the other ways: only the last layers, only
the head, or the same architecture from random weights.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Iterator, Mapping

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from bert_core import model as core
from bert_core.config import BertConfig
from bert_core.load import Loaded, load_model
from bert_core.model import Inputs, Model
from bert_core.tokenizer import Tokenizer
from bert_core.training.live import baselines
from bert_core.training.live.folder import RunFolder
from bert_core.training.live.specs import FinetuneSpec
from bert_core.training.live.tables import Dataset, dataset, read_pieces, read_rows, shipped_task
from bert_core.training.optim import adamw, clip_gradients, learning_rate_factor, set_learning_rate
from bert_core.training.start import random_weights

#: Epochs and peak learning rates that suit each way: encoder, head. The pooled vectors of a frozen encoder lie close
#: together (0.014 apart in a dimension), so that a head over them alone needs large weights, and gets there only fast.
EPOCHS = {"full": 4, "last": 6, "frozen": 40, "scratch": 4}
RATES = {"full": (2e-4, 1e-3), "last": (4e-4, 1e-3), "frozen": (0.0, 0.2), "scratch": (3e-4, 1e-3)}
LAST_LAYERS, CLIP, HEAD_SPREAD = 2, 1.0, 0.02
#: Sentences of the test set that are read at a time.
LOOK_BATCH = 16
HEADS = frozenset({"pooler", "classification"})
WORD = "bert.embeddings.word_embeddings.weight"

#: Curves with a value for each step, and for each epoch from 0, the start.
STEP_CURVES = ("loss", "accuracy", "gradient")
EPOCH_CURVES = ("test_accuracy", "test_loss", "train_accuracy")


def classifier_config(base: BertConfig, labels: tuple[str, ...]) -> BertConfig:
    """The base's architecture with a classification head of these labels."""
    return dataclasses.replace(
        base, architectures=("BertForSequenceClassification",), id2label=labels, num_labels=len(labels),
        problem_type="single_label_classification", is_decoder=False, extra={},
    )


def head_start(config: BertConfig, seed: int) -> dict[str, Tensor]:
    """Random weights of the new linear layer."""
    shapes = {"classifier.weight": (config.num_labels, config.hidden_size), "classifier.bias": (config.num_labels,)}
    return random_weights(shapes, HEAD_SPREAD, seed)


def start_weights(base: Loaded, config: BertConfig, spec: FinetuneSpec) -> dict[str, Tensor]:
    """The base's own encoder and pooler (or random ones) with a random head; language heads are left behind."""
    kept = {n: t for n, t in base.model.weights.items() if n.startswith("bert.")}
    if spec.way == "scratch":
        kept = random_weights({n: tuple(t.shape) for n, t in kept.items()}, config.initializer_range, spec.seed)
    return {n: t.detach().float() for n, t in kept.items()} | head_start(config, spec.seed)


def learns(name: str, way: str, layers: int) -> bool:
    """Whether a parameter changes under `way`."""
    if way in ("full", "scratch") or name.startswith("classifier"):
        return True
    if name.startswith("bert.pooler"):
        return way == "last"
    last = {f"bert.encoder.layer.{n}." for n in range(layers - LAST_LAYERS, layers)}
    return way == "last" and any(name.startswith(path) for path in last)


class Rows:
    """The part of the word table that a data set uses.

    Rows that never occur get no gradient, and Adam without weight decay leaves
    them alone; so learning the used rows only is the same, and much cheaper.
    """

    def __init__(self, ids: np.ndarray, vocabulary: int) -> None:
        self.used = np.unique(ids)
        self.local = np.zeros(vocabulary, dtype=np.int64)
        self.local[self.used] = np.arange(len(self.used))

    def take(self, table: Tensor) -> Tensor:
        """(V, D) -> (R, D)."""
        return table[torch.from_numpy(self.used)].clone()

    def put(self, table: Tensor, rows: Tensor) -> Tensor:
        """(V, D) with the used rows replaced by (R, D)."""
        full = table.clone()
        full[torch.from_numpy(self.used)] = rows.to(full.dtype)
        return full


def encode_texts(tokenizer: Tokenizer, texts: list[str]) -> list[np.ndarray]:
    """Piece ids of each text, as `read_pieces` has them."""
    return [np.array(read_pieces(tokenizer, text)) for text in texts]


def pad(rows: list[np.ndarray], pad_id: int = 0) -> Inputs:
    """One padded batch of single sentences."""
    longest = max(len(row) for row in rows)
    ids = np.full((len(rows), longest), pad_id, dtype=np.int64)
    mask = np.zeros((len(rows), longest), dtype=bool)
    for n, row in enumerate(rows):
        ids[n, : len(row)], mask[n, : len(row)] = row, True
    return Inputs(torch.from_numpy(ids), torch.zeros(ids.shape, dtype=torch.long), torch.from_numpy(mask),
                  torch.zeros(len(rows), dtype=torch.bool))


def classifier_loss(model: Model, inputs: Inputs, classes: Tensor) -> tuple[Tensor, Tensor]:
    """Mean cross-entropy in nats, and the (B, C) logits."""
    _, hidden = core.encode(model, inputs)
    logits = core.classification_logits(model, hidden)
    return F.cross_entropy(logits, classes), logits


def read_dataset(spec: FinetuneSpec, folder: RunFolder) -> Dataset:
    """The shipped task, or the rows that the desk put into the folder."""
    if spec.task != "own":
        return shipped_task(spec.task)
    train, test = (read_rows(folder.read_text(f"{part}.tsv") or "") for part in ("train", "test"))
    if not train or not test:
        raise ValueError("the run has no rows of its own; upload a table first")
    return dataset("own", train, test)


class FinetuneRun:
    """See `worker.Run`: it prepares, learns and looks at the test set in small pieces."""

    def __init__(self, spec: FinetuneSpec, folder: RunFolder, base: Loaded | None = None) -> None:
        self.spec, self.folder, self.step = spec, folder, 0
        self.data = read_dataset(spec, folder)
        self.epochs = spec.epochs or EPOCHS[spec.way]
        self.per_epoch = -(-len(self.data.train) // spec.batch)
        self.steps = self.epochs * self.per_epoch
        self.curves: dict[str, list[float]] = {name: [] for name in (*STEP_CURVES, *EPOCH_CURVES)}
        self._pieces = self._course(base)

    def advance(self) -> None:
        """A piece of about a second at most: of the preparation, an optimiser step, or of a look at the test set."""
        next(self._pieces, None)

    def _course(self, base: Loaded | None) -> Iterator[None]:
        """The whole run; a step counts as done after the look that belongs to it."""
        yield from self._prepare(base or load_model(self.spec.base))
        yield from self._look(0)
        yield
        while self.step < self.steps:
            self._learn()
            epoch, rest = divmod(self.step + 1, self.per_epoch)
            if not rest:
                yield from self._look(epoch)
            self.step += 1
            yield

    def _prepare(self, base: Loaded) -> Iterator[None]:
        """Everything before epoch 0: rows, weights, both baselines."""
        self.folder.set_values("task", {"name": self.data.name, "labels": self.data.labels,
                                        "train": len(self.data.train), "test": len(self.data.test),
                                        "epochs": self.epochs, "way": self.spec.way, "seed": self.spec.seed})
        self._encode(base)
        self._weigh(start_weights(base, self.config, self.spec))
        yield
        self.folder.set_arrays("baselines", (yield from baselines.both(self.data, self.spec.seed)))
        self.features: dict[str, Tensor] = {}
        if self.spec.way == "frozen":
            train = yield from self._cls("train")
            test = yield from self._cls("test")
            self.features = {"train": train, "test": test}

    def _encode(self, base: Loaded) -> None:
        """Texts to rows of the used part of the word table, and classes to indices."""
        self.config = classifier_config(base.config, self.data.labels)
        self.rows = {part: encode_texts(base.tokenizer, self.data.texts(part)) for part in ("train", "test")}
        self.classes = {part: torch.from_numpy(self.data.indices(part)) for part in ("train", "test")}
        self.table = Rows(np.concatenate([*self.rows["train"], *self.rows["test"], [0]]), self.config.vocab_size)
        for part, rows in self.rows.items():
            self.rows[part] = [self.table.local[row] for row in rows]
        self.folder.set_values("config", self.config.to_dict())
        self.folder.set_arrays("rows", {"used": self.table.used})

    def _weigh(self, start: dict[str, Tensor]) -> None:
        """Decide what learns, and how fast."""
        spec = self.spec
        self.start = start | {WORD: self.table.take(start[WORD])}
        self.weights = weights = {n: t.clone() for n, t in self.start.items()}
        for name, tensor in weights.items():
            tensor.requires_grad_(learns(name, spec.way, self.config.num_hidden_layers))
        self.model = Model(self.config, weights, HEADS)
        lr, head_lr = RATES[spec.way]
        if spec.lr is not None:
            lr, head_lr = spec.lr, max(spec.lr, head_lr)
        self.optimizer = adamw(weights, lr, head_lr, weight_decay=0.0)

    def _cls(self, part: str) -> Generator[None, None, Tensor]:
        """(n, 1, D) last [CLS] vectors of 'train' or 'test', a few sentences at a time."""
        rows, found = self.rows[part], []
        for start in range(0, len(rows), LOOK_BATCH):
            with torch.no_grad():
                _, hidden = core.encode(self.model, pad(rows[start : start + LOOK_BATCH], int(self.table.local[0])))
            found.append(hidden[:, :1])
            yield
        return torch.cat(found)

    def chosen(self) -> np.ndarray:
        """Examples of the present step; every epoch in its own order."""
        epoch, at = divmod(self.step, self.per_epoch)
        order = np.random.default_rng((self.spec.seed, epoch)).permutation(len(self.rows["train"]))
        return order[at * self.spec.batch : (at + 1) * self.spec.batch]

    def _learn(self) -> None:
        """One optimiser step."""
        set_learning_rate(self.optimizer, learning_rate_factor(self.step, self.steps, self.steps // 10, self.steps))
        chosen = self.chosen()
        classes = self.classes["train"][chosen]
        self.optimizer.zero_grad(set_to_none=True)
        loss, logits = self._loss(chosen, classes)
        loss.backward()
        gradient = clip_gradients(self.weights, CLIP)
        self.optimizer.step()
        hits = float((logits.argmax(-1) == classes).float().mean())
        for name, value in zip(STEP_CURVES, (loss.item(), hits, gradient), strict=True):
            self.curves[name].append(value)

    def _loss(self, chosen: np.ndarray, classes: Tensor) -> tuple[Tensor, Tensor]:
        if self.features:
            logits = core.classification_logits(self.model, self.features["train"][chosen])
            return F.cross_entropy(logits, classes), logits
        inputs = pad([self.rows["train"][i] for i in chosen], int(self.table.local[0]))
        return classifier_loss(self.model, inputs, classes)

    def _look(self, epoch: int) -> Iterator[None]:
        """At an epoch's end: the test set, and the weights that changed."""
        cls = self.features["test"] if self.features else (yield from self._cls("test"))  # (n_test, 1, D)
        with torch.no_grad():
            logits = core.classification_logits(self.model, cls)
        classes = self.classes["test"]
        self.curves["test_accuracy"].append(float((logits.argmax(-1) == classes).float().mean()))
        self.curves["test_loss"].append(float(F.cross_entropy(logits, classes)))
        recent = self.curves["accuracy"][-self.per_epoch :]
        self.curves["train_accuracy"].append(float(np.mean(recent)) if recent else float("nan"))
        if self._keeps(epoch):
            self.folder.set_arrays(f"epoch-{epoch}", {
                "probabilities": logits.softmax(-1).numpy(), "cls": cls[:, 0].numpy().astype(np.float16)})
            self.folder.set_moves(epoch, self._moved(epoch))

    def _keeps(self, epoch: int) -> bool:
        """Which epochs leave weights: all of a short run, about ten of a long one."""
        return epoch % max(1, self.epochs // 8) == 0 or epoch == self.epochs

    def _moved(self, epoch: int) -> dict[str, Tensor]:
        """How far each weight that learns is from its start; of the word table the used rows."""
        found = {n: t.detach() - self.start[n] for n, t in self.weights.items() if t.requires_grad}
        return found if epoch else head_only(found)

    def report(self) -> None:
        """Write the curves, once there is an epoch 0 to begin with."""
        if self.curves["test_accuracy"]:
            self.folder.set_arrays("curves", {n: np.array(v, dtype=np.float32) for n, v in self.curves.items()})


def head_only(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The classifier alone: at epoch 0 nothing has moved yet."""
    return {n: t for n, t in weights.items() if n.startswith("classifier")}
