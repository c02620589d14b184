"""The strict check: which tensors a config declares, and whether a checkpoint holds just them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from bert_core.config import BertConfig
from bert_core.layout import LAYOUTS, layout_for
from bert_core.loading.errors import LoadError
from bert_core.shapes import TOKEN_HEADS, Shapes, encoder_shapes, head_shapes, pooled_heads, possible_heads

T = TypeVar("T")

#: Buffers of older checkpoints that are no parameters.
_BUFFERS = re.compile(r"(.*\.)?(position_ids|token_type_ids)$")
#: First names of an encoder that was saved without its family's prefix.
_BARE = ("embeddings.", "encoder.", "pooler.", "transformer.", "embeddings_project.")
#: Heads of published checkpoints that the explorer has no use for, and leaves on disk.
_UNUSED_HEADS = ("discriminator_predictions.", "sop_classifier.", "sequence_summary.")
#: config.json settings under which a block of these families is no longer BERT's.
_OTHER_BLOCK = {
    "position_embedding_type": ("absolute",), "num_hidden_groups": (1,), "inner_group_num": (1,),
    "add_cross_attention": (False,),
}


@dataclass(frozen=True)
class Plan:
    """What to read from a checkpoint.

    Attributes:
        shapes: name -> shape of every tensor that the model will have.
        heads: the heads that the checkpoint really has.
    """

    shapes: Shapes
    heads: frozenset[str]


def is_ours(config: BertConfig) -> bool:
    """Whether this config's block is BERT's, so that our own encoder runs it."""
    same = all(config.extra.get(key) in (None, *values) for key, values in _OTHER_BLOCK.items())
    return config.model_type in LAYOUTS and same


def canonical_names(tensors: Mapping[str, T], config: BertConfig) -> dict[str, T]:
    """Names as the current checkpoints spell them.

    Older ones say gamma and beta in LayerNorms, encoders saved without heads
    lack the family's prefix, and a decoder's bias may stand under either of
    two names: of two biases the decoder's own counts, as in transformers.

    Raises:
        LoadError: two names are one in the current spelling.
    """
    layout = layout_for(config)
    decoder_bias = layout.decoder.removesuffix("weight") + "bias"
    renamed: dict[str, T] = {}
    for name, tensor in tensors.items():
        if _BUFFERS.match(name) or name.startswith(_UNUSED_HEADS):
            continue
        current = re.sub(r"\.gamma$", ".weight", re.sub(r"\.beta$", ".bias", name))
        current = layout.prefix + current if current.startswith(_BARE) else current
        if current in renamed:
            raise LoadError(f"the weights hold {current} twice, in an older spelling too")
        renamed[current] = tensor
    if decoder_bias in renamed:
        renamed[layout.mlm_bias] = renamed.pop(decoder_bias)
    return renamed


def settle_ties(tensors: dict[str, T], config: BertConfig, same: Callable[[T, T], bool]) -> tuple[dict[str, T], bool]:
    """What a config that ties decoder and word table means for a file that holds the decoder, as in transformers.

    The decoder alone is both of them; beside a word table that differs it is one of its own.

    Args:
        tensors: canonical name -> tensor, or its place.
        same: whether two of them hold the same numbers.

    Returns:
        The tensors, the word table among them, and whether the two are really one.
    """
    layout = layout_for(config)
    word, own = f"{layout.word}.weight", layout.decoder
    if not config.tie_word_embeddings or own not in tensors:
        return tensors, config.tie_word_embeddings
    if word not in tensors:
        return {word if name == own else name: tensor for name, tensor in tensors.items()}, True
    return tensors, same(tensors[word], tensors[own])


def plan(config: BertConfig, found: Mapping[str, tuple[int, ...]]) -> Plan:
    """Check the tensors of a checkpoint against its config.

    A pooler beside a head that reads every token is no part of the model, as
    in transformers: nothing trained it for what the encoder has become.

    Args:
        found: canonical name -> shape of every tensor in the checkpoint.

    Raises:
        LoadError: a tensor is missing, has another shape, or is unknown; a head
            lacks the pooler that it reads, or is one for several texts at once.
    """
    for name in config.architectures:
        if name.endswith("ForMultipleChoice"):
            raise LoadError(f"{name} chooses among several texts at once; multiple choice is not supported here")
    layout, unread = layout_for(config), set()
    wanted, heads = encoder_shapes(config), set()
    for head in possible_heads(config):
        shapes = head_shapes(config, head)
        if shapes.keys() <= found.keys():
            heads.add(head)
            wanted |= shapes
        elif any(name in found for name in shapes):
            missing = sorted(shapes.keys() - found.keys())
            raise LoadError(f"the {head} head is incomplete: {missing[0]} is missing")
    on_pooler = sorted(heads & pooled_heads(config))
    if on_pooler and "pooler" not in heads:
        raise LoadError(f"the {on_pooler[0]} head reads the pooler's output, and the weights have no pooler: "
                        f"{layout.pooler}.weight is missing")
    if "pooler" in heads and heads & TOKEN_HEADS and not on_pooler:  # left from the base that the task was tuned on
        heads.remove("pooler")
        unread = head_shapes(config, "pooler").keys()
        wanted = {name: shape for name, shape in wanted.items() if name not in unread}
    if heads & {"mlm", "lm"} and not config.tie_word_embeddings:
        wanted[layout.decoder] = (config.vocab_size, config.table_width)
    _compare(found, wanted, ignored={layout.decoder, *unread})
    return Plan(wanted, frozenset(heads))


def _compare(found: Mapping[str, tuple[int, ...]], wanted: Shapes, ignored: set[str]) -> None:
    for name, shape in wanted.items():
        if name not in found:
            raise LoadError(f"the weights lack {name}; is this the checkpoint that config.json describes?")
        if found[name] != shape:
            raise LoadError(f"{name} has shape {found[name]}; config.json says {shape}")
    unknown = sorted(found.keys() - wanted.keys() - ignored)
    if unknown:
        raise LoadError(f"the weights hold {unknown[0]}, which the declared architecture does not have")
