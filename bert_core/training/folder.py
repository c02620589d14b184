"""Model folders: config.json, model.safetensors and a tokenizer, as transformers reads them."""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import torch
from tokenizers import Tokenizer
from torch import Tensor

from bert_core.config import BertConfig
from bert_core.load import SHIPPED, Loaded, locate
from bert_core.loading.files import read_headers, read_tensors, write_tensors
from bert_core.model import Model
from bert_core.shapes import pooled_heads
from bert_core.training import lora


class SecondHead(NamedTuple):
    """A head of pre-training that is none of `Model.heads`: what it is, its tensors, and what its class wants beside.

    `wants` is as in _WANTS.
    """

    what: str
    tensors: tuple[str, ...]
    wants: tuple[frozenset[str], ...]


#: What transformers' tokenizer gives to the model; without segments a pair's second sentence would count as its first.
INPUT_NAMES = ("input_ids", "token_type_ids", "attention_mask")
ARCHITECTURE = {"mlm": "BertForPreTraining", "clm": "BertLMHeadModel", "rtl": "BertLMHeadModel"}

#: How transformers' class names of a family begin.
_STEMS = {"bert": "Bert", "roberta": "Roberta", "camembert": "Camembert", "xlm-roberta": "XLMRoberta",
          "electra": "Electra", "distilbert": "DistilBert", "albert": "Albert"}
#: Ending of a class's name -> the heads it wants, one of each group; the first that fits names a class.
_WANTS: dict[str, tuple[frozenset[str], ...]] = {
    "ForPreTraining": (frozenset({"mlm", "lm"}), frozenset({"nsp"})),
    "ForMaskedLM": (frozenset({"mlm", "lm"}),), "ForCausalLM": (frozenset({"mlm", "lm"}),),
    "LMHeadModel": (frozenset({"mlm", "lm"}),), "ForNextSentencePrediction": (frozenset({"nsp"}),),
    "ForSequenceClassification": (frozenset({"classification"}),),
    "ForTokenClassification": (frozenset({"token_classification"}),),
    "ForQuestionAnswering": (frozenset({"question_answering"}),), "Model": (),
}
#: Family -> its second head of pre-training, which the explorer does not read but an export carries over.
_SECOND_HEADS = {
    "albert": SecondHead("the head for the order of two sentences", tuple(
        f"sop_classifier.classifier.{kind}" for kind in ("weight", "bias")),
        (frozenset({"mlm", "lm"}), frozenset({"pooler"}))),
    "electra": SecondHead("the discriminator's head", tuple(
        f"discriminator_predictions.{name}.{kind}" for name in ("dense", "dense_prediction")
        for kind in ("weight", "bias")), ()),
}
#: Families whose own tokenizers call [CLS] the beginning of a sequence and [SEP] its end, too.
_WITH_ENDS = ("roberta", "camembert", "xlm-roberta", "albert")


def make_folder(folder: str | Path) -> Path:
    """A folder to write into, made where it is missing.

    Raises:
        ValueError: a file stands in its place.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ValueError(f"{str(folder)!r} can't be a folder: a file stands there") from None
    return folder


@contextmanager
def begun_folder(folder: str | Path) -> Iterator[Path]:
    """A folder to write into, which goes again if it was made here and nothing came to stand in it.

    Raises:
        ValueError: a file stands in its place.
    """
    made = not Path(folder).exists()
    out = make_folder(folder)
    try:
        yield out
    finally:
        if made:
            with suppress(OSError):  # there is something in it
                out.rmdir()


def check_free(folder: Path, spare: Collection[str] = ()) -> None:
    """ValueError if a folder that is to be written holds files already; those that are called as in `spare` may."""
    if folder.is_dir() and any(path.name not in spare for path in folder.iterdir()):
        raise ValueError(f"{str(folder)!r} is not empty; give a new folder")


def find_tokenizer(folder: Path, config: BertConfig) -> Path:
    """tokenizer.json of a model folder, or the one that the shipped models, and updates of them, share.

    Raises:
        ValueError: there is none.
    """
    folder = folder.resolve()
    for place in (folder, folder.parent, *((SHIPPED,) if "shared_from" in config.extra else ())):
        if (place / "tokenizer.json").is_file():
            return place / "tokenizer.json"
    raise ValueError(f"{folder.name} has no tokenizer.json; convert its vocabulary first")


def write_folder(folder: Path, config: BertConfig, tensors: Mapping[str, Tensor], dtype: torch.dtype | None) -> None:
    """Write config.json and model.safetensors; `dtype` None keeps each tensor's own.

    Raises:
        OSError: one of them can't be written; what is new of them goes, so that the same folder serves another time.
    """
    make_folder(folder)
    weights, about = folder / "model.safetensors", folder / "config.json"
    new = [path for path in (weights, about) if not path.exists()]
    stored = {n: t.detach().to("cpu", dtype or t.dtype) for n, t in sorted(tensors.items())}
    try:
        write_tensors(stored, weights, {"format": "pt"})
        about.write_text(json.dumps(config.to_dict(), indent=1) + "\n", encoding="utf-8")
    except OSError:
        for path in new:
            path.unlink(missing_ok=True)
        raise


def write_model(
    folder: Path, config: BertConfig, weights: Mapping[str, Tensor], objective: str, tokenizer: Path
) -> None:
    """Write a pre-trained model's folder."""
    config = dataclasses.replace(
        config, model_type="bert", is_decoder=objective != "mlm", architectures=(ARCHITECTURE[objective],),
        reading_order="right-to-left" if objective == "rtl" else "left-to-right", extra={},
    )
    write_folder(folder, config, weights, torch.float16)
    shutil.copyfile(tokenizer, folder / "tokenizer.json")


def write_adapter(
    folder: Path, config: BertConfig, learned: Mapping[str, Tensor], base: str, scale: float
) -> None:
    """Write a fine-tuned model as its difference to a shipped base."""
    shared = {"shared_from": base, "shared_tensors": ["bert."], "low_rank_scale": scale}
    write_folder(folder, dataclasses.replace(config, extra=shared), learned, torch.float16)


def write_full(
    folder: Path, config: BertConfig, base: Loaded, learned: Mapping[str, Tensor], scale: float
) -> None:
    """Write a fine-tuned model whole, updates merged, with its tokenizer."""
    encoder = {n: w.float().cpu() for n, w in base.model.weights.items() if n.startswith("bert.")}
    encoder |= {n: w for n, w in learned.items() if not lora.is_factor(n)}
    factors = {n: w for n, w in learned.items() if lora.is_factor(n)}
    write_folder(folder, config, lora.apply(encoder, factors, scale), torch.float16)
    base.tokenizer.backend.save(str(folder / "tokenizer.json"))


def export(loaded: Loaded, folder: Path) -> list[str]:
    """Write a loaded model with everything that `from_pretrained` wants; a line on standard error says what it lacks.

    Raises:
        ValueError: the folder is a file or holds files already, transformers
            runs the model as it is, or its tokenizer can't be written.
    """
    if not isinstance(loaded.model, Model):
        raise ValueError(f"{loaded.name} runs through transformers, which opens its own folder; there is nothing to "
                         "export")
    if not isinstance(loaded.tokenizer.backend, Tokenizer):
        raise ValueError(f"{loaded.name} splits text by {type(loaded.tokenizer.backend).__name__}, which is no "
                         "tokenizer.json; it can't be exported")
    check_free(folder)
    second, fitting = _second_head(loaded), exported_class(loaded)
    config = dataclasses.replace(loaded.config, architectures=fitting, extra=_own_keys(loaded.config))
    weights, lost = _exported(loaded, fitting, second)
    with begun_folder(folder):
        write_folder(folder, config, weights, None)
    loaded.tokenizer.backend.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": loaded.tokenizer.limit,
                "model_input_names": [n for n in INPUT_NAMES if loaded.tokenizer.has_segments or n != "token_type_ids"],
                **_special_tokens(loaded)}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
    if lost:
        why = f"{fitting[0]} has no such part" if fitting else "config.json declares no class that has it"
        sys.stderr.write(f"warning: {' and '.join(lost)} of {loaded.name} not written: {why}\n")
    return sorted(path.name for path in folder.iterdir())


def _exported(
    loaded: Loaded, fitting: tuple[str, ...], second: Mapping[str, Tensor]
) -> tuple[dict[str, Tensor], list[str]]:
    """The tensors of the class that is written, and what of the checkpoint is none of them.

    Args:
        second: of `_second_head`.
    """
    weights, lost = dict(loaded.model.weights), []
    if any("ForPreTraining" in name for name in fitting):
        weights |= second
    elif second:
        lost.append(_SECOND_HEADS[loaded.config.model_type].what)
    if "pooler" in loaded.model.heads and not _has_pooler(fitting, loaded):
        weights = {n: w for n, w in weights.items() if ".pooler." not in n}
        lost.append("the pooler")
    if loaded.model.heads & {"mlm", "lm"}:  # under both of its names, which are one in some families
        names = loaded.model.names
        weights[names.decoder.removesuffix("weight") + "bias"] = weights[names.mlm_bias].clone()
    return weights, lost


def _has_pooler(fitting: tuple[str, ...], loaded: Loaded) -> bool:
    """Whether transformers' class has a pooler: the bare one, and those with a head that reads it."""
    bare = f"{_STEMS[loaded.config.model_type]}Model"
    return (bool(loaded.model.heads & pooled_heads(loaded.config)) or not fitting
            or any("ForPreTraining" in name or name == bare for name in fitting))


def _second_head(loaded: Loaded) -> dict[str, Tensor]:
    """The tensors of the family's second head of pre-training, from the model's own file; {} unless all are there."""
    if loaded.config.model_type not in _SECOND_HEADS:
        return {}
    names, stored = _SECOND_HEADS[loaded.config.model_type].tensors, read_headers(locate(loaded.name))
    if not stored.keys() >= set(names):
        return {}
    return {name: tensor.to(loaded.model.dtype) for name, tensor in read_tensors(stored, names).items()}


def exported_class(loaded: Loaded) -> tuple[str, ...]:
    """The class that `export` writes a model as."""
    return fitting_class(loaded.config, loaded.model.heads, bool(_second_head(loaded)))


def fitting_class(config: BertConfig, heads: frozenset[str], has_second: bool = True) -> tuple[str, ...]:
    """The declared class, or another that these heads fill: transformers would start the others at random.

    Args:
        has_second: whether the checkpoint holds its family's second head of pre-training, where there is one.
    """
    declared = [ending for ending in _WANTS if config.architectures and config.architectures[0].endswith(ending)]

    def is_filled(ending: str) -> bool:
        wants = _WANTS[ending]
        if ending == "ForPreTraining" and config.model_type in _SECOND_HEADS:
            if not has_second or declared[0] != ending:
                return False
            wants = _SECOND_HEADS[config.model_type].wants
        return all(heads & group for group in wants)

    if not declared or is_filled(declared[0]):
        return config.architectures
    return (_STEMS[config.model_type] + next(ending for ending in _WANTS if is_filled(ending)),)


def _special_tokens(loaded: Loaded) -> dict[str, str]:
    """'cls_token' and so on, as tokenizer_config.json names them."""
    names = dict(loaded.tokenizer.specials)
    own = type(loaded.tokenizer.backend.model).__name__ != "WordPiece"
    if own and loaded.config.model_type in _WITH_ENDS:
        names |= {role: names[same] for role, same in (("bos", "cls"), ("eos", "sep")) if same in names}
    return {f"{role}_token": token for role, token in names.items()}


def _own_keys(config: BertConfig) -> dict:
    """Keys of config.json that say how the project stores a model are no part of an export."""
    return {k: v for k, v in config.extra.items() if k not in ("shared_from", "shared_tensors", "low_rank_scale")}
