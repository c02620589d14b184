"""Names to models: the way in to everything that reads weights from disk or network.

The reading itself is in loading/files.py (disk) and hub.py (network). Weights
come from safetensors only, no pickle and no remote code. Loading is strict:
every tensor of the declared architecture must be there with its shape; a head
that the checkpoint lacks is absent, never initialised.
"""

from __future__ import annotations

import functools
import os
import re
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from bert_core.config import ACTIVATIONS, BertConfig
from bert_core.layout import LAYOUTS
from bert_core.loading import shared
from bert_core.loading.check import canonical_names, is_ours, plan, settle_ties
from bert_core.loading.describe import ModelInfo, count_parameters, describe, gaps
from bert_core.loading.errors import LoadError
from bert_core.loading.files import Stored, check_entries, read_headers, read_json, read_tensors
from bert_core.loading.word_pieces import is_word_piece
from bert_core.memory import ran_out
from bert_core.model import Model
from bert_core.on_demand import OnDemand
from bert_core.tokenizer import Tokenizer, read_tokenizer

if TYPE_CHECKING:
    from bert_core.adapters.foreign import ForeignModel

__all__ = ["SHIPPED", "LoadError", "Loaded", "ModelInfo", "build", "describe_model", "load_model", "locate", "models",
           "shipped_names", "with_dtype"]

SHIPPED = Path(__file__).resolve().parent.parent / "assets" / "models"
#: Longest name that is looked up on disk, in characters.
MAX_NAME = 255
#: Tensors of shipped models that are in use: a task stands on those of its base.
_IN_USE: weakref.WeakValueDictionary[tuple[object, ...], Tensor] = weakref.WeakValueDictionary()
#: As huggingface_hub allows them (validate_repo_id), and no name that starts with '_'.
HUB_ID = re.compile(r"(?=.{1,96}\Z)(?!.*(?:--|\.\.))(?!.*\.git\Z)"
                    r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?(?:/[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?)?")


@dataclass(frozen=True)
class Loaded:
    """A model ready to run, with its tokenizer.

    Attributes:
        gaps: Trace array -> why this model has none, one line each.
    """

    name: str
    model: Model | ForeignModel
    tokenizer: Tokenizer
    info: ModelInfo
    gaps: Mapping[str, str] = field(default_factory=dict)

    @property
    def config(self) -> BertConfig:
        return self.model.config

    @property
    def averages_tokens(self) -> bool:
        """Whether its sentence classifier reads the mean of all last vectors, not one token's."""
        return not isinstance(self.model, Model) and self.model.averages_tokens


def shipped_names() -> tuple[str, ...]:
    """Names of the models in assets/models, the twins first."""
    return _names_in(SHIPPED, SHIPPED.stat().st_mtime_ns) if SHIPPED.is_dir() else ()


@functools.lru_cache(maxsize=4)
def _names_in(shelf: Path, changed: int) -> tuple[str, ...]:
    """Read once, and again when a model came or went: every run of a page asks for them, some of them often."""
    found = sorted(p.parent.name for p in shelf.glob("*/config.json"))
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
    try:
        check_entries(folder)
        values = read_json(folder / "config.json")
        if is_adapted(values):
            from bert_core.adapters.load import load_adapted

            return _adapted(name, load_adapted(folder, values, dtype, device))
        config = parse_config(values)
        model = read_model(folder, config, dtype, device)
        tokenizer = find_tokenizer(folder, config, has_segments=config.type_vocab_size > 1)
    except (ValueError, OSError) as error:  # OSError: a file that is a folder, may not be read, or can't have its name
        raise LoadError(f"{name}: {error}") from None
    except (MemoryError, RuntimeError) as error:
        if not ran_out(error):
            raise
        raise LoadError(f"{name}: there is not memory enough for it; choose a smaller model") from None
    return Loaded(name, model, tokenizer, describe_model(name, model), gaps(config, model.heads))


def _adapted(name: str, found: tuple[ForeignModel, Tokenizer]) -> Loaded:
    model, tokenizer = found
    info = describe(name, model.config, model.heads, model.parameters, shipped=False)
    return Loaded(name, model, tokenizer, info, model.gaps)


def locate(name: str) -> Path:
    """The folder of a model's files: shipped, anywhere on this disk, or of the hub, fetched if it was not before.

    Which folders the visitors of a server may name is decided before (ui/settings.py).
    """
    if not name:
        raise LoadError("no model name given")
    if not name.isprintable():
        raise LoadError(f"{name[:MAX_NAME]!r} is no model's name: it holds control characters")
    if name in shipped_names():
        return SHIPPED / name
    path = _existing_folder(name)
    if path is not None:
        if not os.path.exists(path / "config.json"):  # unlike Path.exists, False where it may not be looked for
            made = "; the model of that run is in its folder model" if (path / "model" / "config.json").exists() else ""
            raise LoadError(f"{name}: the folder has no config.json{made}")
        return path
    if not HUB_ID.fullmatch(name):
        raise LoadError(f"{name[:MAX_NAME]!r} is no shipped model, no folder and no hub id (owner/model)")
    if os.path.lexists(name):  # whoever named a file, or a link to nothing, means no model of the hub
        raise LoadError(f"{name} is no folder that can be read; a model is a folder with config.json, a tokenizer and "
                        "model.safetensors")
    from bert_core import hub

    return hub.cached(name) or hub.download(name)


def _existing_folder(name: str) -> Path | None:
    """The folder of this name, if there is one that can be looked at."""
    try:
        path = Path(name).expanduser()
        return path if len(name) <= MAX_NAME and path.is_dir() else None
    except (OSError, RuntimeError):  # no permission, or the home of a user who isn't there
        return None


def is_adapted(values: Mapping[str, Any]) -> bool:
    """Whether transformers must run this config.json, because its block is not BERT's.

    Raises:
        LoadError: it names its family by no word, or holds an absurd value.
    """
    if "model_type" not in values:
        return False
    family = values["model_type"]
    if not isinstance(family, str):
        raise LoadError(f"config: model_type is {family!r}; it must be a word")
    if family not in LAYOUTS:
        return True
    return not is_ours(parse_config(values))


def parse_config(values: Mapping[str, Any]) -> BertConfig:
    """config.json as a BertConfig; LoadError says what is wrong in it."""
    try:
        config = BertConfig.from_dict(values)
    except ValueError as error:
        raise LoadError(str(error)) from None
    if config.hidden_act not in ACTIVATIONS:
        raise LoadError(f"config: hidden_act {config.hidden_act!r} is unknown; known: {', '.join(ACTIVATIONS)}")
    return config


def find_tokenizer(folder: Path, config: BertConfig, has_segments: bool) -> Tokenizer:
    """The folder's own tokenizer; shipped models, and low-rank updates of them, share one that stands beside them."""
    updates = "shared_from" in config.extra and not (folder / "vocab.txt").exists()
    shares = updates or folder.resolve().parent == SHIPPED.resolve()
    if shares and not (folder / "tokenizer.json").exists():
        folder = SHIPPED
    if (folder / "tokenizer.json").exists() or ((folder / "vocab.txt").exists() and is_word_piece(folder)):
        tokenizer = read_tokenizer(folder, config.max_tokens, has_segments)
    else:
        from bert_core.adapters.tokenizers import read_other_tokenizer

        tokenizer = read_other_tokenizer(folder, config.max_tokens, has_segments)
    if tokenizer.largest_id >= config.vocab_size:
        raise LoadError(f"the tokenizer has id {tokenizer.largest_id}; the model knows {config.vocab_size} pieces")
    return tokenizer


def stored_tensors(folder: Path, config: BertConfig) -> dict[str, Stored]:
    """Canonical name -> place of every tensor, those of a shared base included."""
    own = canonical_names(read_headers(folder), config)
    base = config.extra.get("shared_from")
    if base is None:
        shared.check_factors(own)
        return own
    if base not in shipped_names():
        raise LoadError(f"its base model {base!r} is not shipped")
    of_base = canonical_names(read_headers(SHIPPED / base), config)
    return shared.combine(of_base, own, shared.prefixes(config))


def read_model(folder: Path, config: BertConfig, dtype: torch.dtype, device: str) -> Model:
    """Check a folder's headers against its config, then read what the model needs."""
    stored, tied = settle_ties(stored_tensors(folder, config), config, hold_the_same)
    config = replace(config, tie_word_embeddings=tied)
    wanted = plan(config, {name: place.shape for name, place in shared.visible(stored).items()})
    scale = shared.low_rank_scale(config)
    weights = _read_shared(stored, list(wanted.shapes), dtype, device)
    factors = {name: (out.to(device), into.to(device))
               for name, (out, into) in shared.read_factors(stored, list(weights)).items()}
    made = shared.updated(weights, factors, scale)
    return Model(config, OnDemand({**weights, **made}) if made else weights, wanted.heads)


def hold_the_same(one: Stored, other: Stored) -> bool:
    """Whether two places hold the same numbers."""
    read = read_tensors({"one": one, "other": other}, ["one", "other"])
    return _are_the_same(read["one"], read["other"])


def _are_the_same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and bool((one == other).all())


def _read_shared(stored: Mapping[str, Stored], names: list[str], dtype: torch.dtype, device: str) -> dict[str, Tensor]:
    """The tensors `names` as they are stored; those of shipped files that are in use already are the very same."""
    keys = {n: _shipped_key(stored[n], dtype, device) for n in names}
    in_use = {n: _IN_USE.get(key) for n, key in keys.items() if key is not None}
    read = read_tensors(stored, [n for n in names if in_use.get(n) is None])
    weights = {n: read[n].to(device=device, dtype=dtype).contiguous() if n in read else in_use[n] for n in names}
    _IN_USE.update({key: weights[n] for n, key in keys.items() if key is not None})
    return weights


def _shipped_key(place: Stored, dtype: torch.dtype, device: str) -> tuple[object, ...] | None:
    """What two loads of the same tensor have in common; None for files of others, which are read anew each time."""
    if not place.file.is_relative_to(SHIPPED):
        return None
    return (place.file, place.file.stat().st_mtime_ns, place.name, dtype, device)


def build(config: BertConfig, tensors: Mapping[str, Tensor], dtype: torch.dtype, device: str) -> Model:
    """The same check for tensors in memory.

    Raises:
        LoadError: a tensor is missing, has another shape, or is unknown.
    """
    if not is_ours(config):
        raise LoadError(f"model_type {config.model_type!r} has a different block from BERT's")
    tensors, tied = settle_ties(canonical_names(tensors, config), config, _are_the_same)
    config = replace(config, tie_word_embeddings=tied)
    wanted = plan(config, {name: tuple(tensor.shape) for name, tensor in tensors.items()})
    weights = {name: tensors[name].to(device=device, dtype=dtype).contiguous() for name in wanted.shapes}
    return Model(config, weights, wanted.heads)


def describe_model(name: str, model: Model) -> ModelInfo:
    """What the picker says about a model of our own encoder."""
    parameters = count_parameters({n: tuple(t.shape) for n, t in model.weights.items()})
    return describe(name, model.config, model.heads, parameters, name in shipped_names())


def with_dtype(loaded: Loaded, dtype: torch.dtype) -> Loaded:
    """The same model in another precision."""
    if not isinstance(loaded.model, Model):
        return replace(loaded, model=loaded.model.with_dtype(dtype))
    weights = {n: t.to(dtype) for n, t in loaded.model.weights.items()}
    return replace(loaded, model=replace(loaded.model, weights=weights, fast_linear={}))


def models() -> list[dict[str, Any]]:
    """What `python -m bert_core models` prints, read from the files' headers."""
    return [vars(describe_folder(SHIPPED / name)) for name in shipped_names()]


def describe_folder(folder: str | Path) -> ModelInfo:
    """ModelInfo of a shipped model's folder, without reading its tensors."""
    folder = Path(folder)
    config = parse_config(read_json(folder / "config.json"))
    stored = shared.visible(stored_tensors(folder, config))
    wanted = plan(config, {name: place.shape for name, place in stored.items()})
    return describe(folder.name, config, wanted.heads, count_parameters(wanted.shapes), shipped=True)
