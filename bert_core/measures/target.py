"""One number of a model's answer, that something is to explain: what it is, and how it is read with gradients.

Dimensions: B batch, T tokens, D hidden size, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from bert_core import model as bert
from bert_core.gradients import with_gradients
from bert_core.load import Loaded
from bert_core.trace import Array, Prepared, TraceRequest, prepare, run_batch

KINDS = {"mlm": "mlm", "lm": "lm", "nsp": "nsp", "classification": "classification"}
SCALES = ("logit", "probability", "log_probability")


@dataclass(frozen=True)
class Target:
    """The one number that is explained.

    Attributes:
        kind: 'mlm' and 'lm' (a vocabulary entry at a position), 'nsp'
            (0 IsNext, 1 not), 'classification' (a label).
        index: vocabulary id or class.
        position: where the vocabulary entry is scored; unused otherwise.
        scale: 'logit', 'probability' or 'log_probability' (nats).
    """

    kind: str
    index: int
    position: int = 0
    scale: str = "logit"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"target kind {self.kind!r}: choose one of {', '.join(KINDS)}")
        if self.scale not in SCALES:
            raise ValueError(f"target scale {self.scale!r}: choose one of {', '.join(SCALES)}")


def no_gradients(loaded: Loaded) -> str:
    """Why there are no gradients of this model here; '' where there are."""
    if isinstance(loaded.model, bert.Model):
        return ""
    return (f"{loaded.config.model_type} runs through transformers: gradients are taken only through this explorer's "
            "own encoder")


def no_leaving_out(loaded: Loaded) -> str:
    """Why no token can be left out of this model's input here; '' where one can be masked or hidden."""
    if loaded.tokenizer.mask_id is not None or isinstance(loaded.model, bert.Model):
        return ""
    return (f"{loaded.config.model_type} has no [MASK] to put in a token's place, and runs through transformers, where "
            "none can be hidden")


def differentiable(loaded: Loaded) -> bert.Model:
    """The model to be differentiated, for work of several passes (see gradients.py).

    Raises:
        ValueError: a model that is not our own encoder.
    """
    if reason := no_gradients(loaded):
        raise ValueError(reason)
    return with_gradients(loaded.model)


def check_target(loaded: Loaded, row: Prepared, target: Target) -> None:
    """ValueError where the model has no such head, class or position."""
    if KINDS[target.kind] not in loaded.model.heads:
        raise ValueError(f"{loaded.name} has no {target.kind} head; it has {', '.join(sorted(loaded.model.heads))}")
    config = loaded.config
    classes = {"mlm": config.vocab_size, "lm": config.vocab_size, "nsp": 2, "classification": config.num_labels}
    if not 0 <= target.index < classes[target.kind]:
        raise ValueError(f"class {target.index} is outside 0 to {classes[target.kind] - 1}")
    if not 0 <= target.position < len(row.encoding):
        raise ValueError(f"position {target.position} is outside 0 to {len(row.encoding) - 1}")


# --- the number itself ---------------------------------------------------------


def piece_vectors(model: bert.Model, ids: Tensor) -> Tensor:
    """(...) ids -> (..., E), the decoder's rows: the word table's where the two are tied."""
    own = model.weights.get(model.names.decoder)
    return bert.word_vectors(model, ids) if own is None else own[ids]


def piece_logits(model: bert.Model, hidden: Tensor, index: int) -> Tensor:
    """The logit of one piece of the vocabulary, (B, D) -> (B,), without all the others."""
    row = piece_vectors(model, torch.tensor(index, device=hidden.device))  # (E,)
    return bert.mlm_transform(model, hidden) @ row + model.weights[model.names.mlm_bias][index]


_LOGITS: dict[str, Callable[[bert.Model, Tensor, int], Tensor]] = {
    "mlm": lambda model, hidden, position: bert.mlm_logits(model, hidden[:, position]),
    "lm": lambda model, hidden, position: bert.mlm_logits(model, hidden[:, position]),
    "nsp": lambda model, hidden, position: bert.nsp_logits(model, bert.pooled_output(model, hidden)),
    "classification": lambda model, hidden, position: bert.classification_logits(model, hidden),
}


def score(model: bert.Model, hidden: Tensor, position: int, target: Target) -> Tensor:
    """The target by last hidden states (B, T, D) -> (B,).

    Args:
        position: where a vocabulary entry is scored, in the model's order.
    """
    if target.kind in ("mlm", "lm") and target.scale == "logit":
        return piece_logits(model, hidden[:, position], target.index)
    return _scaled(_LOGITS[target.kind](model, hidden, position), target)


def score_place(kind: str, position: int) -> int:
    """The one token whose last hidden state `score` reads, in the model's order."""
    return position if kind in ("mlm", "lm") else 0


def _scaled(logits: Tensor, target: Target) -> Tensor:
    """(B, classes) -> (B,) in the target's scale."""
    if target.scale == "logit":
        return logits[:, target.index]
    logs = logits.log_softmax(dim=-1)[:, target.index]
    return logs.exp() if target.scale == "probability" else logs


def read_target(loaded: Loaded, request: TraceRequest, target: Target) -> float:
    """The target's value on one request, by a plain run."""
    return float(read_targets(loaded, [request], target)[0])


def read_targets(loaded: Loaded, requests: list[TraceRequest], target: Target) -> Array:
    """(B,) the target on each request, through run_batch."""
    part = {"mlm": "mlm_logits", "lm": "lm_logits", "nsp": "nsp_logits", "classification": "logits"}[target.kind]
    extra = {"mlm": ("mlm_positions",), "nsp": ("pooled_output",)}.get(target.kind, ())
    check_target(loaded, prepare(loaded, requests[0]), target)
    everywhere = target.kind == "mlm" and not all(
        target.position in prepare(loaded, r).encoding.mask_positions for r in requests)
    rows = []
    asked = {"parts": (part, *extra), "all_logits": everywhere, "lm_at": (target.position,) * (target.kind == "lm")}
    for trace in run_batch(loaded, [replace(r, **asked) for r in requests]):
        place = np.flatnonzero(trace.mlm_positions == target.position)[0] if target.kind == "mlm" else 0
        logits = trace.arrays[part]
        rows.append(logits[place] if logits.ndim == 2 else logits)
    return _scaled(torch.from_numpy(np.stack(rows)).double(), target).numpy()
