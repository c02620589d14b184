"""A fine-tuning run's classifier at any epoch: to try, to keep, to take away."""

from __future__ import annotations

import io
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from bert_core.config import BertConfig
from bert_core.load import Loaded, build, describe_model
from bert_core.trace import Trace, TraceRequest, run_batch
from bert_core.training.folder import export
from bert_core.training.live.finetuning import WORD, start_weights
from bert_core.training.live.folder import RunFolder
from bert_core.training.live.specs import FinetuneSpec

#: Trace arrays that the page draws for a sentence of one's own.
PARTS = ("logits", "attention_probs", "hidden_states")


def epoch_model(folder: RunFolder, epoch: int, base: Loaded, name: str) -> Loaded:
    """The classifier as it was after `epoch` passes.

    Args:
        base: the model that the run started from; what did not change is its,
            or from scratch the random start's.

    Raises:
        ValueError: that epoch left no weights.
    """
    values, begun = folder.values("config"), folder.values("task")
    if values is None or begun is None:
        raise ValueError("the run has not begun yet; wait for its first epoch")
    config, moves = BertConfig.from_dict(values), folder.moves(epoch)
    start = start_weights(base, config, FinetuneSpec(way=begun["way"], seed=begun["seed"]))
    used = torch.from_numpy(folder.arrays("rows")["used"])
    model = build(config, start | {n: _moved(start[n], by, used if n == WORD else None) for n, by in moves.items()},
                  torch.float32, "cpu")
    return Loaded(name, model, base.tokenizer, describe_model(name, model))


def _moved(start: Tensor, by: Tensor, rows: Tensor | None) -> Tensor:
    """A weight after its moves; where `rows` are given, they are all that has moved."""
    start = start.cpu()
    return start + by if rows is None else start.index_add(0, rows, by)


def try_sentence(loaded: Loaded, text: str) -> Trace:
    """One sentence through the classifier, attention included."""
    return run_batch(loaded, [TraceRequest(text, parts=PARTS)])[0]


def probabilities(trace: Trace) -> np.ndarray:
    """(C,) class probabilities of one sentence."""
    logits = trace.logits.astype(np.float64)
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def to_zip(loaded: Loaded) -> bytes:
    """A folder that `from_pretrained` opens, as a .zip."""
    out = io.BytesIO()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "model"
        names = export(loaded, folder)
        with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
            for name in names:
                archive.write(folder / name, f"{loaded.name.split(':')[-1]}/{name}")
    return out.getvalue()
