"""Name and shape of every tensor that a config declares, without allocating one.

Loading checks a checkpoint against these, `sizes.py` counts them, and training
draws its random starts from them.
"""

from __future__ import annotations

from bert_core.config import BertConfig
from bert_core.layout import LAYER_ROLES, Layout, layout_for

Shapes = dict[str, tuple[int, ...]]

#: config.json's architecture -> the head on top of the encoder that it declares.
_DECLARED = {
    "ForTokenClassification": "token_classification",
    "ForSequenceClassification": "classification",
    "ForQuestionAnswering": "question_answering",
}
#: The heads that read every token's vector; transformers gives their classes no pooler.
TOKEN_HEADS = frozenset({"token_classification", "question_answering"})


def linear_shapes(name: str, out: int, width: int) -> Shapes:
    """Weight (out, width) and bias (out,) of one linear."""
    return {f"{name}.weight": (out, width), f"{name}.bias": (out,)}


def norm_shapes(name: str, width: int) -> Shapes:
    """Weight and bias (width,) of one LayerNorm."""
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def embedding_shapes(config: BertConfig) -> Shapes:
    """The tables, their LayerNorm, and the projection to D where the tables are narrower."""
    names, d, e = layout_for(config), config.hidden_size, config.table_width
    shapes: Shapes = {f"{names.word}.weight": (config.vocab_size, e)}
    shapes[f"{names.position}.weight"] = (config.max_position_embeddings, e)
    if names.segment is not None:
        shapes[f"{names.segment}.weight"] = (config.type_vocab_size, e)
    shapes |= norm_shapes(names.embedding_norm, e)
    if has_projection(config, names):
        shapes |= linear_shapes(names.projection, d, e)
    return shapes


def has_projection(config: BertConfig, names: Layout) -> bool:
    """Whether the tables are projected to D: always in ALBERT, in ELECTRA where widths differ."""
    if names.projection is None:
        return False
    return config.model_type == "albert" or config.table_width != config.hidden_size


def layer_shapes(config: BertConfig, index: int) -> Shapes:
    """The tensors of encoder layer `index` (0-based)."""
    names, d, i = layout_for(config), config.hidden_size, config.intermediate_size
    widths = {"intermediate": (i, d), "output_dense": (d, i)}
    shapes: Shapes = {}
    for role in LAYER_ROLES:
        name = names.of_layer(index, role)
        if role.endswith("norm"):
            shapes |= norm_shapes(name, d)
        else:
            shapes |= linear_shapes(name, *widths.get(role, (d, d)))
    return shapes


def encoder_shapes(config: BertConfig) -> Shapes:
    """Every tensor of the bare encoder, pooler left out."""
    shapes = embedding_shapes(config)
    for index in range(1 if layout_for(config).shared_layers else config.num_hidden_layers):
        shapes |= layer_shapes(config, index)
    return shapes


def head_shapes(config: BertConfig, head: str) -> Shapes:
    """The tensors of one head (a name of `Model.heads`), tied decoder weight left out.

    Raises:
        ValueError: this family has no such head.
    """
    names, d, e = layout_for(config), config.hidden_size, config.table_width
    if head in ("mlm", "lm"):
        transform = {**linear_shapes(names.mlm_dense, e, d), **norm_shapes(names.mlm_norm, e)}
        return {**transform, names.mlm_bias: (config.vocab_size,)}
    if head == "pooler" and names.pooler is not None:
        return linear_shapes(names.pooler, d, d)
    if head == "nsp" and names.nsp is not None:
        return linear_shapes(names.nsp, 2, d)
    if head == "token_classification":
        return linear_shapes("classifier", config.num_labels, d)
    if head == "classification":
        dense = names.classifier_dense
        own = {} if dense is None else linear_shapes(dense, d, d)
        return {**own, **linear_shapes(names.classifier, config.num_labels, d)}
    if head == "question_answering":
        return linear_shapes("qa_outputs", 2, d)
    raise ValueError(f"{config.model_type} has no {head} head")


def pooled_heads(config: BertConfig) -> frozenset[str]:
    """The heads that read the pooler's output: NSP, and a classifier without a dense layer of its own."""
    return frozenset({"nsp"} if layout_for(config).classifier_dense else {"nsp", "classification"})


def possible_heads(config: BertConfig) -> tuple[str, ...]:
    """Heads that a checkpoint of this config may hold: the family's own and the declared one."""
    names = layout_for(config)
    heads = ["lm" if config.is_decoder else "mlm"]
    if names.pooler is not None:
        heads.append("pooler")
    if names.nsp is not None:
        heads.append("nsp")
    declared = " ".join(config.architectures)
    heads += [head for suffix, head in _DECLARED.items() if suffix in declared]
    return tuple(heads)
