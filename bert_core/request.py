"""What to run, and how it becomes one row of a batch.

A TraceRequest is plain data. `prepare` tokenises it and checks every position;
`to_inputs` pads several to one batch in the order in which the model reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from bert_core import model as bert
from bert_core.config import ATTENTION_KINDS, BertConfig
from bert_core.load import Loaded
from bert_core.tokenizer import Encoding

Array = np.ndarray

#: What is added up to a token's first vector, in the order of `Inputs.embedding_gate`.
EMBEDDINGS = ("token", "segment", "position")
#: Largest factor on a neuron, either way; far more than its range, and far from infinity in bf16.
MOST_FACTOR = 100.0
#: Arrays that describe the input; always there.
INPUT_PARTS = ("tokens", "input_ids", "token_type_ids", "attention_mask")
EMBEDDING_PARTS = ("token_embeddings", "segment_embeddings", "position_embeddings", "embedding_sum",
                   "embedding_output")
#: Arrays with one entry a layer -> the LayerOutput field they are.
LAYER_PARTS = {
    "query": "query", "key": "key", "value": "value", "attention_scores": "attention_scores",
    "attention_probs": "attention_probs", "context": "context", "attention_output": "attention_output",
    "intermediate": "intermediate",
}
HEAD_PARTS = ("pooled_output", "mlm_positions", "mlm_logits", "nsp_logits", "lm_logits", "logits",
              "start_logits", "end_logits")
ALL_PARTS = (*INPUT_PARTS, *EMBEDDING_PARTS, *LAYER_PARTS, "hidden_states", *HEAD_PARTS)
#: Fields of a request that list whole numbers, and those that list pairs of them.
_NUMBERS = ("masked", "hidden", "feed_forward_off", "position_order", "segments", "lm_at")
_PAIRS = ("replaced", "cut", "heads_off")
#: Fields that may be None instead of a tuple.
_OPTIONAL = ("position_order", "segments", "parts", "lm_at")


@dataclass(frozen=True)
class TraceRequest:
    """What to run: plain data, so that it is a cache key, a link and a message.

    Positions count [CLS] as 0, in reading order. Layers and heads are 0-based.

    Attributes:
        text, pair: one sentence, or two.
        model: name; None is the engine's default.
        attention: 'bidirectional' or 'causal'; None is the model's own.
        masked: positions that become [MASK].
        replaced: (position, vocabulary id) put there instead.
        hidden: positions that no other token may look at.
        cut: (query, key) pairs blocked in every layer and head.
        window: a query sees keys at most this far away; None is no limit.
        heads_off: (layer, head) whose context is zero.
        embeddings_off: of 'token', 'segment', 'position'.
        position_order: position id for each token, in reading order; None
            counts up in the order in which the model reads.
        segments: segment id for each token; None takes the sentence's.
        parts: arrays wanted (see ALL_PARTS); None is all of them.
        all_logits: vocabulary logits at every position, not only at [MASK].
        lm_at: positions whose row of `lm_logits` is wanted, in that order; None is every position.
        precision: 'fp32', 'bf16', or 'fp64' where the model was loaded so.
        feed_forward_off: layers whose feed-forward part adds nothing.
        neurons: (layer, neuron, factor); what the neuron gives is multiplied by it, for every token.
    """

    text: str
    pair: str | None = None
    attention: str | None = None
    model: str | None = None
    masked: tuple[int, ...] = ()
    replaced: tuple[tuple[int, int], ...] = ()
    hidden: tuple[int, ...] = ()
    cut: tuple[tuple[int, int], ...] = ()
    window: int | None = None
    heads_off: tuple[tuple[int, int], ...] = ()
    embeddings_off: tuple[str, ...] = ()
    position_order: tuple[int, ...] | None = None
    segments: tuple[int, ...] | None = None
    parts: tuple[str, ...] | None = None
    all_logits: bool = False
    precision: str = "fp32"
    feed_forward_off: tuple[int, ...] = ()
    neurons: tuple[tuple[int, int, float], ...] = ()
    lm_at: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        _check_kinds(self)
        if self.attention not in (None, *ATTENTION_KINDS):
            raise ValueError(f"attention {self.attention!r}: choose one of {', '.join(ATTENTION_KINDS)}")
        if self.precision not in ("fp32", "bf16", "fp64"):
            raise ValueError(f"precision {self.precision!r}: choose fp32, bf16 or fp64")
        unknown = set(self.parts or ()) - set(ALL_PARTS)
        if unknown:
            raise ValueError(f"unknown part {sorted(unknown)[0]!r}; known: {', '.join(ALL_PARTS)}")
        wrong = set(self.embeddings_off) - set(EMBEDDINGS)
        if wrong:
            raise ValueError(f"embedding {sorted(wrong)[0]!r}: choose token, segment or position")
        for *_, factor in self.neurons:
            if not abs(factor) <= MOST_FACTOR:
                raise ValueError(f"factor {factor!r:.40} of a neuron: choose {-MOST_FACTOR:g} to {MOST_FACTOR:g}")

    def wants(self, part: str) -> bool:
        return self.parts is None or part in self.parts


def _check_kinds(request: TraceRequest) -> None:
    """ValueError for a value of another kind than its field's: no cache key, or not the number that it looks like."""
    if not isinstance(request.text, str) or not isinstance(request.pair, str | None):
        raise ValueError("text and pair must be strings")
    if not isinstance(request.model, str | None):
        raise ValueError(f"model {request.model!r:.100}: give its name, or None for the engine's own")
    if not isinstance(request.all_logits, bool):
        raise ValueError(f"all_logits {request.all_logits!r:.100}: choose True or False")
    if request.window is not None and not _is_whole(request.window):
        raise ValueError(f"window {request.window!r:.100}: give a whole number, or None for no limit")
    for names, what, fits in ((_NUMBERS, "whole numbers, such as (1, 2)", _is_whole),
                              (_PAIRS, "pairs of whole numbers, such as ((1, 2), (3, 4))", _is_pair),
                              (("neurons",), "(layer, neuron, factor), such as ((1, 2, 0.0),)", _is_change),
                              (("embeddings_off", "parts"), "words", lambda value: isinstance(value, str))):
        for name in names:
            values = getattr(request, name)
            if values is None and name in _OPTIONAL:
                continue
            if not isinstance(values, tuple) or not all(map(fits, values)):
                raise ValueError(f"{name} {values!r:.100}: give a tuple of {what}")


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_pair(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(map(_is_whole, value))


def _is_change(value: object) -> bool:
    number = int | float | np.integer | np.floating
    return (isinstance(value, tuple) and len(value) == 3 and _is_pair(value[:2])
            and isinstance(value[2], number) and not isinstance(value[2], bool))


@dataclass(frozen=True)
class Prepared:
    """One request as the model will see it, still in reading order."""

    request: TraceRequest
    encoding: Encoding
    attention: str


def prepare(loaded: Loaded, request: TraceRequest, encode: Callable[..., Encoding] | None = None) -> Prepared:
    """Tokenise, put masks and replacements in, check every position.

    Args:
        encode: stands for the tokenizer's own, where the rows of a batch share what they tokenise.

    Raises:
        ValueError: a position, layer, head or id that isn't there, or no token at all.
    """
    encoding = (encode or loaded.tokenizer.encode)(request.text, request.pair)
    if not len(encoding):
        raise ValueError(f"the text is empty, and {loaded.name} adds no special tokens to it")
    _check_places(loaded, request, encoding)
    _check_orders(loaded.config, request, len(encoding))
    changes = dict(request.replaced) | dict.fromkeys(request.masked, loaded.tokenizer.mask_id)
    if changes:
        encoding = with_ids(loaded, encoding, changes)
    if request.segments is not None:
        encoding = replace(encoding, token_type_ids=request.segments)
    check_segments(loaded.config, encoding.token_type_ids)
    return Prepared(request, encoding, request.attention or loaded.config.attention_kind)


def _check_places(loaded: Loaded, request: TraceRequest, encoding: Encoding) -> None:
    """Every position, layer, head and id that a request names is there."""
    config = loaded.config
    named = (*request.masked, *request.hidden, *(request.lm_at or ()), *(p for p, _ in request.replaced),
             *(p for pair in request.cut for p in pair))
    check_range("position", named, len(encoding))
    check_range("layer", [layer for layer, _ in request.heads_off], config.num_hidden_layers)
    check_range("layer", request.feed_forward_off, config.num_hidden_layers)
    check_range("layer", [layer for layer, *_ in request.neurons], config.num_hidden_layers)
    check_range("neuron", [neuron for _, neuron, _ in request.neurons], config.intermediate_size)
    check_range("head", [head for _, head in request.heads_off], config.num_attention_heads)
    check_ids(config, (*encoding.input_ids, *(i for _, i in request.replaced)))
    if request.masked and loaded.tokenizer.mask_id is None:
        raise ValueError(f"{loaded.name} has no [MASK] token")


def _check_orders(config: BertConfig, request: TraceRequest, length: int) -> None:
    """What a request gives token by token has one entry a token, each within the tables."""
    for name, values, top in (("position_order", request.position_order, config.max_tokens),
                              ("segments", request.segments, max(config.type_vocab_size, 1))):
        if values is not None:
            if len(values) != length:
                raise ValueError(f"{name} has {len(values)} entries; the input has {length} tokens")
            check_range(name, values, top)
    if request.window is not None and request.window < 0:
        raise ValueError(f"window {request.window}: must be 0 or more")


def check_range(what: str, values, count: int) -> None:
    """ValueError for the first value outside 0..count-1."""
    for value in values:
        if not 0 <= value < count:
            raise ValueError(f"{what} {value} is outside 0 to {count - 1}")


def check_ids(config: BertConfig, ids: Iterable[int]) -> None:
    """ValueError for the first id that the word table has no row for: pieces may be added to a tokenizer alone."""
    check_range("vocabulary id", ids, config.vocab_size)


def check_segments(config: BertConfig, segments: Iterable[int]) -> None:
    """ValueError for the first segment id that the model has no vector for: a tokenizer.json may give any."""
    check_range("the tokenizer's segment id", segments, max(config.type_vocab_size, 1))


def with_ids(loaded: Loaded, encoding: Encoding, changes: Mapping[int, int]) -> Encoding:
    """The encoding with other ids at some positions."""
    ids = tuple(changes.get(n, i) for n, i in enumerate(encoding.input_ids))
    tokens = tuple(loaded.tokenizer.token_of(i) if n in changes else t
                   for n, (i, t) in enumerate(zip(ids, encoding.tokens, strict=True)))
    masks = tuple(n for n, i in enumerate(ids) if i == loaded.tokenizer.mask_id)
    special = tuple(s and n not in changes for n, s in enumerate(encoding.special))
    return replace(encoding, input_ids=ids, tokens=tokens, mask_positions=masks, special=special)


def reading_order(config: BertConfig, length: int) -> Array | None:
    """Permutation between reading and model order, its own inverse; None if they agree."""
    if config.reading_order == "left-to-right":
        return None
    order = np.arange(length)
    order[1:-1] = order[1:-1][::-1]
    return order


def blocked_pairs(prepared: Prepared) -> Array | None:
    """(T, T) bool of what hidden, cut and window block, in reading order; None if nothing."""
    request, length = prepared.request, len(prepared.encoding)
    if not (request.hidden or request.cut) and request.window is None:
        return None
    blocked = np.zeros((length, length), dtype=bool)
    blocked[:, list(request.hidden)] = True
    np.fill_diagonal(blocked, False)
    if request.window is not None:
        place = np.arange(length)
        blocked |= np.abs(place[:, None] - place[None, :]) > request.window
    for query, key in request.cut:
        blocked[query, key] = True
    return blocked


def to_inputs(loaded: Loaded, rows: list[Prepared]) -> bert.Inputs:
    """Pad the rows to one batch, in the order in which the model reads them."""
    config, device, width = loaded.config, loaded.model.device, max(len(r.encoding) for r in rows)
    shape = (len(rows), width)
    ids, segments = np.full(shape, config.pad_token_id, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    mask = np.zeros(shape, dtype=bool)
    blocked: Array | None = None
    for n, row in enumerate(rows):
        length = len(row.encoding)
        order = reading_order(config, length)
        order = np.arange(length) if order is None else order
        ids[n, :length] = np.array(row.encoding.input_ids)[order]
        segments[n, :length] = np.array(row.encoding.token_type_ids)[order]
        mask[n, :length] = True
        pairs = blocked_pairs(row)
        if pairs is not None:
            blocked = np.zeros((len(rows), width, width), dtype=bool) if blocked is None else blocked
            blocked[n, :length, :length] = pairs[np.ix_(order, order)]
    causal = np.array([row.attention == "causal" for row in rows])
    arrays = (ids, segments, mask, causal, places(config, rows, ids), blocked)
    tensors = [None if array is None else torch.from_numpy(array) for array in arrays]
    layers = config.num_hidden_layers
    inputs = bert.Inputs(
        *tensors,
        head_gate=gates(rows, (layers, config.num_attention_heads), lambda r: [(head, 0.0) for head in r.heads_off]),
        embedding_gate=gates(
            rows, (len(EMBEDDINGS),), lambda r: [((EMBEDDINGS.index(kind),), 0.0) for kind in r.embeddings_off]),
        feed_forward_gate=gates(rows, (layers,), lambda r: [((layer,), 0.0) for layer in r.feed_forward_off]),
        neuron_gate=gates(rows, (layers, config.intermediate_size), lambda r: [(n[:2], n[2]) for n in r.neurons]))
    return bert.Inputs(*(None if part is None else part.to(device) for part in inputs))


def places(config: BertConfig, rows: list[Prepared], ids: Array) -> Array | None:
    """Position of every token of (B, T) ids, in the order in which the model reads; None if no row moves any.

    A row that moves none has what it has alone: where a padding token stands in a text, RoBERTa doesn't count it.
    """
    if all(row.request.position_order is None for row in rows):
        return None
    found = np.array(bert.counted(torch.from_numpy(ids), config.position_padding)) - config.position_offset
    for n, row in enumerate(rows):
        if row.request.position_order is not None:
            order = reading_order(config, len(row.encoding))
            moved = np.array(row.request.position_order)
            found[n, :len(moved)] = moved if order is None else moved[order]
    return found


def gates(
    rows: list[Prepared], shape: tuple[int, ...], changes: Callable[[TraceRequest], list[tuple[tuple[int, ...], float]]]
) -> Tensor | None:
    """(B, *shape) of ones, with the factors that the requests name; None if none names any.

    Args:
        changes: a request -> place in `shape` and factor of each part that it changes.
    """
    named = [changes(row.request) for row in rows]
    if not any(named):
        return None
    found = torch.ones(len(rows), *shape)
    for n, row in enumerate(named):
        for place, factor in row:
            found[(n, *place)] = factor
    return found
