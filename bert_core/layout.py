"""What each family calls its parameters.

BERT, RoBERTa, CamemBERT, DistilBERT, ELECTRA and ALBERT share one block; their
checkpoints spell its parts differently. A Layout is that spelling and nothing
else: `model.py` asks for a role ("query" of layer 3) and gets the name of the
linear, LayerNorm or table in the checkpoint, to which `.weight` and `.bias`
belong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bert_core.config import BertConfig

#: The parts of one encoder layer, in the order in which the forward uses them.
LAYER_ROLES = ("query", "key", "value", "attention_dense", "attention_norm",
               "intermediate", "output_dense", "output_norm")

_BERT_LAYER = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attention_dense": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "intermediate": "intermediate.dense",
    "output_dense": "output.dense",
    "output_norm": "output.LayerNorm",
}
_DISTILBERT_LAYER = {
    "query": "attention.q_lin",
    "key": "attention.k_lin",
    "value": "attention.v_lin",
    "attention_dense": "attention.out_lin",
    "attention_norm": "sa_layer_norm",
    "intermediate": "ffn.lin1",
    "output_dense": "ffn.lin2",
    "output_norm": "output_layer_norm",
}
_ALBERT_LAYER = {
    "query": "attention.query",
    "key": "attention.key",
    "value": "attention.value",
    "attention_dense": "attention.dense",
    "attention_norm": "attention.LayerNorm",
    "intermediate": "ffn",
    "output_dense": "ffn_output",
    "output_norm": "full_layer_layer_norm",
}


@dataclass(frozen=True)
class Layout:
    """Names of one family's parts, without `.weight` and `.bias`.

    Attributes:
        prefix: what stands before the encoder's own names ('bert.').
        layer_path: path of one layer below the prefix, `{i}` for its index.
        layer: role -> name below the layer path.
        segment: the segment table, or None where the family has none.
        projection: embedding projection to D (ELECTRA, ALBERT), or None.
        pooler: the dense layer over [CLS], or None.
        mlm_dense, mlm_norm: transform of the masked-LM head.
        mlm_bias: full name of the decoder's bias, one number a word piece.
        decoder: full name of the decoder's own weight, where it is not tied to
            the word table.
        nsp: the next-sentence linear, or None.
        classifier: last linear of a sequence classifier.
        classifier_dense: a dense layer of the head's own before it, or None.
        classifier_act: activation after that dense layer.
        shared_layers: all layers are one and the same (ALBERT).
    """

    prefix: str
    layer_path: str
    layer: Mapping[str, str]
    segment: str | None
    projection: str | None
    pooler: str | None
    mlm_dense: str
    mlm_norm: str
    mlm_bias: str
    decoder: str
    nsp: str | None
    classifier: str = "classifier"
    classifier_dense: str | None = None
    classifier_act: str = "tanh"
    shared_layers: bool = False

    @property
    def word(self) -> str:
        return f"{self.prefix}embeddings.word_embeddings"

    @property
    def position(self) -> str:
        return f"{self.prefix}embeddings.position_embeddings"

    @property
    def embedding_norm(self) -> str:
        return f"{self.prefix}embeddings.LayerNorm"

    def of_layer(self, index: int, role: str) -> str:
        """Name of a part of layer `index` (0-based); ALBERT's layers share one."""
        path = self.layer_path.format(i=0 if self.shared_layers else index)
        return f"{self.prefix}{path}.{self.layer[role]}"


def _bert_like(prefix: str, **changes) -> Layout:
    parts = dict(
        prefix=prefix,
        layer_path="encoder.layer.{i}",
        layer=_BERT_LAYER,
        segment=f"{prefix}embeddings.token_type_embeddings",
        projection=None,
        pooler=f"{prefix}pooler.dense",
        mlm_dense="cls.predictions.transform.dense",
        mlm_norm="cls.predictions.transform.LayerNorm",
        mlm_bias="cls.predictions.bias",
        decoder="cls.predictions.decoder.weight",
        nsp="cls.seq_relationship",
    )
    return Layout(**{**parts, **changes})


_ROBERTA_HEADS = dict(
    mlm_dense="lm_head.dense", mlm_norm="lm_head.layer_norm", mlm_bias="lm_head.bias",
    decoder="lm_head.decoder.weight",
    nsp=None, classifier="classifier.out_proj", classifier_dense="classifier.dense",
)

LAYOUTS: dict[str, Layout] = {
    "bert": _bert_like("bert."),
    "roberta": _bert_like("roberta.", **_ROBERTA_HEADS),
    "camembert": _bert_like("roberta.", **_ROBERTA_HEADS),
    "xlm-roberta": _bert_like("roberta.", **_ROBERTA_HEADS),
    "electra": _bert_like(
        "electra.", projection="electra.embeddings_project", pooler=None,
        mlm_dense="generator_predictions.dense", mlm_norm="generator_predictions.LayerNorm",
        mlm_bias="generator_lm_head.bias", decoder="generator_lm_head.weight", nsp=None,
        classifier="classifier.out_proj", classifier_dense="classifier.dense", classifier_act="gelu",
    ),
    "distilbert": _bert_like(
        "distilbert.", layer_path="transformer.layer.{i}", layer=_DISTILBERT_LAYER,
        segment=None, pooler=None,
        mlm_dense="vocab_transform", mlm_norm="vocab_layer_norm", mlm_bias="vocab_projector.bias",
        decoder="vocab_projector.weight", nsp=None, classifier_dense="pre_classifier", classifier_act="relu",
    ),
    "albert": _bert_like(
        "albert.", layer_path="encoder.albert_layer_groups.0.albert_layers.{i}", layer=_ALBERT_LAYER,
        projection="albert.encoder.embedding_hidden_mapping_in", pooler="albert.pooler",
        mlm_dense="predictions.dense", mlm_norm="predictions.LayerNorm", mlm_bias="predictions.bias",
        decoder="predictions.decoder.weight", nsp=None, shared_layers=True,
    ),
}


def layout_for(config: BertConfig) -> Layout:
    """The names of this config's family.

    Raises:
        ValueError: the family's block is not BERT's; the adapter serves it.
    """
    try:
        return LAYOUTS[config.model_type]
    except KeyError:
        raise ValueError(
            f"model_type {config.model_type!r} has a different block from BERT's; "
            f"this encoder covers {', '.join(sorted(LAYOUTS))}"
        ) from None
