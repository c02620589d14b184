"""Our stages beside transformers' classes, on the same sentence and weights.

Each stage gets the same input in both, so that a difference is that stage's
own. transformers' modules are built without memory of their own and take our
tensors as they are; importing them costs two seconds, so it happens here, when
asked.
"""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from bert_core import model as bert
from bert_core.load import Loaded
from bert_core.on_demand import plain
from bert_core.request import check_ids, check_segments, reading_order
from bert_core.tokenizer import Encoding
from bert_core.trace import check_finite
from bert_core.training import objectives
from bert_core.training.block import hidden_at
from bert_core.training.packing import IS_NEXT

#: Every stage of the page, in the order of the forward pass.
STAGES = ("embeddings", "attention", "feed_forward", "layer_norm", "pooler", "mlm", "nsp", "losses")
#: Classes of the installed transformers (or torch) that do the same.
COUNTERPARTS: Mapping[str, tuple[str, ...]] = {
    "embeddings": ("BertEmbeddings",),
    "attention": ("BertSelfAttention", "BertSelfOutput"),
    "feed_forward": ("BertIntermediate", "BertOutput"),
    "layer_norm": ("BertSelfOutput",),
    "pooler": ("BertPooler",),
    "mlm": ("BertPredictionHeadTransform", "BertLMPredictionHead"),
    "nsp": ("BertOnlyNSPHead",),
    "losses": ("BertForPreTraining",),
}
#: The same for a causal model, where it differs.
CAUSAL_COUNTERPARTS: Mapping[str, tuple[str, ...]] = {"losses": ("BertLMHeadModel",)}
_MODULE = "transformers.models.bert.modeling_bert"


@dataclass(frozen=True)
class StageRun:
    """One stage, run twice.

    Attributes:
        stage: one of STAGES.
        ours: our output, without the batch axis.
        theirs: transformers', same shape.
    """

    stage: str
    ours: Tensor
    theirs: Tensor

    @property
    def largest_difference(self) -> float:
        """Over all numbers of the stage's output."""
        return float((self.ours - self.theirs).abs().max())

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.ours.shape)

    def first(self, count: int = 3) -> tuple[float, ...]:
        """The first numbers of our output, as a fingerprint to compare by eye."""
        return tuple(self.ours.flatten()[:count].tolist())


class _Chain(NamedTuple):
    """Our own forward pass over one sentence, as far as the stages need it."""

    inputs: bert.Inputs
    embeddings: bert.Embeddings
    before: Tensor  # (1, T, D), input of the chosen layer
    layer: bert.LayerOutput
    hidden: Tensor  # (1, T, D), last hidden states


def reference_version() -> str:
    """Version of the installed transformers, read without importing it."""
    return importlib.metadata.version("transformers")


def reference_source(name: str) -> str:
    """Source of a class of the installed transformers: its forward, without decorators and docstring."""
    forward = getattr(importlib.import_module(_MODULE), name).forward
    lines = textwrap.dedent(inspect.getsource(inspect.unwrap(forward))).splitlines()
    (function,) = ast.parse("\n".join(lines)).body
    if ast.get_docstring(function) is not None:
        del lines[function.body[0].lineno - 1:function.body[0].end_lineno]
    return "\n".join(lines[function.lineno - 1:])


def counterparts(stage: str, causal: bool) -> tuple[str, ...]:
    """The classes that a stage of such a model is compared with."""
    return CAUSAL_COUNTERPARTS.get(stage, COUNTERPARTS[stage]) if causal else COUNTERPARTS[stage]


def applies_to(loaded: Loaded) -> bool:
    """Whether transformers' Bert classes are this model's counterpart."""
    return loaded.config.model_type == "bert"


def to_inputs(loaded: Loaded, encoding: Encoding) -> bert.Inputs:
    """The sentence as a batch of one, unpadded, in the model's own order and under its own attention.

    Raises:
        ValueError: the model has no vector for one of its ids or segment ids.
    """
    check_ids(loaded.config, encoding.input_ids)
    check_segments(loaded.config, encoding.token_type_ids)
    order = reading_order(loaded.config, len(encoding))
    own = slice(None) if order is None else torch.from_numpy(order)
    ids, segments = (torch.tensor(row)[own][None] for row in (encoding.input_ids, encoding.token_type_ids))
    device = loaded.model.device
    return bert.Inputs(
        ids.to(device), segments.to(device),
        torch.ones_like(ids, dtype=torch.bool).to(device), torch.tensor([loaded.config.is_decoder]).to(device),
    )


@torch.no_grad()
def compare_stages(loaded: Loaded, encoding: Encoding, index: int = 0) -> tuple[StageRun, ...]:
    """Run every stage that the checkpoint has, ours and theirs.

    Ours are the lines as they can be read: without the packed kernels, which
    add up in another order (see `kernel_difference`).

    Args:
        loaded: a model of the BERT family.
        encoding: the sentence.
        index: layer whose attention and feed-forward are compared, 0-based.

    Raises:
        ValueError: the model's blocks are not transformers' Bert classes, there
            is no such layer, or no vector for an id.
        Overflow: what the model computes is no number.
    """
    if not applies_to(loaded):
        raise ValueError(f"{loaded.name} is a {loaded.config.model_type}; the comparison here is with BERT's classes")
    if not 0 <= index < loaded.config.num_hidden_layers:
        raise ValueError(f"layer {index + 1} of {loaded.name}: it has {loaded.config.num_hidden_layers}")
    loaded = unpacked(loaded)
    chain = _run_chain(loaded, encoding, index)
    theirs = _Reference(loaded, index)
    return tuple(StageRun(stage, ours[0], other[0]) for stage, ours, other in _stages(loaded.model, chain, theirs))


@torch.no_grad()
def kernel_difference(loaded: Loaded, encoding: Encoding) -> float:
    """Largest difference of any last hidden state that the packed kernels make; 0 where none are used."""
    inputs = to_inputs(loaded, encoding)
    packed, plain = (bert.encode(one.model, inputs)[1] for one in (loaded, unpacked(loaded)))
    return float((packed - plain).abs().max())


def unpacked(loaded: Loaded) -> Loaded:
    """The same model with F.linear in every linear; who has it at the same time shares the plain matrices."""
    return replace(loaded, model=replace(loaded.model, weights=plain(loaded.model.weights), fast_linear={}))


def _run_chain(loaded: Loaded, encoding: Encoding, index: int) -> _Chain:
    inputs, states = to_inputs(loaded, encoding), []
    embeddings, hidden = bert.encode(loaded.model, inputs, lambda _, out: states.append(out))
    check_finite(loaded.name, {"hidden_states": hidden.cpu().numpy()})
    before = embeddings.output if index == 0 else states[index - 1].hidden
    return _Chain(inputs, embeddings, before, states[index], hidden)


def _stages(model: bert.Model, chain: _Chain, theirs: _Reference) -> Iterator[tuple[str, Tensor, Tensor]]:
    """(stage, ours, theirs) for every stage there is."""
    names, layer = model.names, chain.layer
    norm = names.of_layer(theirs.index, "attention_norm")
    summed = layer.context + chain.before  # any (1, T, D) that is not yet normalised
    yield "embeddings", chain.embeddings.output, theirs.embeddings(chain.inputs)
    yield "attention", layer.attention_output, theirs.attention(chain.before, chain.inputs)
    yield "feed_forward", layer.hidden, theirs.feed_forward(layer.attention_output)
    yield "layer_norm", bert.layer_norm(model, summed, norm), theirs.layer_norm(summed)
    if "pooler" in model.heads:
        pooled = bert.pooled_output(model, chain.hidden)
        yield "pooler", pooled, theirs.pooler(chain.hidden)
        if "nsp" in model.heads:
            yield "nsp", bert.nsp_logits(model, pooled), theirs.nsp(pooled)
    if model.heads & {"mlm", "lm"}:
        yield "mlm", bert.mlm_logits(model, chain.hidden), theirs.mlm(chain.hidden)
        batch = _all_chosen(model, chain.inputs)
        read = hidden_at(model, batch.inputs, torch.arange(chain.hidden.shape[1], device=chain.hidden.device)[None])
        yield "losses", _our_losses(model, batch), theirs.losses(model, batch, read)


def has_next_term(model: bert.Model, token_type_ids: Tensor) -> bool:
    """Whether the loss has a next-sentence term: it takes the head and a second sentence."""
    return "nsp" in model.heads and bool((token_type_ids == 1).any())


def _all_chosen(model: bert.Model, inputs: bert.Inputs) -> objectives.Batch:
    """The sentence as a training batch of the model's own objective.

    mlm: every token chosen and kept, a second sentence labelled IsNext. Causal:
    every token predicted from the row before it, [CLS] from nothing.
    """
    ids = inputs.input_ids
    label = IS_NEXT if has_next_term(model, inputs.token_type_ids) else objectives.IGNORED
    targets = ids[0, 1:] if "lm" in model.heads else ids[0]
    rows = torch.arange(len(targets), device=ids.device)[None]
    return objectives.Batch(inputs, rows, torch.ones_like(rows, dtype=torch.bool), targets, ids.new_tensor([label]))


def _our_losses(model: bert.Model, batch: objectives.Batch) -> Tensor:
    """Loss a token, and with a labelled pair next-sentence loss and sum; (1, 1) or (1, 3), nats."""
    found = objectives.losses(model, batch)
    token = found.token / found.tokens
    if not found.pairs:
        return token.reshape(1, 1)
    following = found.nsp / found.pairs
    return torch.stack([token, following, token + following])[None]


class _Reference:
    """transformers' modules around our tensors, for one layer."""

    def __init__(self, loaded: Loaded, index: int):
        from transformers import BertConfig as TheirConfig

        known = {k: v for k, v in loaded.config.to_dict().items() if k not in ("architectures", "id2label", "label2id")}
        self.config = TheirConfig(**known, attn_implementation="eager")
        self.weights, self.index = loaded.model.weights, index
        self.layer_path = f"bert.encoder.layer.{index}"
        self.classes = importlib.import_module(_MODULE)

    def _module(self, name: str, prefix: str, **extra: Any) -> Callable[..., Any]:
        """A module of class `name` whose parameters are our tensors below `prefix`."""
        with torch.device("meta"):
            module = getattr(self.classes, name)(self.config)
        own = {n.removeprefix(prefix): t for n, t in self.weights.items() if n.startswith(prefix)}
        wanted = module.state_dict().keys()
        module.load_state_dict({n: t for n, t in {**own, **extra}.items() if n in wanted}, strict=True, assign=True)
        return module.eval()

    def embeddings(self, inputs: bert.Inputs) -> Tensor:
        places = torch.arange(inputs.input_ids.shape[1], device=inputs.input_ids.device)[None]
        return self._module("BertEmbeddings", "bert.embeddings.")(
            input_ids=inputs.input_ids, token_type_ids=inputs.token_type_ids, position_ids=places)

    def attention(self, hidden: Tensor, inputs: bert.Inputs) -> Tensor:
        length = hidden.shape[1]
        mask = None
        if bool(inputs.causal.any()):
            blocked = torch.ones(length, length, dtype=torch.bool, device=hidden.device).triu(1)
            mask = hidden.new_zeros(1, 1, length, length).masked_fill(blocked, torch.finfo(hidden.dtype).min)
        mixed, _ = self._module("BertSelfAttention", f"{self.layer_path}.attention.self.")(hidden, mask)
        return self._module("BertSelfOutput", f"{self.layer_path}.attention.output.")(mixed, hidden)

    def feed_forward(self, attended: Tensor) -> Tensor:
        wide = self._module("BertIntermediate", f"{self.layer_path}.intermediate.")(attended)
        return self._module("BertOutput", f"{self.layer_path}.output.")(wide, attended)

    def layer_norm(self, summed: Tensor) -> Tensor:
        return self._module("BertSelfOutput", f"{self.layer_path}.attention.output.").LayerNorm(summed)

    def pooler(self, hidden: Tensor) -> Tensor:
        return self._module("BertPooler", "bert.pooler.")(hidden)

    def nsp(self, pooled: Tensor) -> Tensor:
        return self._module("BertOnlyNSPHead", "cls.")(pooled)

    def mlm(self, hidden: Tensor) -> Tensor:
        return self._module("BertLMPredictionHead", "cls.predictions.", **self._decoder())(hidden)

    def _decoder(self, path: str = "") -> dict[str, Tensor]:
        """The vocabulary projection below `path`: its own matrix, or the embedding table."""
        table = self.weights.get("cls.predictions.decoder.weight")
        table = self.weights["bert.embeddings.word_embeddings.weight"] if table is None else table
        return {f"{path}decoder.weight": table, f"{path}decoder.bias": self.weights["cls.predictions.bias"]}

    def losses(self, model: bert.Model, batch: objectives.Batch, hidden: Tensor) -> Tensor:
        """The same terms as `_our_losses`; a pair's sum and a causal model's loss are transformers' own `loss`.

        Args:
            hidden: (1, T, D), our last hidden states.
        """
        term, ids = nn.CrossEntropyLoss(), batch.inputs.input_ids
        if "lm" in model.heads:
            whole = self._module("BertLMHeadModel", "", **self._decoder("cls.predictions."))
            outputs = importlib.import_module("transformers.modeling_outputs")
            given = outputs.BaseModelOutputWithPoolingAndCrossAttentions(hidden)
            whole.bert.forward = lambda *_, **__: given
            return whole(ids, labels=ids).loss.reshape(1, 1)
        if batch.labels.item() == objectives.IGNORED:
            return term(self.mlm(hidden)[0], ids[0]).reshape(1, 1)
        whole = self._module("BertForPreTraining", "", **self._decoder("cls.predictions."))
        outputs = importlib.import_module("transformers.modeling_outputs")
        given = outputs.BaseModelOutputWithPooling(hidden, bert.pooled_output(model, hidden))
        whole.bert.forward = lambda *_, **__: given  # its encoder is compared above: here its heads and its loss
        made = whole(ids, labels=ids, next_sentence_label=batch.labels)
        token = term(made.prediction_logits[0], ids[0])
        following = term(made.seq_relationship_logits, batch.labels)
        return torch.stack([token, following, made.loss])[None]
