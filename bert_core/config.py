"""The architecture of an encoder as plain, frozen data.

Field names are the keys of a checkpoint's config.json, so that a reader of
Devlin et al. 2018 (arXiv 1810.04805), section 3, and of a released checkpoint
finds the same word in both.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ATTENTION_KINDS = ("bidirectional", "causal")
#: How a head of token labels is read: each word alone, or the most probable sequence that is valid.
LABEL_DECODINGS = ("argmax", "viterbi")
ACTIVATIONS = ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "tanh", "silu")
#: Most layers that a config may ask for; the deepest published relatives have 48.
MAX_LAYERS = 256
#: Largest of any other size, far beyond every published model.
MAX_SIZE = 2**24
#: Most classes of a head; a name is made for each of them.
MAX_LABELS = 2**16

#: DistilBERT's config.json spells some sizes differently.
_ALIASES = {
    "dim": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "hidden_dim": "intermediate_size",
    "activation": "hidden_act",
}

#: What a family's config.json may leave out, where it differs from BERT's.
_FAMILY_DEFAULTS: dict[str, dict[str, Any]] = {
    "roberta": {"vocab_size": 50265, "pad_token_id": 1},
    "camembert": {"pad_token_id": 1},
    "xlm-roberta": {"pad_token_id": 1},
    "distilbert": {"num_hidden_layers": 6},
    "electra": {"embedding_size": 128, "hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024},
    "albert": {"vocab_size": 30000, "embedding_size": 128, "hidden_size": 4096, "num_attention_heads": 64,
               "intermediate_size": 16384, "hidden_act": "gelu_new"},
}


@dataclass(frozen=True)
class BertConfig:
    """Sizes and choices of one encoder whose block is BERT's.

    Dimensions, one legend for the whole project: B batch, T tokens, D hidden
    size, H heads, Dh head size, I intermediate size, V vocabulary, L layers.

    Attributes:
        vocab_size: V.
        hidden_size: D, a multiple of num_attention_heads.
        num_hidden_layers: L.
        num_attention_heads: H.
        intermediate_size: I, width of the feed-forward part.
        hidden_act: one of ACTIVATIONS; 'gelu' is the erf form, 'gelu_new' the tanh form.
        max_position_embeddings: rows of the position table.
        type_vocab_size: rows of the segment table; 0 where there is none.
        layer_norm_eps: added to the variance in each LayerNorm.
        initializer_range: standard deviation of random starting weights.
        pad_token_id: vocabulary id of padding; RoBERTa's positions count from it.
        model_type: the family; decides the checkpoint's parameter names.
        is_decoder: trained with a causal mask, so that row t predicts t+1.
        reading_order: 'left-to-right', or 'right-to-left' for twin-rtl, whose
            pieces between [CLS] and the last [SEP] are read reversed.
        embedding_size: width of the embedding tables where it differs from D
            (ALBERT, ELECTRA); None means D.
        num_labels, id2label: classes of a fine-tuned head; their names, by index.
        problem_type: 'regression', 'multi_label_classification', or one class of several.
        label_decoding: how its labels become entities, one of LABEL_DECODINGS.
        architectures: transformers' classes that the checkpoint was saved from.
        tie_word_embeddings: the vocabulary projection is the word table.
        extra: all other keys of config.json, as they stand there.
    """

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12
    initializer_range: float = 0.02
    pad_token_id: int = 0
    model_type: str = "bert"
    is_decoder: bool = False
    reading_order: str = "left-to-right"
    embedding_size: int | None = None
    num_labels: int = 2
    id2label: tuple[str, ...] = ()
    problem_type: str | None = None
    label_decoding: str = "argmax"
    architectures: tuple[str, ...] = ()
    tie_word_embeddings: bool = True
    extra: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        self._check_sizes()
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"config: hidden_size {self.hidden_size} is not a multiple of "
                f"num_attention_heads {self.num_attention_heads}"
            )
        for name in ("model_type", "hidden_act", "reading_order"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"config: {name} is {getattr(self, name)!r}; it must be a word")
        for name in ("is_decoder", "tie_word_embeddings"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"config: {name} is {getattr(self, name)!r}; it must be true or false")
        for name in ("layer_norm_eps", "initializer_range"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0 <= value < 1:
                raise ValueError(f"config: {name} is {value!r}; it must be a small number")
        if self.reading_order not in ("left-to-right", "right-to-left"):
            raise ValueError(f"config: reading_order is {self.reading_order!r}; it is left-to-right or right-to-left")
        if self.label_decoding not in LABEL_DECODINGS:
            raise ValueError(f"config: label_decoding is {self.label_decoding!r}; it is {' or '.join(LABEL_DECODINGS)}")

    def _check_sizes(self) -> None:
        """Every size is a whole number within its bounds."""
        smallest = {"type_vocab_size": 0, "pad_token_id": 0}
        largest = {"num_hidden_layers": MAX_LAYERS, "num_labels": MAX_LABELS}
        sizes = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
                 "max_position_embeddings", "num_labels", "type_vocab_size", "pad_token_id", "embedding_size")
        for name in sizes:
            value = getattr(self, name)
            if name == "embedding_size" and value is None:
                continue
            low, high = smallest.get(name, 1), largest.get(name, MAX_SIZE)
            if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
                raise ValueError(f"config: {name} is {value!r}; it must be a whole number from {low} to {high}")
        if self.pad_token_id >= self.vocab_size:
            raise ValueError(f"config: pad_token_id is {self.pad_token_id}; vocab_size is only {self.vocab_size}")

    @property
    def head_size(self) -> int:
        """Dh = D / H."""
        return self.hidden_size // self.num_attention_heads

    @property
    def table_width(self) -> int:
        """Width of the embedding tables: D, or the factorised size."""
        return self.embedding_size or self.hidden_size

    @property
    def attention_kind(self) -> str:
        """The attention pattern the model was trained with."""
        return "causal" if self.is_decoder else "bidirectional"

    @property
    def position_padding(self) -> int | None:
        """Row of the position table that padding gets, as its id, in RoBERTa's kin; None counts it as a token."""
        return self.pad_token_id if self.model_type in ("roberta", "camembert", "xlm-roberta") else None

    @property
    def position_offset(self) -> int:
        """First row used of the position table (RoBERTa starts after padding)."""
        return 0 if self.position_padding is None else self.position_padding + 1

    @property
    def max_tokens(self) -> int:
        """Longest input in tokens, specials included."""
        return self.max_position_embeddings - self.position_offset

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> BertConfig:
        """Read a config.json.

        Args:
            values: the parsed JSON object; unknown keys are kept in `extra`.

        Raises:
            ValueError: a size is missing its sense (zero, text, not a multiple).
        """
        if not isinstance(values, Mapping):
            raise ValueError("config.json holds no JSON object")
        known = {f.name for f in dataclasses.fields(cls)} - {"extra"}
        taken: dict[str, Any] = dict(_FAMILY_DEFAULTS.get(str(values.get("model_type")), {}))
        rest: dict[str, Any] = {}
        for key, value in values.items():
            name = _ALIASES.get(key, key) if values.get("model_type") == "distilbert" else key
            if name in known and value is not None:
                taken[name] = value
            else:
                rest[key] = value
        if values.get("model_type") == "distilbert":
            taken["type_vocab_size"] = 0
        taken["id2label"] = read_label_names(taken.get("id2label"))
        if taken["id2label"]:
            taken["num_labels"] = len(taken["id2label"])
        architectures = taken.get("architectures", ())
        taken["architectures"] = tuple(map(str, architectures)) if isinstance(architectures, list | tuple) else ()
        return cls(**taken, extra=rest)

    def to_dict(self) -> dict[str, Any]:
        """The config.json that transformers reads back to the same model, in its family's spelling."""
        values = dict(self.extra)
        spelling = {name: key for key, name in _ALIASES.items()} if self.model_type == "distilbert" else {}
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            if f.name == "extra" or (f.name == "num_labels" and self.id2label):
                continue
            if f.name == "id2label":
                if value:
                    values["id2label"] = {str(i): label for i, label in enumerate(value)}
                    values["label2id"] = {label: i for i, label in enumerate(value)}
                continue
            if (f.name, value) in (("embedding_size", None), ("label_decoding", "argmax")):
                continue
            values[spelling.get(f.name, f.name)] = list(value) if isinstance(value, tuple) else value
        return values


def read_label_names(labels: Any) -> tuple[str, ...]:
    """Class names by their index, from config.json's id2label: as many as it lists, as in transformers.

    A class whose number is not among its keys, or that has no word or number for its name, is LABEL_n.

    Raises:
        ValueError: a key is no number.
    """
    if isinstance(labels, list | tuple):
        labels = dict(enumerate(labels))
    if not isinstance(labels, Mapping):
        return ()
    try:
        named = {int(key): name for key, name in labels.items()}
    except (TypeError, ValueError):
        raise ValueError("config: id2label's keys must be the numbers of the labels") from None
    return tuple(_label_name(n, named.get(n)) for n in range(len(named)))


def _label_name(number: int, name: Any) -> str:
    shown = str(name) if isinstance(name, str | int | float) else ""
    return shown if shown.strip() else f"LABEL_{number}"
