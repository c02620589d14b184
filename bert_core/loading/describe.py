"""What a loaded model is, what it can do, and what it lacks with the reason."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from bert_core.config import BertConfig
from bert_core.layout import layout_for
from bert_core.shapes import TOKEN_HEADS, Shapes

#: Head -> the command that needs it.
TASKS = {
    "mlm": "fill-mask", "lm": "next", "nsp": "nsp", "classification": "classify",
    "token_classification": "ner", "question_answering": "answer",
}
#: Trace array -> the heads that give it.
_NEEDS = {
    "mlm_positions": ("mlm",), "mlm_logits": ("mlm",), "lm_logits": ("lm",), "nsp_logits": ("nsp",),
    "logits": ("classification", "token_classification"), "start_logits": ("question_answering",),
    "end_logits": ("question_answering",),
}
_NO_NSP = {
    "roberta": "RoBERTa was trained without next-sentence prediction",
    "camembert": "CamemBERT was trained without next-sentence prediction",
    "xlm-roberta": "XLM-RoBERTa was trained without next-sentence prediction",
    "distilbert": "DistilBERT was distilled without next-sentence prediction",
    "albert": "ALBERT was trained on the order of two sentences instead of next-sentence prediction",
    "electra": "ELECTRA was trained to spot replaced words, without next-sentence prediction",
}


@dataclass(frozen=True)
class ModelInfo:
    """What the picker and `models` say about a model."""

    name: str
    architecture: str
    tasks: tuple[str, ...]
    parameters: int
    shipped: bool


def describe(name: str, config: BertConfig, heads: frozenset[str], parameters: int, shipped: bool) -> ModelInfo:
    """Name, architecture, tasks (by head) and number of parameters."""
    architecture = config.architectures[0] if config.architectures else config.model_type
    return ModelInfo(name, architecture, tuple(TASKS[head] for head in TASKS if head in heads), parameters, shipped)


def count_parameters(shapes: Shapes) -> int:
    """Numbers in all tensors, a tied decoder counted once."""
    return sum(math.prod(shape) for shape in shapes.values())


def head_gaps(config: BertConfig, heads: frozenset[str]) -> dict[str, str]:
    """Trace array -> why the model's heads do not give it."""
    causal = config.is_decoder
    reasons = {
        "mlm": "it is causal: it predicts the next token" if causal else "no masked-LM head was saved",
        "lm": "no next-token head was saved" if causal else "it reads both ways: it can't predict a next token",
        "nsp": _NO_NSP.get(config.model_type, "no next-sentence head was saved"),
        "classification": "no classification head was saved",
        "question_answering": "no question-answering head was saved",
    }
    return {part: reasons[needed[0]] for part, needed in _NEEDS.items() if not heads.intersection(needed)}


def gaps(config: BertConfig, heads: frozenset[str]) -> Mapping[str, str]:
    """Trace array -> why a model of our own encoder has none, in one line."""
    layout, found = layout_for(config), head_gaps(config, heads)
    if layout.segment is None:
        found["segment_embeddings"] = f"{config.model_type} has no segment embeddings"
    if "pooler" not in heads:
        reason = "its head reads every token, not a pooled [CLS]" if heads & TOKEN_HEADS else "no pooler was saved"
        found["pooled_output"] = f"{config.model_type} has no pooler" if layout.pooler is None else reason
    return found
