"""BERT's encoder and heads, top to bottom, on named parameters.

References:
    Vaswani et al. 2017, Attention Is All You Need, arXiv 1706.03762.
    Devlin et al. 2018, BERT, arXiv 1810.04805.
    The released checkpoints, whose parameter names are used unchanged.

Dimensions: B batch, T tokens (Tq as query, Tk as key), D hidden size, H heads,
Dh head size, I intermediate size, V vocabulary, L layers, P chosen positions.

Every function takes a Model and tensors and returns tensors; nothing is kept
between calls, so one Model serves any number of visitors and threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from bert_core.config import BertConfig
from bert_core.layout import Layout, layout_for
from bert_core.on_demand import OnDemand

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    **dict.fromkeys(("gelu_new", "gelu_pytorch_tanh"), lambda x: F.gelu(x, approximate="tanh")),
    "relu": F.relu,
    "tanh": torch.tanh,
    "silu": F.silu,
}


#: Roles of a layer's linears that read the same input.
PROJECTIONS = ("query", "key", "value")


@dataclass(frozen=True)
class Model:
    """A config and its weights; read-only, shared by everyone.

    Attributes:
        config: the architecture.
        weights: checkpoint name -> tensor, as in the file.
        heads: which heads the checkpoint really has, out of 'pooler', 'mlm', 'nsp', 'lm', 'classification',
            'token_classification', 'question_answering'. A head that is not here was not loaded and never answers.
        fast_linear: linear name -> callable(x, activation) that does the same as `linear` faster (see kernels.py);
            empty means F.linear.
    """

    config: BertConfig
    weights: Mapping[str, Tensor]
    heads: frozenset[str] = frozenset()
    fast_linear: Mapping[str, Callable[[Tensor, str | None], Tensor]] = field(default_factory=dict)

    @property
    def names(self) -> Layout:
        return layout_for(self.config)

    @property
    def dtype(self) -> torch.dtype:
        return self.weights[f"{self.names.position}.weight"].dtype

    @property
    def device(self) -> torch.device:
        return self.weights[f"{self.names.position}.weight"].device


class Inputs(NamedTuple):
    """One padded batch.

    Attributes:
        input_ids: (B, T) int64, WordPiece ids.
        token_type_ids: (B, T) int64, 0 for the first sentence, 1 for the second.
        attention_mask: (B, T) bool, True for tokens, False for padding.
        causal: (B,) bool, True where a token may see only itself and what stands before it.
        position_ids: (B, T) int64, rows of the position table; None counts up.
        blocked: (B, Tq, Tk) bool, True where a query may not see a key, on top of padding and the causal mask;
            None blocks nothing.
        head_gate: (B, L, H), factor on each head's context (0 switches a head off); None keeps all.
        embedding_gate: (B, 3), factors on token, segment and position embedding; None keeps all.
        feed_forward_gate: (B, L), factor on what each layer's feed-forward part adds; None keeps all.
        neuron_gate: (B, L, I), factor on what each neuron gives; None keeps all.
    """

    input_ids: Tensor
    token_type_ids: Tensor
    attention_mask: Tensor
    causal: Tensor
    position_ids: Tensor | None = None
    blocked: Tensor | None = None
    head_gate: Tensor | None = None
    embedding_gate: Tensor | None = None
    feed_forward_gate: Tensor | None = None
    neuron_gate: Tensor | None = None


class Gates(NamedTuple):
    """Factors on the parts of one layer, 0 switches one off; None keeps all."""

    head: Tensor | None = None  # (B, H), on each head's context
    feed_forward: Tensor | None = None  # (B,), on what the feed-forward part adds
    neuron: Tensor | None = None  # (B, T or 1, I), on what each neuron gives, after the activation


NO_GATES = Gates()


class Embeddings(NamedTuple):
    """The three-way sum of section 3.2 and what the encoder gets of it."""

    token: Tensor  # (B, T, E), E the tables' width, D in BERT
    segment: Tensor | None  # (B, T, E)
    position: Tensor  # (B, T, E)
    sum: Tensor  # (B, T, E)
    output: Tensor  # (B, T, D), after LayerNorm (and projection where there is one)


#: Query, key and value, three of (B, H, T, Dh) -> the heads' contexts, (B, H, Tq, Dh).
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
#: N tokens of a batch: which row, (N,) int64, and which token of it, (N,) int64.
Places = tuple[Tensor, Tensor]


class LayerOutput(NamedTuple):
    """Every intermediate of one encoder layer."""

    query: Tensor  # (B, H, T, Dh)
    key: Tensor  # (B, H, T, Dh)
    value: Tensor  # (B, H, T, Dh)
    attention_scores: Tensor | None  # (B, H, Tq, Tk), q.k / sqrt(Dh), before the mask; None where `attend` has them
    attention_probs: Tensor | None  # (B, H, Tq, Tk), rows sum to 1
    context: Tensor  # (B, T, D), heads side by side
    attention_output: Tensor  # (B, T, D), after output projection, residual, LayerNorm
    intermediate: Tensor  # (B, T, I), after the activation and the neurons' factors
    hidden: Tensor  # (B, T, D), the layer's output


# --- leaf operations ---------------------------------------------------------


def activate(x: Tensor, name: str) -> Tensor:
    """Apply the activation that config.json calls `name`."""
    try:
        return _ACTIVATIONS[name](x)
    except KeyError:
        raise ValueError(f"activation {name!r} is unknown; known: {', '.join(_ACTIVATIONS)}") from None


def linear(model: Model, x: Tensor, name: str, activation: str | None = None) -> Tensor:
    """x W^T + b of the linear called `name`, then `activation`.

    Args:
        x: (..., in).

    Returns:
        (..., out).
    """
    fast = model.fast_linear.get(name)
    if fast is not None:
        return fast(x, activation)
    out = F.linear(x, model.weights[f"{name}.weight"], model.weights.get(f"{name}.bias"))
    return out if activation is None else activate(out, activation)


def layer_norm(model: Model, x: Tensor, name: str) -> Tensor:
    """LayerNorm over the last dimension with the weight and bias of `name`."""
    weight = model.weights[f"{name}.weight"]
    return F.layer_norm(x, weight.shape, weight, model.weights[f"{name}.bias"], model.config.layer_norm_eps)


# --- embeddings --------------------------------------------------------------


def positions(model: Model, inputs: Inputs) -> Tensor:
    """Rows of the position table, (B, T): `counted` unless given otherwise."""
    given, config = inputs.position_ids, model.config
    return counted(inputs.input_ids, config.position_padding) if given is None else given + config.position_offset


def counted(ids: Tensor, padding: int | None) -> Tensor:
    """0, 1, 2 ... for (B, T) ids; with a `padding` on from behind that row, which every padding token gets."""
    if padding is None:
        return torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
    real = ids != padding
    return real.cumsum(dim=1) * real + padding


def word_vectors(model: Model, ids: Tensor) -> Tensor:
    """(...) vocabulary ids -> (..., E) rows of the word table."""
    name, weights = f"{model.names.word}.weight", model.weights
    return weights.rows(name, ids) if isinstance(weights, OnDemand) else F.embedding(ids, weights[name])


def embed(model: Model, inputs: Inputs) -> Embeddings:
    """Token + segment + position, then LayerNorm (Devlin et al. 2018, section 3)."""
    names, w = model.names, model.weights
    token = word_vectors(model, inputs.input_ids)
    position = F.embedding(positions(model, inputs), w[f"{names.position}.weight"])
    segment = None
    if names.segment is not None:
        segment = F.embedding(inputs.token_type_ids, w[f"{names.segment}.weight"])
    if inputs.embedding_gate is not None:
        gate = inputs.embedding_gate.to(token.dtype)[:, :, None, None]  # (B, 3, 1, 1)
        token, position = token * gate[:, 0], position * gate[:, 2]
        segment = segment * gate[:, 1] if segment is not None else None
    total = (token if segment is None else token + segment) + position
    output = layer_norm(model, total, names.embedding_norm)
    if names.projection is not None and f"{names.projection}.weight" in w:
        output = linear(model, output, names.projection)
    return Embeddings(token, segment, position, total, output)


# --- the block ---------------------------------------------------------------


def allowed_pairs(inputs: Inputs) -> Tensor:
    """Which query may see which key, (B, 1, Tq, Tk) bool."""
    length = inputs.input_ids.shape[1]
    allowed = inputs.attention_mask[:, None, :].expand(-1, length, -1)  # (B, Tq, Tk)
    if bool(inputs.causal.any()):
        before = torch.ones(length, length, dtype=torch.bool, device=allowed.device).tril()
        allowed = allowed & (before | ~inputs.causal[:, None, None])
    if inputs.blocked is not None:
        allowed = allowed & ~inputs.blocked
    return allowed[:, None]


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(B, T, D) -> (B, H, T, Dh)."""
    batch, length, width = x.shape
    return x.view(batch, length, heads, width // heads).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """(B, H, T, Dh) -> (B, T, D)."""
    batch, heads, length, size = x.shape
    return x.transpose(1, 2).reshape(batch, length, heads * size)


def attention_probs(scores: Tensor, allowed: Tensor | None) -> Tensor:
    """Softmax over the keys a query may see; exactly 0 elsewhere.

    A query that may see nothing at all looks nowhere: its row is all zeros.

    Args:
        scores: (B, H, Tq, Tk).
        allowed: (B, 1, Tq, Tk) bool, or None where everything may be seen.
    """
    if allowed is None:
        return scores.softmax(dim=-1)
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~allowed, lowest).softmax(dim=-1).masked_fill(~allowed, 0.0)


def attention_weights(query: Tensor, key: Tensor, allowed: Tensor | None) -> tuple[Tensor, Tensor]:
    """Scores q.k / sqrt(Dh) before the mask, and their softmax (Vaswani et al. 2017, section 3.2.1).

    Args:
        query, key: (B, H, T, Dh).
        allowed: as in `attention_probs`.

    Returns:
        Two of (B, H, Tq, Tk).
    """
    scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
    return scores, attention_probs(scores, allowed)


def joined_name(model: Model, index: int) -> str:
    """Key in `fast_linear` of a layer's three projections done as one product."""
    return "+".join(model.names.of_layer(index, role) for role in PROJECTIONS)


def projections(model: Model, hidden: Tensor, index: int) -> tuple[Tensor, ...]:
    """Query, key and value of a layer before they are split into heads, three of (B, T, D)."""
    joined = model.fast_linear.get(joined_name(model, index))
    if joined is not None:
        return joined(hidden, None).chunk(3, dim=-1)
    return tuple(linear(model, hidden, model.names.of_layer(index, role)) for role in PROJECTIONS)


def layer(
    model: Model, index: int, hidden: Tensor, allowed: Tensor | None, gates: Gates = NO_GATES,
    attend: Attend | None = None, read: Places | None = None,
) -> LayerOutput:
    """One encoder layer: self-attention, then feed-forward, each with residual and LayerNorm.

    Args:
        index: 0-based.
        hidden: (B, T, D), the layer's input.
        allowed: (B, 1, Tq, Tk) bool from `allowed_pairs`, None for no mask.
        attend: does the attention instead, and keeps its scores and probabilities to itself; not for training.
        read: where the output is read; all that follows the contexts is then (N, 1, ...), of these places alone.
    """
    heads = model.config.num_attention_heads
    query, key, value = (split_heads(x, heads) for x in projections(model, hidden, index))  # (B, H, T, Dh)
    if attend is None:
        scores, probs = attention_weights(query, key, allowed)  # (B, H, Tq, Tk)
        mixed = probs @ value  # (B, H, Tq, Dh)
    else:
        scores, probs, mixed = None, None, attend(query, key, value)
    if gates.head is not None:
        mixed = mixed * gates.head[:, :, None, None].to(mixed.dtype)
    context = join_heads(mixed)  # (B, T, D)
    at = context
    if read is not None:
        hidden, at = hidden[read][:, None], context[read][:, None]  # two of (N, 1, D)
        gates = Gates(*(None if gate is None else gate[read[0]] for gate in gates))
    return LayerOutput(query, key, value, scores, probs, context, *after_context(model, index, hidden, at, gates))


def after_context(
    model: Model, index: int, hidden: Tensor, context: Tensor, gates: Gates = NO_GATES
) -> tuple[Tensor, Tensor, Tensor]:
    """The rest of a layer: output projection and feed-forward, each with residual and LayerNorm.

    Args:
        index: 0-based.
        hidden: (B, T, D), the layer's input.
        context: (B, T, D), its heads' contexts side by side.

    Returns:
        After attention (B, T, D), what the feed-forward's neurons give (B, T, I), the layer's output (B, T, D).
    """
    names = model.names
    projected = linear(model, context, names.of_layer(index, "attention_dense"))
    attended = layer_norm(model, projected + hidden, names.of_layer(index, "attention_norm"))
    wide = linear(model, attended, names.of_layer(index, "intermediate"), model.config.hidden_act)  # (B, T, I)
    if gates.neuron is not None:
        wide = wide * gates.neuron.to(wide.dtype)
    narrow = linear(model, wide, names.of_layer(index, "output_dense"))
    if gates.feed_forward is not None:
        narrow = narrow * gates.feed_forward[:, None, None].to(narrow.dtype)
    out = layer_norm(model, narrow + attended, names.of_layer(index, "output_norm"))
    return attended, wide, out


def needs_mask(inputs: Inputs) -> bool:
    """Whether any query is kept from any key."""
    return inputs.blocked is not None or bool(inputs.causal.any()) or not bool(inputs.attention_mask.all())


def gates_at(inputs: Inputs, index: int) -> Gates:
    """Of one layer, (B, L, ...) -> (B, ...); a neuron's factor is the same for every token."""
    every_layer = (inputs.head_gate, inputs.feed_forward_gate, inputs.neuron_gate)
    head, feed_forward, neuron = (None if gate is None else gate[:, index] for gate in every_layer)
    return Gates(head, feed_forward, None if neuron is None else neuron[:, None])


def encode(
    model: Model, inputs: Inputs, watch: Callable[[int, LayerOutput], None] | None = None,
    attend: Callable[[int], Attend | None] = lambda index: None, read: Places | None = None,
) -> tuple[Embeddings, Tensor]:
    """Embeddings, then all layers.

    Args:
        inputs: one padded batch.
        watch: called with (layer index, LayerOutput) as each layer is done;
            what it does not keep is freed.
        attend: layer index -> what does its attention, as in `layer`.
        read: where the last layer's output is read; None is everywhere.

    Returns:
        The embeddings and the last hidden states (B, T, D), or (N, 1, D) of the places `read`.
    """
    embeddings = embed(model, inputs)
    allowed = allowed_pairs(inputs) if needs_mask(inputs) else None
    hidden = embeddings.output
    last = model.config.num_hidden_layers - 1
    for index in range(last + 1):
        where = read if index == last else None
        done = layer(model, index, hidden, allowed, gates_at(inputs, index), attend(index), where)
        if watch is not None:
            watch(index, done)
        hidden = done.hidden
    return embeddings, hidden


# --- heads -------------------------------------------------------------------


def pooled_output(model: Model, hidden: Tensor) -> Tensor:
    """tanh(dense([CLS])), (B, T, D) -> (B, D): what NSP and classifiers read."""
    return linear(model, hidden[:, 0], model.names.pooler, "tanh")


def mlm_transform(model: Model, hidden: Tensor) -> Tensor:
    """Dense, activation and LayerNorm before the vocabulary projection, (..., D) -> (..., E)."""
    dense = linear(model, hidden, model.names.mlm_dense, mlm_activation(model.config))
    return layer_norm(model, dense, model.names.mlm_norm)


def mlm_activation(config: BertConfig) -> str:
    """Name of the activation in the masked-LM head; some families have GELU there whatever their layers have."""
    always = config.model_type in ("roberta", "camembert", "xlm-roberta", "electra")
    return "gelu" if always else config.hidden_act


def mlm_logits(model: Model, hidden: Tensor) -> Tensor:
    """Logits over the vocabulary; the decoder is the word table (section 3.1, task 1).

    Args:
        hidden: (..., D); gather the positions first, the projection is wide.

    Returns:
        (..., V). For a causal model, row t scores the token after t.
    """
    names = model.names
    fast = model.fast_linear.get(names.word)
    transformed = mlm_transform(model, hidden)
    if fast is not None:
        return fast(transformed, None)
    return F.linear(transformed, decoder_weight(model), model.weights[names.mlm_bias])


def decoder_weight(model: Model) -> Tensor:
    """(V, E) weight of the vocabulary projection: the word table where they are tied."""
    own = model.weights.get(model.names.decoder)
    return own if own is not None else model.weights[f"{model.names.word}.weight"]


def nsp_logits(model: Model, pooled: Tensor) -> Tensor:
    """(B, D) -> (B, 2), index 0 is IsNext (section 3.1, task 2)."""
    return linear(model, pooled, model.names.nsp)


def classification_logits(model: Model, hidden: Tensor) -> Tensor:
    """Sequence classifier over [CLS], (B, T, D) -> (B, number of labels)."""
    names = model.names
    if names.classifier_dense is not None:
        read = linear(model, hidden[:, 0], names.classifier_dense, names.classifier_act)
    else:
        read = pooled_output(model, hidden)
    return linear(model, read, names.classifier)


def token_classification_logits(model: Model, hidden: Tensor) -> Tensor:
    """One class a token, (B, T, D) -> (B, T, number of labels)."""
    return linear(model, hidden, "classifier")


def question_answering_logits(model: Model, hidden: Tensor) -> tuple[Tensor, Tensor]:
    """Start and end logits of an extractive answer, (B, T, D) -> two of (B, T)."""
    start, end = linear(model, hidden, "qa_outputs").unbind(dim=-1)
    return start, end
