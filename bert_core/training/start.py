"""Where a run starts: a published or shipped encoder, or random numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from bert_core.config import BertConfig

LEGACY = {"gamma": "weight", "beta": "bias"}


def shapes(config: BertConfig, objective: str) -> dict[str, tuple[int, ...]]:
    """Name -> shape of every parameter that the objective trains, in BERT's names."""
    d, i, v = config.hidden_size, config.intermediate_size, config.vocab_size
    found: dict[str, tuple[int, ...]] = {
        "bert.embeddings.word_embeddings.weight": (v, d),
        "bert.embeddings.position_embeddings.weight": (config.max_position_embeddings, d),
        "bert.embeddings.token_type_embeddings.weight": (config.type_vocab_size, d),
        **_pair("bert.embeddings.LayerNorm", d),
    }
    for n in range(config.num_hidden_layers):
        path = f"bert.encoder.layer.{n}"
        for part in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            found |= _pair(f"{path}.{part}", d, d)
        found |= _pair(f"{path}.attention.output.LayerNorm", d)
        found |= _pair(f"{path}.intermediate.dense", i, d) | _pair(f"{path}.output.dense", d, i)
        found |= _pair(f"{path}.output.LayerNorm", d)
    found |= _pair("cls.predictions.transform.dense", d, d) | _pair("cls.predictions.transform.LayerNorm", d)
    found["cls.predictions.bias"] = (v,)
    if objective == "mlm":
        found |= _pair("bert.pooler.dense", d, d) | _pair("cls.seq_relationship", 2, d)
    return found


def _pair(name: str, out: int, width: int | None = None) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (out,) if width is None else (out, width), f"{name}.bias": (out,)}


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


def read_encoder(folder: str | Path) -> tuple[BertConfig, dict[str, Tensor]]:
    """Config and float32 weights of a BERT folder, under today's names.

    Raises:
        ValueError: no such folder, no safetensors, or another block than BERT's.
    """
    folder = Path(folder)
    if not (folder / "config.json").is_file() or not (folder / "model.safetensors").is_file():
        raise ValueError(f"--init {str(folder)!r} needs config.json and model.safetensors")
    values = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config = BertConfig.from_dict({k: v for k, v in values.items() if not k.startswith("_")})
    if config.model_type != "bert":
        raise ValueError(f"--init {str(folder)!r} is a {config.model_type!r}; the recipe trains BERT's block")
    weights = {}
    for name, tensor in load_file(folder / "model.safetensors").items():
        stem, _, last = name.rpartition(".")
        name = f"{stem}.{LEGACY.get(last, last)}"
        if not name.startswith(("bert.", "cls.", "classifier", "qa_outputs")):
            name = f"bert.{name}"
        if tensor.is_floating_point():
            weights[name] = tensor.float().contiguous()
    return config, weights


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
        ValueError: a tensor of the start has another shape than the config says.
    """
    wanted = shapes(config, objective)
    weights = random_weights(wanted, config.initializer_range, seed)
    weights["cls.predictions.bias"] = bias.clone()
    fresh = [name for name in wanted if name not in found]
    for name in wanted.keys() & found.keys():
        if tuple(found[name].shape) != wanted[name]:
            raise ValueError(f"--init: {name} has shape {tuple(found[name].shape)}, the config says {wanted[name]}")
        weights[name] = found[name].clone()
    return weights, sorted(fresh)
