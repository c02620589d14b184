"""Parameters counted part by part from a config alone: nothing is allocated.

A page shows the parts and their formulas; they add up to the total exactly.
Letters as everywhere: V vocabulary, D hidden size, E width of the embedding
tables, I intermediate size, L layers, P rows of the position table, S segments,
C labels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bert_core.config import BertConfig
from bert_core.layout import LAYOUTS, layout_for
from bert_core.shapes import Shapes, embedding_shapes, head_shapes, layer_shapes


@dataclass(frozen=True)
class Part:
    """One part of a model.

    Attributes:
        group: 'embeddings', 'layer 1' to 'layer L', 'pooler', or the head's name.
        name: what it is called on a page, such as 'attention query'.
        formula: its count in the letters above, such as 'V x E'.
        count: number of parameters.
    """

    group: str
    name: str
    formula: str
    count: int


#: The part of BERT that has a pooler when loaded without a task; the others have none.
_WITH_POOLER = ("bert", "roberta", "camembert", "xlm-roberta", "albert")

_LAYER_NAMES = {
    "query": ("attention query", "D² + D"),
    "key": ("attention key", "D² + D"),
    "value": ("attention value", "D² + D"),
    "attention_dense": ("attention output", "D² + D"),
    "attention_norm": ("attention LayerNorm", "2 D"),
    "intermediate": ("feed-forward in", "D I + I"),
    "output_dense": ("feed-forward out", "I D + D"),
    "output_norm": ("output LayerNorm", "2 D"),
}


def is_counted(config: BertConfig) -> bool:
    """Whether the model's block is one of those that these formulas, and those of `measures.cost`, are of."""
    return config.model_type == "gpt2" or config.model_type in LAYOUTS


def default_heads(config: BertConfig) -> tuple[str, ...]:
    """What the bare model carries besides its encoder: BERT's pooler, where the family has one."""
    return ("pooler",) if config.model_type in _WITH_POOLER else ()


def parameter_count(config: BertConfig, heads: tuple[str, ...] | None = None) -> int:
    """Parameters of the encoder and `heads` (None: as the bare model is published)."""
    return sum(part.count for part in parameter_table(config, heads))


def parameter_table(config: BertConfig, heads: tuple[str, ...] | None = None) -> tuple[Part, ...]:
    """Every part of a model with its formula and count.

    Args:
        config: any config whose block is BERT's, or GPT-2's.
        heads: of 'pooler', 'mlm', 'lm', 'nsp', 'classification',
            'token_classification', 'question_answering'; the vocabulary
            projection is tied to the word table and counted once. None takes
            what the bare model has.

    Raises:
        ValueError: the family is another, or has no such head.
    """
    if config.model_type == "gpt2":
        return _gpt2_table(config)
    parts = _embedding_parts(config)
    shared = layout_for(config).shared_layers
    for index in range(1 if shared else config.num_hidden_layers):
        group = f"all {config.num_hidden_layers} layers, shared" if shared else f"layer {index + 1}"
        parts += _layer_parts(config, index, group)
    for head in default_heads(config) if heads is None else heads:
        parts += _head_parts(config, head)
    return tuple(parts)


def _count(shapes: Shapes, name: str) -> int:
    """Numbers in the tensors `name`.weight and `name`.bias that are there."""
    return sum(math.prod(shapes[full]) for full in (f"{name}.weight", f"{name}.bias") if full in shapes)


def _embedding_parts(config: BertConfig) -> list[Part]:
    names, shapes = layout_for(config), embedding_shapes(config)
    labelled = [
        (names.word, "word embeddings", "V E"), (names.position, "position embeddings", "P E"),
        (names.segment, "segment embeddings", "S E"), (names.embedding_norm, "LayerNorm", "2 E"),
        (names.projection, "projection to D", "E D + D"),
    ]
    return [Part("embeddings", label, formula, _count(shapes, name))
            for name, label, formula in labelled if name is not None and f"{name}.weight" in shapes]


def _layer_parts(config: BertConfig, index: int, group: str) -> list[Part]:
    names, shapes = layout_for(config), layer_shapes(config, index)
    return [Part(group, label, formula, _count(shapes, names.of_layer(index, role)))
            for role, (label, formula) in _LAYER_NAMES.items()]


def _head_parts(config: BertConfig, head: str) -> list[Part]:
    names, shapes = layout_for(config), head_shapes(config, head)
    if head in ("mlm", "lm"):
        return [Part(head, "transform", "D E + E", _count(shapes, names.mlm_dense)),
                Part(head, "LayerNorm", "2 E", _count(shapes, names.mlm_norm)),
                Part(head, "decoder bias (its weight is the word table)", "V", math.prod(shapes[names.mlm_bias]))]
    formula = {"pooler": "D² + D", "nsp": "2 D + 2", "question_answering": "2 D + 2"}.get(head, "C D + C")
    if head == "classification" and names.classifier_dense is not None:
        formula = "D² + D + C D + C"
    label = {"pooler": "dense over [CLS]", "nsp": "is next or not"}.get(head, "one linear")
    return [Part(head, label, formula, sum(math.prod(shape) for shape in shapes.values()))]


def _gpt2_table(config: BertConfig) -> tuple[Part, ...]:
    """GPT-2 (Radford et al. 2019): LayerNorm before each part, one more at the end, tied decoder."""
    v, p, d, i = config.vocab_size, config.max_position_embeddings, config.hidden_size, config.intermediate_size
    parts = [Part("embeddings", "word embeddings", "V E", v * d),
             Part("embeddings", "position embeddings", "P E", p * d)]
    for index in range(config.num_hidden_layers):
        group = f"layer {index + 1}"
        parts += [
            Part(group, "attention LayerNorm", "2 D", 2 * d),
            Part(group, "attention query, key, value", "3 (D² + D)", 3 * (d * d + d)),
            Part(group, "attention output", "D² + D", d * d + d),
            Part(group, "feed-forward LayerNorm", "2 D", 2 * d),
            Part(group, "feed-forward in", "D I + I", d * i + i),
            Part(group, "feed-forward out", "I D + D", i * d + d),
        ]
    return (*parts, Part("final LayerNorm", "LayerNorm", "2 D", 2 * d))
