"""Where a run starts: a published or shipped encoder, or random numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from bert_core.config import BertConfig
from bert_core.layout import layout_for
from bert_core.load import hold_the_same, locate, parse_config, stored_tensors
from bert_core.loading import shared
from bert_core.loading.check import settle_ties
from bert_core.loading.files import read_json, read_tensors
from bert_core.shapes import encoder_shapes, head_shapes


def shapes(config: BertConfig, objective: str) -> dict[str, tuple[int, ...]]:
    """Name -> shape of every parameter that the objective trains."""
    heads = ("mlm", "pooler", "nsp") if objective == "mlm" else ("lm",)
    found = encoder_shapes(config)
    for head in heads:
        found |= head_shapes(config, head)
    return found


def random_weights(wanted: Mapping[str, tuple[int, ...]], std: float, seed: int) -> dict[str, Tensor]:
    """Normal matrices, zero biases, LayerNorms that change nothing (Devlin et al. 2018, A.2)."""
    generator = torch.Generator().manual_seed(seed)
    weights = {}
    for name, shape in sorted(wanted.items()):
        if "LayerNorm.weight" in name:
            weights[name] = torch.ones(shape)
        elif name.endswith("bias"):
            weights[name] = torch.zeros(shape)
        else:
            weights[name] = torch.randn(shape, generator=generator) * std
    return weights


def read_start(name: str) -> tuple[BertConfig, dict[str, Tensor], Path]:
    """Config, float32 weights and folder of the model that a run starts from.

    Args:
        name: a folder, a shipped model or a hub id.

    Raises:
        ValueError: it can't be read, has another block than BERT's, or a decoder
            that is not its word table: the recipe trains one that is.
    """
    folder = locate(name)
    config = parse_config(read_json(folder / "config.json"))
    if config.model_type != "bert":
        raise ValueError(f"--init {name!r} is a {config.model_type!r}; the recipe trains BERT's block")
    stored, tied = settle_ties(stored_tensors(folder, config), config, hold_the_same)
    if not tied and layout_for(config).decoder in stored:
        raise ValueError(f"--init {name!r} has a decoder of its own beside its word table; the recipe trains one that "
                         "is the word table")
    config = replace(config, tie_word_embeddings=True)
    weights = shared.read_merged(stored, list(shared.visible(stored)), shared.low_rank_scale(config))
    return config, {n: w.float().contiguous() for n, w in weights.items() if w.is_floating_point()}, folder


def updates_of(name: str, base: str, wanted: BertConfig) -> dict[str, Tensor]:
    """What a fine-tuned model keeps of its own beside its shipped base: factors, biases, LayerNorms and head, float32.

    Raises:
        ValueError: it can't be read, does not stand on `base`, or learned another task than `wanted` says.
    """
    folder = locate(name)
    config = parse_config(read_json(folder / "config.json"))
    if config.extra.get("shared_from") != base:
        raise ValueError(f"--warm-start {name!r} is no low-rank update of {base}; only one of those can go on")
    if (config.architectures, config.id2label) != (wanted.architectures, wanted.id2label):
        raise ValueError(f"--warm-start {name!r} learned another task; give its --task, or a model of this one")
    stored = stored_tensors(folder, config)
    own = [tensor for tensor, place in stored.items() if place.file.parent == folder]
    return {tensor: value.float() for tensor, value in read_tensors(stored, own).items()}


def turned_round(config: BertConfig, objective: str) -> str:
    """What to say of a causal start that is to read in another way from now on; '' where it goes on as it did."""
    was = {"right-to-left": "rtl"}.get(config.reading_order, "clm") if config.is_decoder else objective
    return "" if was == objective else f"was trained with --objective {was} and starts anew with {objective}"


def start_weights(
    config: BertConfig, found: Mapping[str, Tensor], objective: str, bias: Tensor, seed: int
) -> tuple[dict[str, Tensor], list[str]]:
    """Weights to train: what the start has, random heads where it has none.

    Args:
        found: the start's weights, empty from scratch.
        bias: (V,) log unigram frequencies; the decoder's bias where the start
            has none.

    Returns:
        The weights, and the names that begin from random numbers.

    Raises:
        ValueError: the start lacks a tensor of the encoder, or one has another
            shape than the config says.
    """
    lacking = sorted(encoder_shapes(config).keys() - found.keys()) if found else []
    if lacking:
        raise ValueError(f"--init: the weights lack {lacking[0]} ({len(lacking)} of the encoder's tensors in all)")
    wanted = shapes(config, objective)
    weights = random_weights(wanted, config.initializer_range, seed)
    weights["cls.predictions.bias"] = bias.clone()
    fresh = [name for name in wanted if name not in found]
    for name in wanted.keys() & found.keys():
        if tuple(found[name].shape) != wanted[name]:
            raise ValueError(f"--init: {name} has shape {tuple(found[name].shape)}, the config says {wanted[name]}")
        weights[name] = found[name].clone()
    return weights, sorted(fresh)
