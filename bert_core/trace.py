"""One forward pass, every intermediate, frozen: the one thing every view reads.

`run_batch` runs several TraceRequests together and gives back a Trace each, of
read-only NumPy arrays without padding.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import numpy as np
import torch
from torch import Tensor

from bert_core import memory
from bert_core import model as bert
from bert_core.config import BertConfig
from bert_core.kept import TOKEN_AXES, kept_of
from bert_core.load import Loaded
from bert_core.loading.files import in_place_of
from bert_core.request import (
    ALL_PARTS,
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

__all__ = ["ALL_PARTS", "INPUT_PARTS", "Array", "MissingPart", "Overflow", "Prepared", "Trace", "TraceRequest",
           "check_finite", "check_range", "prepare", "reading_order", "run_batch", "to_inputs"]

#: Places at which a row's vocabulary logits are rather made together with those of other rows.
_FEW_PLACES = 32
#: Parts that hold or need the last layer's output at every token.
_EVERY_TOKEN = frozenset({"attention_output", "intermediate", "hidden_states"})
#: Parts besides those of each layer of which the last entry shows whether the numbers overflow.
_LAST_IS_ENOUGH = frozenset({"hidden_states", "mlm_logits", "lm_logits"})
#: Tokens that the last layer must be spared before choosing pays for itself.
_LEAST_SPARED = 32


class MissingPart(AttributeError):
    """The Trace lacks this array: the model has no such part, or nobody asked for it."""


class Overflow(ValueError):
    """The model's weights are so large that what it computes is no number any more."""


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
    that reads right to left), or the rows that `lm_at` names, see `lm_row`;
    logits, start_logits, end_logits.

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

    def lm_row(self, position: int) -> Array:
        """(V,) of `lm_logits`, what a causal model expects once it has read the token at `position`.

        Raises:
            MissingPart: there are no such logits.
            ValueError: the request did not ask for this row.
        """
        logits, at = self.lm_logits, self.__dict__["request"].lm_at
        if at is not None and position not in at:
            raise ValueError(f"the request asked for rows {', '.join(map(str, at))}, not {position}; see lm_at")
        return logits[position if at is None else at.index(position)]

    @property
    def truncated(self) -> bool:
        return self.encoding.truncated

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays' numbers."""
        return sum(a.nbytes for a in self.arrays.values())

    def save(self, path: str | Path) -> None:
        """Write all arrays and `attention_kind` as .npz, no pickled objects; whole or not at all, where it is a file.

        Raises:
            OSError: it can't be written.
        """
        path = Path(path)
        is_device = path.exists() and not path.is_file()
        try:
            with nullcontext(path) if is_device else in_place_of(path) as part, part.open("wb") as file:
                np.savez(file, **self.arrays, attention_kind=np.array(self.attention_kind))
        except OSError as error:
            raise OSError(error.errno, error.strerror or str(error), str(path)) from None


@torch.no_grad()
def run_batch(loaded: Loaded, requests: list[TraceRequest]) -> list[Trace]:
    """Run requests for one model in one pass, or in as few as give each the numbers that it has alone.

    Args:
        requests: at least one; they may differ in everything but the model and
            the precision.

    Returns:
        One Trace a request, in order.

    Raises:
        ValueError: a request that this model can't run.
        Overflow: what it computes on it is no number.
    """
    encode = functools.cache(loaded.tokenizer.encode)  # a long text costs more than its pass: once for all its rows
    rows = [prepare(loaded, request, encode) for request in requests]
    if not isinstance(loaded.model, bert.Model):
        return _run_foreign(loaded, rows)
    inputs = to_inputs(loaded, rows)
    places = [_vocabulary_places(loaded, row) for row in rows]
    with torch.inference_mode():  # less bookkeeping an operation than no_grad: 2 to 6 % of a short sentence
        kept = kept_of(loaded.config, rows, inputs, like=loaded.model.weights[f"{loaded.model.names.position}.weight"])
        read = _places_read(loaded.model, rows, places, inputs)
        embeddings, hidden = bert.encode(loaded.model, inputs, kept.take, kept.attend, read)
        if read is not None:
            hidden = _spread(hidden, read, inputs)
        kept.take_embeddings(embeddings)
        wanted = {part for part in ALL_PARTS if any(request.wants(part) for request in requests)}
        heads = _head_arrays(loaded, hidden, wanted)
        logits = _vocabulary_logits(loaded.model, hidden, places)
        collected = kept.collected()
        return [_freeze(loaded, row, collected[n] | {part: tensor[n] for part, tensor in heads.items()}, logits[n])
                for n, row in enumerate(rows)]


def _run_foreign(loaded: Loaded, rows: Sequence[Prepared]) -> list[Trace]:
    """run_batch of a model that transformers runs, one pass for those rows that may share it."""
    found: dict[int, Trace] = {}
    for together in loaded.model.passes([len(row.encoding) for row in rows]):
        whole = loaded.model.arrays(to_inputs(loaded, [rows[n] for n in together]))
        vocabulary = whole.pop("vocabulary", None)
        for place, n in enumerate(together):
            at = _vocabulary_places(loaded, rows[n])
            found[n] = _freeze(loaded, rows[n], {part: tensor[place] for part, tensor in whole.items()},
                               None if at is None else vocabulary[place, at])
    return [found[n] for n in range(len(rows))]


def _places_read(
    model: bert.Model, rows: Sequence[Prepared], places: Sequence[list[int] | None], inputs: bert.Inputs
) -> bert.Places | None:
    """Where the heads read the last hidden states; None where they or the visitors want them of every token.

    Args:
        places: of each row, its `_vocabulary_places`.
    """
    heads, found = model.heads, []
    for n, (row, scored) in enumerate(zip(rows, places, strict=True)):
        wants = row.request.wants
        if any(map(wants, _EVERY_TOKEN)) or ("token_classification" in heads and wants("logits")) or (
                "question_answering" in heads and (wants("start_logits") or wants("end_logits"))):
            return None
        first = ("pooler" in heads and (wants("pooled_output") or wants("nsp_logits"))) or (
            "classification" in heads and wants("logits"))
        found += [(n, token) for token in {*(scored or ()), *((0,) if first else ())}]
    if found and inputs.input_ids.numel() - len(found) < _LEAST_SPARED:
        return None
    at = torch.tensor(found, dtype=torch.long, device=model.device).view(-1, 2)
    return at[:, 0], at[:, 1]


def _spread(hidden: Tensor, read: bert.Places, inputs: bert.Inputs) -> Tensor:
    """(N, 1, D) -> (B, T, D), NaN where nothing was computed: who reads there by mistake is found out."""
    whole = hidden.new_full((*inputs.input_ids.shape, hidden.shape[-1]), torch.nan)
    whole[read] = hidden[:, 0]
    return whole


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


def _scored_positions(row: Prepared) -> list[int]:
    """Positions, in reading order, that a masked-LM head scores."""
    return list(range(len(row.encoding)) if row.request.all_logits else row.encoding.mask_positions)


def _vocabulary_places(loaded: Loaded, row: Prepared) -> list[int] | None:
    """Places in the model's order whose vocabulary logits are wanted, in reading order; None without such logits."""
    heads, request, length = loaded.model.heads, row.request, len(row.encoding)
    if "mlm" in heads and request.wants("mlm_logits"):
        scored = _scored_positions(row)
    elif "lm" in heads and request.wants("lm_logits"):
        scored = list(range(length) if request.lm_at is None else request.lm_at)
    else:
        return None
    order = reading_order(loaded.config, length)
    return scored if order is None else order[scored].tolist()


def _vocabulary_logits(model: bert.Model, hidden: Tensor, places: Sequence[list[int] | None]) -> list[Tensor | None]:
    """(P, V) of each row; rows with few places share one product, as its time is the way of the table from memory.

    Args:
        hidden: (B, T, D).
    """
    found: list[Tensor | None] = [None if at is None else hidden[n, at] for n, at in enumerate(places)]  # (P, D) each
    few = [n for n, at in enumerate(places) if at is not None and len(at) <= _FEW_PLACES]
    if len(few) > 1:
        shared = bert.mlm_logits(model, torch.cat([found[n] for n in few]))
        for n, part in zip(few, shared.split([len(places[n]) for n in few]), strict=True):
            found[n] = memory.empty(tuple(part.shape), part.dtype, part.device).copy_(part)
    else:
        few = []
    return [read if read is None or n in few else bert.mlm_logits(model, read) for n, read in enumerate(found)]


def _freeze(loaded: Loaded, row: Prepared, parts: Mapping[str, Tensor], logits: Tensor | None) -> Trace:
    """One row without padding, in reading order, as read-only arrays.

    Args:
        parts: name -> the row's tensor in the model's order, with or without padding, and more than it wants.
        logits: (P, V) at its `_vocabulary_places`.
    """
    encoding, request = row.encoding, row.request
    length = len(encoding)
    arrays: dict[str, Array] = {
        "tokens": np.array(encoding.tokens), "input_ids": np.array(encoding.input_ids),
        "token_type_ids": np.array(encoding.token_type_ids), "attention_mask": np.ones(length, dtype=np.int64),
    }
    order = reading_order(loaded.config, length)
    tensors = {part: tensor for part, tensor in parts.items() if request.wants(part)}
    heads = loaded.model.heads
    if "mlm" in heads and (request.wants("mlm_logits") or request.wants("mlm_positions")):
        tensors["mlm_positions"] = torch.tensor(_scored_positions(row), dtype=torch.long)
    if logits is not None:
        tensors["mlm_logits" if "mlm" in heads else "lm_logits"] = logits
    per_token = "token_classification" in heads
    for part, tensor in tensors.items():
        axes = TOKEN_AXES.get(part, (0,) if part == "logits" and per_token else ())
        arrays[part] = to_numpy(tensor, axes, length, order)
    check_finite(loaded.name, arrays)
    for array in arrays.values():
        array.flags.writeable = False
    return Trace(MappingProxyType(arrays), request, encoding, loaded.config, loaded.name, row.attention, loaded.gaps)


def check_finite(name: str, arrays: Mapping[str, Array]) -> None:
    """Overflow unless what a Trace of the model `name` holds are numbers: no view has to ask again.

    A sum is finite only if its terms are. Of arrays with an entry a layer the last one is enough: what is no number in
    one layer makes none in those above it. So is one place's row of logits: a vocabulary wide, it meets every weight
    (one that overflows at another place alone passes).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        for part, array in arrays.items():
            last = array[-1:] if part in LAYER_PARTS or part in _LAST_IS_ENOUGH else array
            if last.dtype.kind == "f" and not np.isfinite(last.sum()):
                raise Overflow(f"{name}: its numbers overflow on this input, first seen in {part}: the weights are too "
                               "large for this arithmetic, so there is nothing to show")


def to_numpy(tensor: Tensor, axes: tuple[int, ...], length: int, order: Array | None) -> Array:
    """Cut padding off the token axes and put them in reading order; the array keeps no more memory than its own."""
    tensor = (tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor).cpu()
    array = tensor.numpy()
    for axis in axes:
        if array.shape[axis] != length:
            array = array[(slice(None),) * axis + (slice(0, length),)]
        if order is not None:
            array = np.take(array, order, axis=axis)
    if not array.flags.owndata and array.nbytes < tensor.untyped_storage().nbytes():
        return array.copy()  # else it would keep its batch, or the padding
    return np.ascontiguousarray(array)
