"""What a Trace keeps of the embeddings and layers, written where it stays.

A row's arrays are its own from the start: nobody copies them later, and a
Trace that is kept does not keep those of its neighbours in the batch. On the
CPU attention runs row by row, without padding, straight into these arrays, and
only rows that hide something have a mask. They are float32 also where the model
runs in half precision, so its attention runs in float32 as long as that is sooner.

Several short rows are the exception: what a step costs beside its arithmetic
outweighs all that, so they attend together, and each row's arrays are copied
out of the batch's at the end.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from bert_core import memory
from bert_core import model as bert
from bert_core.config import BertConfig
from bert_core.request import ALL_PARTS, EMBEDDING_PARTS, INPUT_PARTS, LAYER_PARTS, Prepared

#: Axes that run over tokens, by array, for leaving padding out and giving back reading order.
TOKEN_AXES = {
    **dict.fromkeys((*INPUT_PARTS, *EMBEDDING_PARTS, "start_logits", "end_logits"), (0,)),
    **dict.fromkeys(("context", "attention_output", "intermediate", "hidden_states"), (1,)),
    **dict.fromkeys(("query", "key", "value"), (2,)),
    **dict.fromkeys(("attention_scores", "attention_probs"), (2, 3)),
}
_WEIGHTS = ("attention_scores", "attention_probs")
#: What `attend` writes itself.
_ATTENDED = ("query", "key", "value", *_WEIGHTS)
#: Tokens up to which attention in float32 is sooner than in half precision, whose results would be converted.
_SHORT = 32
#: Tokens up to which rows attend together, and how many of them at least.
_TOGETHER, _SEVERAL = 32, 4


def kept_of(config: BertConfig, rows: Sequence[Prepared], inputs: bert.Inputs, like: Tensor) -> Kept:
    """What collects for these rows: see Kept and KeptTogether."""
    together = like.device.type == "cpu" and len(rows) >= _SEVERAL and inputs.input_ids.shape[1] <= _TOGETHER
    return (KeptTogether if together else Kept)(config, rows, inputs, like)


class Kept:
    """Collects what each row wants of the embeddings and layers, without padding.

    Args:
        rows: the batch.
        inputs: the same, padded.
        like: a weight of the model, for precision and device.

    Attributes:
        rows: for each row, name -> (L, ...) or (T, D) tensor in the model's order.
    """

    def __init__(self, config: BertConfig, rows: Sequence[Prepared], inputs: bert.Inputs, like: Tensor):
        self.rows: list[dict[str, Tensor]] = [{} for _ in rows]
        self.layers = config.num_hidden_layers
        self.wanted = [{part for part in ALL_PARTS if row.request.wants(part)} for row in rows]
        self.lengths = [len(row.encoding) for row in rows]
        self.longest = max(self.lengths)
        self.half = like.dtype in (torch.bfloat16, torch.float16)  # kept as float32: NumPy has no bfloat16
        self.dtype, self.device = torch.float32 if self.half else like.dtype, like.device
        self.by_row = like.device.type == "cpu" and (not self.half or self.longest <= _SHORT)
        if self.by_row:
            self._prepare(inputs, config.num_attention_heads)

    def _prepare(self, inputs: bert.Inputs, heads: int) -> None:
        """What `_attend` needs beside the rows."""
        self.masks = row_masks(inputs, self.lengths, self.dtype)
        self.unkept = {part: memory.empty((heads * self.longest**2,), self.dtype, self.device) for part in _WEIGHTS
                       if any(part not in wanted for wanted in self.wanted)}

    def attend(self, index: int) -> Callable[[Tensor, Tensor, Tensor], Tensor] | None:
        """The attention of a layer, for `model.layer`; None where its own lines serve."""
        return functools.partial(self._attend, index) if self.by_row else None

    def _attend(self, index: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Context of each head, (B, H, T, Dh), from three of (B, H, T, Dh); zeros at padding."""
        batch, heads, longest, size = query.shape
        padded = min(self.lengths) < longest
        joined = (query.new_zeros if padded else query.new_empty)((batch, longest, heads, size))
        for n, length in enumerate(self.lengths):
            q, k, v = (self._written(part, n, index, whole[n, :, :length])
                       for part, whole in (("query", query), ("key", key), ("value", value)))
            scores, probs = (self._place(part, n, index, (heads, length, length)) for part in _WEIGHTS)
            torch.baddbmm(scores, q, k.transpose(1, 2), beta=0, alpha=size**-0.5, out=scores)
            if self.masks[n] is None:
                torch.softmax(scores, -1, out=probs)
            else:
                hide, nowhere = self.masks[n]
                torch.softmax(torch.add(scores, hide, out=probs), -1, out=probs)
                if nowhere is not None:
                    probs.masked_fill_(nowhere, 0.0)
            joined[n, :length].transpose(0, 1).copy_(torch.bmm(probs, v))
        return joined.transpose(1, 2)

    def take(self, index: int, out: bert.LayerOutput) -> None:
        """A layer is done."""
        for part, name in LAYER_PARTS.items():
            if not (self.by_row and part in _ATTENDED):
                self._put(part, index, getattr(out, name))
        self._put("hidden_states", index + 1, out.hidden)

    def collected(self) -> list[dict[str, Tensor]]:
        """When all is taken: for each row, name -> tensor, perhaps with padding and of a wider storage."""
        return self.rows

    def take_embeddings(self, embeddings: bert.Embeddings) -> None:
        for part, tensor in zip(EMBEDDING_PARTS, embeddings, strict=True):
            for n, row in enumerate(self.rows):
                if part in self.wanted[n] and tensor is not None:
                    row[part] = tensor[n, : self.lengths[n]].clone() if len(self.rows) > 1 else tensor[n]
        self._put("hidden_states", 0, embeddings.output)

    def _put(self, part: str, index: int, batch: Tensor) -> None:
        """Entry `index` of every row that wants the part, from (B, ...)."""
        for n, length in enumerate(self.lengths):
            if part in self.wanted[n]:
                tensor = batch[n]
                if length < self.longest:
                    for axis in TOKEN_AXES[part]:
                        tensor = tensor.narrow(axis - 1, 0, length)
                self._slot(part, n, index, tensor.shape).copy_(tensor)

    def _written(self, part: str, n: int, index: int, tensor: Tensor) -> Tensor:
        """A row's part of a layer as it is kept, or as it came if it isn't."""
        if part in self.wanted[n]:
            return self._slot(part, n, index, tensor.shape).copy_(tensor)
        return tensor.to(self.dtype)

    def _place(self, part: str, n: int, index: int, shape: tuple[int, ...]) -> Tensor:
        """Where a row's scores or probabilities of a layer go: for good, or until the next ones."""
        if part in self.wanted[n]:
            return self._slot(part, n, index, shape)
        return self.unkept[part][: shape[0] * shape[1] * shape[2]].view(shape)

    def _slot(self, part: str, n: int, index: int, shape: Sequence[int]) -> Tensor:
        """Entry `index` of a row's array, which is made when the first entry is asked for."""
        row = self.rows[n]
        if part not in row:
            count = self.layers + (part == "hidden_states")
            row[part] = memory.empty((count, *shape), self.dtype, self.device)
        return row[part][index]


class KeptTogether(Kept):
    """The same for several short rows on the CPU: a step a layer for all of them, padding and all.

    Attributes:
        whole: name -> (L, B, ...) tensor, of what any row wants.
    """

    def _prepare(self, inputs: bert.Inputs, heads: int) -> None:
        self.whole: dict[str, Tensor] = {}
        self.any_wants = set().union(*self.wanted)
        self.mask, self.nowhere = batch_mask(inputs, self.dtype)

    def _attend(self, index: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """As in Kept; what stands at padding is no zero, but nobody reads it."""
        batch, heads, longest, size = query.shape
        q, k, v = (self._flat(part, index, whole)
                   for part, whole in (("query", query), ("key", key), ("value", value)))  # (B * H, T, Dh)
        scores, probs = (self._entry(part, index, (batch, heads, longest, longest)) for part in _WEIGHTS)
        flat = scores.view(batch * heads, longest, longest)
        torch.baddbmm(flat, q, k.transpose(1, 2), beta=0, alpha=size**-0.5, out=flat)
        torch.softmax(scores if self.mask is None else torch.add(scores, self.mask, out=probs), -1, out=probs)
        if self.nowhere is not None:
            probs.masked_fill_(self.nowhere, 0.0)
        return torch.bmm(probs.view_as(flat), v).view(batch, heads, longest, size).to(query.dtype)

    def _flat(self, part: str, index: int, tensor: Tensor) -> Tensor:
        """(B, H, T, Dh), each head's rows one after another, as (B * H, T, Dh)."""
        if part in self.any_wants:
            tensor = self._entry(part, index, tensor.shape).copy_(tensor)
        return tensor.to(self.dtype).reshape(-1, *tensor.shape[2:])

    def _put(self, part: str, index: int, batch: Tensor) -> None:
        if part in self.any_wants:
            self._entry(part, index, batch.shape).copy_(batch)

    def _entry(self, part: str, index: int, shape: Sequence[int]) -> Tensor:
        """Where a layer's part of the batch goes: for good, or until the next one."""
        if part not in self.any_wants:
            return torch.empty(shape, dtype=self.dtype)
        if part not in self.whole:
            count = self.layers + (part == "hidden_states")
            self.whole[part] = memory.empty((count, *shape), self.dtype, self.device)
        return self.whole[part][index]

    def collected(self) -> list[dict[str, Tensor]]:
        """Views of the batch's arrays, padding included."""
        return [row | {part: whole[:, n] for part, whole in self.whole.items() if part in self.wanted[n]}
                for n, row in enumerate(self.rows)]


def batch_mask(inputs: bert.Inputs, dtype: torch.dtype) -> tuple[Tensor | None, Tensor | None]:
    """As `row_masks`, for the whole batch: (B, 1, T, T) and (B, 1, T, 1); padding sees what is there."""
    if not bert.needs_mask(inputs):
        return None, None
    hidden = ~bert.allowed_pairs(inputs)
    nowhere = hidden.all(-1, keepdim=True)
    lowest = torch.finfo(dtype).min
    return torch.zeros(hidden.shape, dtype=dtype).masked_fill_(hidden, lowest), nowhere if bool(nowhere.any()) else None


def row_masks(
    inputs: bert.Inputs, lengths: Sequence[int], dtype: torch.dtype
) -> list[tuple[Tensor, Tensor | None] | None]:
    """What to add to the scores of each row, (T, T), and the queries that see nothing, (T, 1); None where all is seen.

    The lowest number of the precision outweighs any score, so that its probability is exactly 0.
    """
    if not bert.needs_mask(inputs):
        return [None] * len(lengths)
    found: list[tuple[Tensor, Tensor | None] | None] = []
    for allowed, length in zip(bert.allowed_pairs(inputs)[:, 0], lengths, strict=True):
        seen = allowed[:length, :length]
        if bool(seen.all()):
            found.append(None)
            continue
        hide = torch.zeros(seen.shape, dtype=dtype).masked_fill_(~seen, torch.finfo(dtype).min)
        nowhere = ~seen.any(-1, keepdim=True)
        found.append((hide, nowhere if bool(nowhere.any()) else None))
    return found
