"""One forward pass, every intermediate, frozen: the one thing every view reads.

`run_batch` runs several TraceRequests in one pass and gives back a Trace each,
of read-only NumPy arrays without padding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import numpy as np
import torch
from torch import Tensor

from bert_core import memory
from bert_core import model as bert
from bert_core.config import BertConfig
from bert_core.load import Loaded
from bert_core.request import (
    ALL_PARTS,
    EMBEDDING_PARTS,
    INPUT_PARTS,
    LAYER_PARTS,
    Array,
    Prepared,
    TraceRequest,
    check_range,
    prepare,
    reading_order,
    to_inputs,
)
from bert_core.tokenizer import Encoding

__all__ = ["ALL_PARTS", "INPUT_PARTS", "Array", "MissingPart", "Prepared", "Trace", "TraceRequest", "check_range",
           "prepare", "reading_order", "run_batch", "to_inputs"]

#: Axes that run over tokens, by array, for giving back reading order.
_TOKEN_AXES = {
    **dict.fromkeys((*INPUT_PARTS, *EMBEDDING_PARTS, "lm_logits", "start_logits", "end_logits"), (0,)),
    **dict.fromkeys(("context", "attention_output", "intermediate", "hidden_states"), (1,)),
    **dict.fromkeys(("query", "key", "value"), (2,)),
    **dict.fromkeys(("attention_scores", "attention_probs"), (2, 3)),
}


class MissingPart(AttributeError):
    """The Trace lacks this array: the model has no such part, or nobody asked for it."""


@dataclass(frozen=True)
class Trace:
    """Read-only arrays of one run, by the names and shapes of the interfaces.

    T tokens (specials, no padding), D hidden, H heads, Dh head size, I
    intermediate, V vocabulary, L layers, P scored positions:

    tokens, input_ids, token_type_ids, attention_mask (T,); token_embeddings,
    segment_embeddings, position_embeddings, embedding_sum, embedding_output
    (T, D); query, key, value (L, H, T, Dh); attention_scores (scaled, before
    the mask), attention_probs (L, H, Tq, Tk); context, attention_output
    (L, T, D); intermediate (L, T, I); hidden_states (L+1, T, D);
    pooled_output (D,); mlm_positions (P,), mlm_logits (P, V); nsp_logits (2,),
    index 0 IsNext; lm_logits (T, V), row t predicts token t+1 (t-1 for a model
    that reads right to left); logits, start_logits, end_logits.

    An array that isn't there raises MissingPart.
    """

    arrays: Mapping[str, Array]
    request: TraceRequest
    encoding: Encoding
    config: BertConfig
    model: str
    attention_kind: str
    gaps: Mapping[str, str] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Array:
        if name.startswith("__"):
            raise AttributeError(name)
        arrays = self.__dict__["arrays"]
        if name in arrays:
            return arrays[name]
        if name in ALL_PARTS:
            raise MissingPart(f"{self.model} gives no {name}: {self.missing_reason(name)}")
        raise AttributeError(name)

    def missing_reason(self, name: str) -> str:
        """Why an array isn't there, in one line; '' if it is."""
        if name in self.__dict__["arrays"]:
            return ""
        wanted = self.__dict__["request"].wants(name)
        return self.__dict__["gaps"].get(name, "it has no such part" if wanted else "the request did not ask for it")

    def has(self, name: str) -> bool:
        return name in self.arrays

    def __len__(self) -> int:
        return len(self.encoding)

    @property
    def truncated(self) -> bool:
        return self.encoding.truncated

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in self.arrays.values())

    def save(self, path: str | Path) -> None:
        """Write all arrays and `attention_kind` as .npz, no pickled objects."""
        with open(path, "wb") as file:
            np.savez(file, **self.arrays, attention_kind=np.array(self.attention_kind))


@torch.no_grad()
def run_batch(loaded: Loaded, requests: list[TraceRequest]) -> list[Trace]:
    """Run requests for one model in one pass.

    Args:
        requests: at least one; they may differ in everything but the model and
            the precision.

    Returns:
        One Trace a request, in order.

    Raises:
        ValueError: a request that this model can't run.
    """
    rows = [prepare(loaded, request) for request in requests]
    inputs = to_inputs(loaded, rows)
    wanted = {part for part in ALL_PARTS if any(request.wants(part) for request in requests)}
    if not isinstance(loaded.model, bert.Model):
        whole = loaded.model.arrays(inputs)
        vocabulary = whole.pop("vocabulary", None)
        return [_freeze(loaded, row, n, whole, lambda places, n=n: vocabulary[n, places])
                for n, row in enumerate(rows)]
    with torch.inference_mode():  # less bookkeeping an operation than no_grad: 2 to 6 % of a short sentence
        kept = _Kept(loaded.config, inputs, wanted, like=loaded.model.weights[f"{loaded.model.names.word}.weight"])
        embeddings, hidden = bert.encode(loaded.model, inputs, kept.take, kept.room)
        kept.take_embeddings(embeddings)
        whole = kept.batch_first() | _head_arrays(loaded, hidden, wanted)
        return [_freeze(loaded, row, n, whole, lambda places, n=n: bert.mlm_logits(loaded.model, hidden[n, places]))
                for n, row in enumerate(rows)]


class _Kept:
    """Collects the wanted intermediates, layer first: (L, B, ...)."""

    def __init__(self, config: BertConfig, inputs: bert.Inputs, wanted: set[str], like: Tensor):
        self.arrays: dict[str, Tensor] = {}
        self.layers = config.num_hidden_layers
        self.wanted = wanted
        batch, length = inputs.input_ids.shape
        self.half = like.dtype in (torch.bfloat16, torch.float16)  # kept as float32: NumPy has no bfloat16
        if {"attention_scores", "attention_probs"} <= wanted and not self.half:
            shape = (self.layers, batch, config.num_attention_heads, length, length)
            for part in ("attention_scores", "attention_probs"):
                self.arrays[part] = memory.empty(shape, like.dtype, like.device)

    def room(self, index: int) -> bert.Room | None:
        """Where a layer may write its attention itself, so that it need not be copied."""
        if self.half or "attention_scores" not in self.arrays:
            return None
        return bert.Room(self.arrays["attention_scores"][index], self.arrays["attention_probs"][index])

    def take(self, index: int, out: bert.LayerOutput) -> None:
        for part, name in LAYER_PARTS.items():
            if part in self.wanted:
                self._put(part, self.layers, index, getattr(out, name))
        if "hidden_states" in self.wanted:
            self._put("hidden_states", self.layers + 1, index + 1, out.hidden)

    def take_embeddings(self, embeddings: bert.Embeddings) -> None:
        for part, tensor in zip(EMBEDDING_PARTS, embeddings, strict=True):
            if part in self.wanted and tensor is not None:
                self.arrays[part] = tensor
        if "hidden_states" in self.wanted:
            self._put("hidden_states", self.layers + 1, 0, embeddings.output)

    def _put(self, part: str, count: int, index: int, tensor: Tensor) -> None:
        if part not in self.arrays:
            dtype = torch.float32 if self.half else tensor.dtype
            self.arrays[part] = memory.empty((count, *tensor.shape), dtype, tensor.device)
        slot = self.arrays[part][index]
        if (slot.data_ptr(), slot.stride()) != (tensor.data_ptr(), tensor.stride()):
            slot.copy_(tensor)

    def batch_first(self) -> dict[str, Tensor]:
        """Name -> (B, ...), the layers second where there are any."""
        by_layer = {*LAYER_PARTS, "hidden_states"}
        return {part: t.transpose(0, 1) if part in by_layer else t for part, t in self.arrays.items()}


def _head_arrays(loaded: Loaded, hidden: Tensor, wanted: set[str]) -> dict[str, Tensor]:
    """Outputs of the heads that read [CLS] or every token; those of the vocabulary come later."""
    model, out = loaded.model, {}
    if "pooler" in model.heads and wanted & {"pooled_output", "nsp_logits"}:
        pooled = bert.pooled_output(model, hidden)
        out["pooled_output"] = pooled
        if "nsp" in model.heads:
            out["nsp_logits"] = bert.nsp_logits(model, pooled)
    if "logits" in wanted:
        if "classification" in model.heads:
            out["logits"] = bert.classification_logits(model, hidden)
        elif "token_classification" in model.heads:
            out["logits"] = bert.token_classification_logits(model, hidden)
    if "question_answering" in model.heads and wanted & {"start_logits", "end_logits"}:
        out["start_logits"], out["end_logits"] = bert.question_answering_logits(model, hidden)
    return out


def _vocabulary_arrays(
    loaded: Loaded, row: Prepared, logits_at: Callable[[Tensor], Tensor]
) -> Iterator[tuple[str, Tensor]]:
    """mlm_positions, mlm_logits or lm_logits of one row.

    Args:
        logits_at: positions (P,) in model order -> vocabulary logits (P, V).
    """
    request, heads, length = row.request, loaded.model.heads, len(row.encoding)
    device = loaded.model.device
    if "mlm" in heads and (request.wants("mlm_logits") or request.wants("mlm_positions")):
        places = list(range(length) if request.all_logits else row.encoding.mask_positions)
        order = reading_order(loaded.config, length)
        yield "mlm_positions", torch.tensor(places, dtype=torch.long)
        if request.wants("mlm_logits"):
            rows = places if order is None else order[places].tolist()
            yield "mlm_logits", logits_at(torch.tensor(rows, dtype=torch.long, device=device))
    if "lm" in heads and request.wants("lm_logits"):
        yield "lm_logits", logits_at(torch.arange(length, device=device))


def _freeze(
    loaded: Loaded, row: Prepared, n: int, whole: Mapping[str, Tensor], logits_at: Callable[[Tensor], Tensor]
) -> Trace:
    """Row n without padding, in reading order, as read-only arrays."""
    encoding, request = row.encoding, row.request
    length = len(encoding)
    arrays: dict[str, Array] = {
        "tokens": np.array(encoding.tokens), "input_ids": np.array(encoding.input_ids),
        "token_type_ids": np.array(encoding.token_type_ids), "attention_mask": np.ones(length, dtype=np.int64),
    }
    order = reading_order(loaded.config, length)
    tensors = {part: tensor[n] for part, tensor in whole.items() if request.wants(part)}
    tensors.update(_vocabulary_arrays(loaded, row, logits_at))
    per_token = "token_classification" in loaded.model.heads
    for part, tensor in tensors.items():
        axes = _TOKEN_AXES.get(part, (0,) if part == "logits" and per_token else ())
        arrays[part] = to_numpy(tensor, axes, length, order)
    for array in arrays.values():
        array.flags.writeable = False
    return Trace(MappingProxyType(arrays), request, encoding, loaded.config, loaded.name, row.attention, loaded.gaps)


def to_numpy(tensor: Tensor, axes: tuple[int, ...], length: int, order: Array | None) -> Array:
    """Cut padding off the token axes and put them in reading order."""
    array = (tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor).cpu().numpy()
    for axis in axes:
        if array.shape[axis] != length:
            array = array[(slice(None),) * axis + (slice(0, length),)]
        if order is not None:
            array = np.take(array, order, axis=axis)
    return array if array.flags.owndata or array.base is None else np.ascontiguousarray(array)
