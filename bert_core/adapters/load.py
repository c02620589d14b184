"""Loading through transformers' Auto classes: local files, safetensors, no remote code."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from bert_core.adapters.foreign import ForeignModel
from bert_core.adapters.probe import Probed, probe
from bert_core.adapters.quiet import first_line, quiet
from bert_core.adapters.tokenizers import read_other_tokenizer
from bert_core.config import MAX_LABELS, MAX_LAYERS, MAX_SIZE, BertConfig, read_label_names
from bert_core.layout import LAYOUTS
from bert_core.loading.describe import head_gaps
from bert_core.loading.errors import LoadError
from bert_core.loading.files import FLOATS, Stored, check_finite, read_headers, read_tensors
from bert_core.tokenizer import Tokenizer

#: Ending of an architecture's name -> Auto class and head.
_CLASSES = {
    "ForMaskedLM": ("AutoModelForMaskedLM", "mlm"),
    "ForPreTraining": ("AutoModelForMaskedLM", "mlm"),
    "WithLMHeadModel": ("AutoModelForMaskedLM", "mlm"),
    "ForCausalLM": ("AutoModelForCausalLM", "lm"),
    "LMHeadModel": ("AutoModelForCausalLM", "lm"),
    "ForSequenceClassification": ("AutoModelForSequenceClassification", "classification"),
    "ForTokenClassification": ("AutoModelForTokenClassification", "token_classification"),
    "ForQuestionAnswering": ("AutoModelForQuestionAnswering", "question_answering"),
    "ForQuestionAnsweringSimple": ("AutoModelForQuestionAnswering", "question_answering"),
}
#: Whether the attention is causal, and a head that is wrong on it -> the arrays it would give, and why it may not.
_OTHER_WAY = {
    (True, "mlm"): (("mlm_positions", "mlm_logits"),
                    "its attention is causal, so its masked-LM head would not see what follows a mask"),
    (False, "lm"): (("lm_logits",), "its attention reads both ways, so its next-token head would have seen its answer"),
}
#: Tensors of older files that no module of today reads: masks, counters and tables that are computed.
_BUFFERS = re.compile(r"(.*\.)?(position_ids|token_type_ids|inv_freq|causal_mask|masked_bias|attn\.bias|"
                      r"attention\.bias|version|weights|_weight|_float_tensor)$")
_NOT_GIVEN = "transformers does not give it out for this architecture"
_NO_PROBABILITIES = "what transformers gives out for this architecture are no probabilities"
#: Arrays that only our own encoder has.
_OWN_ARRAYS = ("segment_embeddings", "position_embeddings", "embedding_sum", "query", "key", "value",
               "attention_scores", "context", "attention_output", "intermediate")
#: What every config must say of one stack over word pieces; models of pictures, or without heads, don't.
_SIZES = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads")
#: Keys of config.json that have transformers read other files than those that are checked here.
_OTHER_FILES = ("configuration_files", "transformers_weights")
#: Keys of config.json that hold ids, not sizes.
_NO_SIZES = ("id", "ids", "seed", "length", "theta", "version")


def load_adapted(
    folder: Path, values: Mapping[str, Any], dtype: torch.dtype, device: str
) -> tuple[ForeignModel, Tokenizer]:
    """A folder whose block is not BERT's.

    Args:
        values: its config.json, parsed.

    Raises:
        LoadError: transformers can't run it, or it gives no attention.
    """
    for key in _OTHER_FILES:
        if key in values:
            raise LoadError(f"config: {key} names other files; only config.json and the usual weights are read")
    check_bounds(values)
    _check_positions(values)
    stored = read_headers(folder)
    with quiet():
        theirs = _their_config(folder)
        auto, head = _auto_class(theirs)
        _check_stored(auto, theirs, stored)
        module = _read(auto, folder, stored, dtype, device)
        unused = _unused_positions(module)
        config = translate(theirs, head, unused)
        heads = frozenset() if head is None else frozenset({head})
        found = probe(ForeignModel(config, module, heads, {}, 0, _arguments(module)))
        config = replace(config, is_decoder=found.is_causal)
    tokenizer = read_other_tokenizer(folder, config.max_tokens, config.type_vocab_size > 1)
    return _wrap(module, config, head, unused, found), tokenizer


def check_bounds(values: Mapping[str, Any]) -> None:
    """LoadError if config.json asks for an absurd size, at any depth, before anything is made of it."""
    for key, largest, total in _sizes(values):
        bound = MAX_LAYERS if "layer" in key else MAX_LABELS if key == "num_labels" else MAX_SIZE
        if (largest > bound or total > MAX_SIZE) and not key.endswith(_NO_SIZES):
            raise LoadError(f"config: {key} is {largest}; that is no model that can be loaded here")


def _check_positions(values: Mapping[str, Any]) -> None:
    """LoadError if config.json asks for positions that transformers took out of BERT's kin: it would run without."""
    kind = values.get("position_embedding_type")
    if kind in (None, "absolute") or not (values["model_type"] in LAYOUTS or str(kind).startswith("relative")):
        return
    raise LoadError(f"config: position_embedding_type is {kind!r}, which neither this explorer nor transformers 5 has; "
                    "without it the numbers would not be the model's")


def _sizes(values: Mapping[str, Any]) -> Iterator[tuple[str, int, int]]:
    """Each key at any depth, with the largest and the sum of the whole numbers in its value and in its lists.

    They count together because GPT-Neo's `attention_types` repeats a word as
    often as the number beside it says, for every pair of its list.
    """
    objects = [values]
    while objects:
        for key, value in objects.pop().items():
            numbers, left = [0], [value]
            while left:
                one = left.pop()
                if isinstance(one, dict):
                    objects.append(one)
                elif isinstance(one, list):
                    left += one
                elif isinstance(one, int):
                    numbers.append(abs(one))
            yield key, max(numbers), sum(numbers)


def _their_config(folder: Path):
    """The config as transformers reads it, of one stack with every size that `translate` needs."""
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # many kinds: unknown type, wrong fields, code that we do not run
        raise LoadError(f"transformers knows no such model ({first_line(error)})") from None
    if config.is_encoder_decoder:
        raise LoadError(f"{config.model_type} is an encoder-decoder; the explorer shows one stack, not two")
    for name in _SIZES:
        if not isinstance(getattr(config, name, None), int):
            raise LoadError(f"{config.model_type} is no encoder of text that can be shown: its config lacks {name}")
    limit = getattr(config, "max_position_embeddings", None)
    if isinstance(limit, int) and limit < 0:  # XLNet's, whatever its config.json says
        raise LoadError(f"{config.model_type} has no longest input; the explorer shows models that have one, such as "
                        "BERT, RoBERTa or GPT-2")
    names = config.architectures or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise LoadError(f"config: architectures is {names!r}; it must be a list of words")
    return config


def _auto_class(config) -> tuple[Any, str | None]:
    """The Auto class for the declared architecture, and the head it has."""
    import transformers

    declared = (config.architectures or [""])[0]
    for ending in sorted(_CLASSES, key=len, reverse=True):
        name, head = _CLASSES[ending]
        if declared.endswith(ending) and type(config) in getattr(transformers, name)._model_mapping:
            return getattr(transformers, name), head
    if type(config) not in transformers.AutoModel._model_mapping:
        raise LoadError(f"transformers has no plain model for {config.model_type!r}")
    return transformers.AutoModel, None


def _check_stored(auto, config, stored: Mapping[str, Stored]) -> None:
    """Build without memory and compare with what the file holds: no config may ask for more, no weights be no floats.

    transformers would turn whole numbers, or the real part of complex ones, into weights.
    """
    try:
        with torch.device("meta"):
            parameters = dict(auto.from_config(config, attn_implementation="eager").named_parameters())
    except Exception as error:
        raise LoadError(f"transformers can't build it ({first_line(error)})") from None
    wanted, held = (sum(math.prod(one.shape) for one in some.values()) for some in (parameters, stored))
    if wanted > 2 * held + 1_000_000:
        raise LoadError(f"config.json describes {wanted:,} parameters; the weights hold {held:,}")
    # a checkpoint and its model may differ by one prefix; what is no parameter (an older file's masks) isn't read
    names = parameters.keys() | {name.partition(".")[2] for name in parameters}
    for name, place in stored.items():
        current = re.sub(r"\.gamma$", ".weight", re.sub(r"\.beta$", ".bias", name))
        if place.kind not in FLOATS and not names.isdisjoint((current, current.partition(".")[2])):
            read_tensors(stored, [name])  # says what it holds


def _read(
    auto, folder: Path, stored: Mapping[str, Stored], dtype: torch.dtype, device: str
) -> torch.nn.Module:
    """The module with its weights: none is made up, and none of the encoder's is left on disk."""
    try:
        module, info = auto.from_pretrained(
            folder, dtype=dtype, attn_implementation="eager", use_safetensors=True, local_files_only=True,
            trust_remote_code=False, output_loading_info=True,
        )
    except Exception as error:  # shapes that differ, tensors that are damaged
        raise LoadError(f"transformers can't load the weights ({first_line(error)})") from None
    if info["missing_keys"]:
        raise LoadError(f"the weights lack {min(info['missing_keys'])}; is this the checkpoint that config.json "
                        "describes?")
    for name in sorted(info["unexpected_keys"]):
        if _is_encoders(module, name) and (name not in stored or stored[name].kind in FLOATS):
            raise LoadError(f"the weights hold {name}, which the declared architecture does not have")
    for name, weights in module.named_parameters():
        check_finite(name, weights)
    return module.to(device).eval()


def _is_encoders(module: torch.nn.Module, name: str) -> bool:
    """Whether a tensor that transformers leaves on disk belongs into the encoder; unused poolers and heads do not."""
    parts = name.removeprefix(f"{module.base_model_prefix}.").split(".")
    return parts[0] in dict(module.base_model.named_children()) and "pooler" not in parts and not _BUFFERS.match(name)


def _unused_positions(module: torch.nn.Module) -> int:
    """Rows at the start of the position table that no token gets: RoBERTa's kin leave room for padding."""
    for name, part in module.named_modules():
        if name.endswith("position_embeddings") and getattr(part, "padding_idx", None) is not None:
            return part.padding_idx + 1
    return 0


def translate(theirs, head: str | None, unused: int) -> BertConfig:
    """A transformers config, from `_their_config`, in BERT's words; which way it reads is not asked of it.

    Args:
        unused: positions of the table that are no tokens'.
    """
    hidden = theirs.hidden_size
    labels = theirs.id2label if head in ("classification", "token_classification") else {}
    pad = getattr(theirs, "pad_token_id", None)
    return BertConfig(
        vocab_size=theirs.vocab_size, hidden_size=hidden, num_hidden_layers=theirs.num_hidden_layers,
        num_attention_heads=theirs.num_attention_heads, model_type=theirs.model_type,
        intermediate_size=getattr(theirs, "intermediate_size", None) or getattr(theirs, "n_inner", None) or 4 * hidden,
        max_position_embeddings=(getattr(theirs, "max_position_embeddings", None) or 512) - unused,
        type_vocab_size=getattr(theirs, "type_vocab_size", 0) or 0,
        pad_token_id=pad if isinstance(pad, int) and 0 <= pad < theirs.vocab_size else 0,
        id2label=read_label_names(labels), num_labels=max(len(labels), 1),
        problem_type=theirs.problem_type, architectures=tuple(theirs.architectures or ()),
    )


def _wrap(module: torch.nn.Module, config: BertConfig, head: str | None, unused: int, found: Probed) -> ForeignModel:
    """The module with what it has; a head that the attention's direction makes wrong is no part of it."""
    parts, reason = _OTHER_WAY.get((config.is_decoder, head), ((), ""))
    heads = {head} if head is not None and not parts else set()
    if head is None and getattr(module, "pooler", None) is not None:
        heads.add("pooler")
    gaps = dict.fromkeys(_OWN_ARRAYS, _NOT_GIVEN) | head_gaps(config, frozenset(heads)) | dict.fromkeys(parts, reason)
    if not found.has_probabilities:
        gaps["attention_probs"] = _NO_PROBABILITIES
    if config.type_vocab_size < 2:
        gaps["segment_embeddings"] = f"{config.model_type} has no segment embeddings"
    if "pooler" not in heads:
        gaps["pooled_output"] = f"{config.model_type} has no pooler that transformers gives out"
    return ForeignModel(config, module, frozenset(heads), gaps, sum(p.numel() for p in module.parameters()),
                        _arguments(module), unused - 1 if unused else None, found.shares)


def _arguments(module: torch.nn.Module) -> frozenset[str]:
    return frozenset(inspect.signature(module.forward).parameters)
