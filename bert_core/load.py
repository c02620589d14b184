"""Names to models: the only file that reads weights from disk or network.

Weights come from safetensors only, no pickle and no remote code. Loading is
strict: every tensor of the declared architecture must be there with its shape;
a head that the checkpoint lacks is absent, never initialised.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from bert_core.config import BertConfig
from bert_core.layout import LAYER_ROLES, LAYOUTS, Layout, layout_for
from bert_core.model import Model
from bert_core.tokenizer import Tokenizer, read_tokenizer

SHIPPED = Path(__file__).resolve().parent.parent / "assets" / "models"
HUB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?")
#: Buffers of older checkpoints that are no parameters.
_BUFFERS = re.compile(r"(.*\.)?(position_ids|token_type_ids)$")


class LoadError(ValueError):
    """A model can't be loaded; the message is one line for the user."""


@dataclass(frozen=True)
class ModelInfo:
    """What the picker and `models` say about a model."""

    name: str
    architecture: str
    tasks: tuple[str, ...]
    parameters: int
    shipped: bool


@dataclass(frozen=True)
class Loaded:
    """A model ready to run, with its tokenizer."""

    name: str
    model: Model
    tokenizer: Tokenizer
    info: ModelInfo

    @property
    def config(self) -> BertConfig:
        return self.model.config


def shipped_names() -> tuple[str, ...]:
    """Names of the models in assets/models, the twins first."""
    if not SHIPPED.is_dir():
        return ()
    found = sorted(p.parent.name for p in SHIPPED.glob("*/config.json"))
    first = [n for n in ("twin-bert", "twin-gpt", "twin-rtl") if n in found]
    return tuple(first + [n for n in found if n not in first])


def load_model(name: str, dtype: torch.dtype = torch.float32, device: str = "cpu") -> Loaded:
    """Load a shipped model, a folder or a hub id.

    Args:
        name: 'twin-bert', a path to a folder, or 'owner/model'.
        dtype: of the weights; float64 for parity, float32 in the app.

    Raises:
        LoadError: one line that says what is wrong and what to do.
    """
    folder = locate(name)
    config = read_config(folder)
    tensors = read_weights(folder, config)
    model = build(config, tensors, dtype, device)
    has_segments = model.names.segment is not None and config.type_vocab_size > 1
    try:
        tokenizer = read_tokenizer(_tokenizer_folder(folder), config.max_tokens, has_segments)
    except ValueError as error:
        raise LoadError(str(error)) from None
    return Loaded(name, model, tokenizer, describe(name, model))


def locate(name: str) -> Path:
    """The folder of a model's files."""
    if not name or "\0" in name:
        raise LoadError("no model name given")
    if name in shipped_names():
        return SHIPPED / name
    path = Path(name).expanduser()
    if path.is_dir():
        if not (path / "config.json").exists():
            raise LoadError(f"{name}: the folder has no config.json")
        return path
    if not HUB_ID.fullmatch(name):
        raise LoadError(f"{name!r} is no shipped model, no folder and no hub id (owner/model)")
    from bert_core.hub import download

    return download(name)


def _tokenizer_folder(folder: Path) -> Path:
    """Shipped models share one tokenizer that stands beside them."""
    return folder if (folder / "tokenizer.json").exists() or folder.parent != SHIPPED else SHIPPED


def read_config(folder: Path) -> BertConfig:
    """Parse config.json; LoadError with the file's name if it can't be."""
    try:
        return BertConfig.from_dict(json.loads((folder / "config.json").read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise LoadError(f"{folder.name}: config.json can't be read ({error})") from None
    except (ValueError, TypeError) as error:
        raise LoadError(f"{folder.name}: {error}") from None


def read_weights(folder: Path, config: BertConfig) -> dict[str, Tensor]:
    """All tensors of a folder; low-rank updates are merged into their base."""
    tensors = read_tensors(folder)
    base = config.extra.get("base_model")
    if base is None:
        return tensors
    if base not in shipped_names():
        raise LoadError(f"{folder.name}: its base model {base!r} is not shipped")
    from bert_core.training.lora import merge

    return merge(read_tensors(SHIPPED / base), tensors, config)


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """Name -> tensor of model.safetensors, in one file or sharded.

    Raises:
        LoadError: there is none (only pickles, say), or it is damaged.
    """
    index = folder / "model.safetensors.index.json"
    if index.exists():
        names = json.loads(index.read_text(encoding="utf-8")).get("weight_map", {})
        files = sorted({folder / Path(str(v)).name for v in names.values()})
    else:
        files = [folder / "model.safetensors"]
    tensors: dict[str, Tensor] = {}
    for file in files:
        if not file.exists():
            pickled = any(folder.glob("*.bin")) or any(folder.glob("*.pt")) or any(folder.glob("*.ckpt"))
            raise LoadError(
                f"{folder.name}: only pickled weights, which can run code; save it as safetensors first"
                if pickled and file.name == "model.safetensors" else f"{folder.name}: {file.name} is missing"
            )
        try:
            with safe_open(file, framework="pt") as opened:
                for name in opened.keys():  # noqa: SIM118 - not a mapping
                    tensors[name] = opened.get_tensor(name)
        except (SafetensorError, OSError) as error:
            raise LoadError(f"{folder.name}: {file.name} is damaged or no safetensors file ({error})") from None
    return tensors


def canonical_names(tensors: dict[str, Tensor], layout: Layout) -> dict[str, Tensor]:
    """Names as the current checkpoints spell them.

    Older ones say gamma and beta in LayerNorms, and encoders saved without
    heads lack the family's prefix.
    """
    renamed: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if _BUFFERS.match(name):
            continue
        name = re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", name)
        name = re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", name)
        if name.startswith(("embeddings.", "encoder.", "pooler.", "transformer.", "embeddings_project.")):
            name = layout.prefix + name
        if name == "cls.predictions.decoder.bias":
            name = layout.mlm_bias
        renamed[name] = tensor
    return renamed


def encoder_shapes(config: BertConfig) -> dict[str, tuple[int, ...]]:
    """Name -> shape of every tensor of the bare encoder, pooler left out."""
    names, d, e, i = layout_for(config), config.hidden_size, config.table_width, config.intermediate_size
    shapes: dict[str, tuple[int, ...]] = {
        f"{names.word}.weight": (config.vocab_size, e),
        f"{names.position}.weight": (config.max_position_embeddings, e),
        f"{names.embedding_norm}.weight": (e,),
        f"{names.embedding_norm}.bias": (e,),
    }
    if names.segment is not None:
        shapes[f"{names.segment}.weight"] = (config.type_vocab_size, e)
    if names.projection is not None and (e != d or config.model_type == "albert"):
        shapes |= _linear(names.projection, d, e)
    widths = {"intermediate": (i, d), "output_dense": (d, i)}
    for index in range(1 if names.shared_layers else config.num_hidden_layers):
        for role in LAYER_ROLES:
            name = names.of_layer(index, role)
            if role.endswith("norm"):
                shapes |= {f"{name}.weight": (d,), f"{name}.bias": (d,)}
            else:
                shapes |= _linear(name, *widths.get(role, (d, d)))
    return shapes


def head_shapes(config: BertConfig) -> dict[str, dict[str, tuple[int, ...]]]:
    """Head -> its tensors' shapes, for every head this family can have."""
    names, d, e = layout_for(config), config.hidden_size, config.table_width
    language = {
        **_linear(names.mlm_dense, e, d),
        f"{names.mlm_norm}.weight": (e,),
        f"{names.mlm_norm}.bias": (e,),
        names.mlm_bias: (config.vocab_size,),
    }
    heads = {"lm" if config.is_decoder else "mlm": language}
    if names.pooler is not None:
        heads["pooler"] = _linear(names.pooler, d, d)
    if names.nsp is not None:
        heads["nsp"] = _linear(names.nsp, 2, d)
    declared = " ".join(config.architectures)
    if "ForTokenClassification" in declared:
        heads["token_classification"] = _linear("classifier", config.num_labels, d)
    elif "ForSequenceClassification" in declared:
        heads["classification"] = _linear(names.classifier, config.num_labels, d)
        if names.classifier_dense is not None:
            heads["classification"] |= _linear(names.classifier_dense, d, d)
    if "ForQuestionAnswering" in declared:
        heads["question_answering"] = _linear("qa_outputs", 2, d)
    return heads


def _linear(name: str, out: int, width: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (out, width), f"{name}.bias": (out,)}


def build(config: BertConfig, tensors: dict[str, Tensor], dtype: torch.dtype, device: str) -> Model:
    """Check every tensor and make the Model.

    Raises:
        LoadError: a tensor is missing, has another shape, or is unknown.
    """
    if config.model_type not in LAYOUTS:
        raise LoadError(f"model_type {config.model_type!r} has another block than BERT")
    tensors = canonical_names(tensors, layout_for(config))
    wanted = encoder_shapes(config)
    heads = set()
    for head, shapes in head_shapes(config).items():
        if shapes.keys() <= tensors.keys():
            heads.add(head)
            wanted |= shapes
        elif any(name in tensors for name in shapes):
            missing = sorted(shapes.keys() - tensors.keys())
            raise LoadError(f"the {head} head is incomplete: {missing[0]} is missing")
    decoder = layout_for(config).mlm_bias.removesuffix("bias") + "decoder.weight"
    if decoder in tensors:
        wanted[decoder] = (config.vocab_size, config.table_width)
    _check(tensors, wanted)
    weights = {n: tensors[n].to(device=device, dtype=dtype).contiguous() for n in wanted}
    if decoder in weights and torch.equal(weights[decoder], weights[f"{layout_for(config).word}.weight"]):
        del weights[decoder]
    return Model(config, weights, frozenset(heads))


def _check(tensors: dict[str, Tensor], wanted: dict[str, tuple[int, ...]]) -> None:
    for name, shape in wanted.items():
        if name not in tensors:
            raise LoadError(f"the weights lack {name}; is this the checkpoint that config.json describes?")
        if tuple(tensors[name].shape) != shape:
            raise LoadError(f"{name} has shape {tuple(tensors[name].shape)}; config.json says {shape}")
    unknown = sorted(tensors.keys() - wanted.keys())
    if unknown:
        raise LoadError(f"the weights hold {unknown[0]}, which the declared architecture does not have")


_TASKS = {
    "mlm": "fill-mask", "lm": "next", "nsp": "nsp", "classification": "classify",
    "token_classification": "ner", "question_answering": "answer",
}


def describe(name: str, model: Model) -> ModelInfo:
    """Name, architecture, tasks (by head) and number of parameters."""
    architecture = model.config.architectures[0] if model.config.architectures else model.config.model_type
    tasks = tuple(_TASKS[head] for head in _TASKS if head in model.heads)
    return ModelInfo(name, architecture, tasks, count_parameters(model), name in shipped_names())


def count_parameters(model: Model) -> int:
    """Numbers in the checkpoint, a tied decoder counted once."""
    return sum(math.prod(t.shape) for t in model.weights.values())


def with_dtype(loaded: Loaded, dtype: torch.dtype) -> Loaded:
    """The same model in another precision."""
    weights = {n: t.to(dtype) for n, t in loaded.model.weights.items()}
    return replace(loaded, model=replace(loaded.model, weights=weights, fast_linear={}))


def models() -> list[dict[str, Any]]:
    """What `python -m bert_core models` prints, read from the files' headers."""
    return [describe_folder(SHIPPED / name).__dict__ | {"shipped": True} for name in shipped_names()]


def describe_folder(folder: Path) -> ModelInfo:
    """ModelInfo of a folder."""
    config = read_config(folder)
    return describe(folder.name, build(config, read_weights(folder, config), torch.float32, "cpu"))
