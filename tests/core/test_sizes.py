"""Parameter counts equal the published ones, part by part, without allocating a model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bert_core.config import BertConfig
from bert_core.facts import known_sizes
from bert_core.sizes import parameter_count, parameter_table

#: Name -> config of every model that the pages size; its heads are each test's own.
PUBLISHED = {size.name: size.config for size in known_sizes()}

BARE = {
    "bert-base-uncased": 109_482_240, "bert-large-uncased": 335_141_888, "bert-base-cased": 108_310_272,
    "bert-large-cased": 333_579_264, "bert-base-multilingual-cased": 177_853_440,
    "bert-base-multilingual-uncased": 167_356_416, "distilbert-base-uncased": 66_362_880,
    "roberta-base": 124_645_632, "roberta-large": 355_359_744, "albert-base-v2": 11_683_584, "gpt2": 124_439_808,
    "bert-tiny": 4_385_920,
}
BASE_WITH_HEADS = {
    ("pooler", "mlm", "nsp"): 110_106_428, ("mlm",): 109_514_298, ("pooler", "nsp"): 109_483_778,
    ("pooler", "classification"): 109_483_778, ("question_answering",): 108_893_186,
}


@pytest.mark.parametrize("name", BARE)
def test_a_published_model_has_its_published_size(name):
    assert parameter_count(PUBLISHED[name]) == BARE[name]


@pytest.mark.parametrize("heads", BASE_WITH_HEADS)
def test_heads_of_base(heads):
    assert parameter_count(BertConfig(), heads) == BASE_WITH_HEADS[heads]


def test_nine_tags_and_large_with_pretraining_heads():
    assert parameter_count(replace(BertConfig(), num_labels=9), ("token_classification",)) == 108_898_569
    assert parameter_count(PUBLISHED["bert-large-uncased"], ("pooler", "mlm", "nsp")) == 336_226_108


def test_base_splits_as_the_facts_say():
    parts = parameter_table(BertConfig())
    by_name = {(part.group, part.name): part.count for part in parts}
    assert by_name["embeddings", "word embeddings"] == 23_440_896
    assert by_name["embeddings", "position embeddings"] == 393_216
    assert by_name["embeddings", "segment embeddings"] == 1_536
    assert by_name["embeddings", "LayerNorm"] == 1_536
    layer = [part for part in parts if part.group == "layer 7"]
    assert sum(part.count for part in layer) == 7_087_872
    assert sum(part.count for part in layer if part.name.startswith("attention")) - 1_536 == 2_362_368
    assert sum(part.count for part in layer if part.name.startswith("feed-forward")) + 1_536 == 4_723_968
    assert by_name["pooler", "dense over [CLS]"] == 590_592


@pytest.mark.parametrize(("architecture", "heads"), [
    ("BertForPreTraining", ("pooler", "mlm", "nsp")), ("BertModel", None), ("RobertaForMaskedLM", ("mlm",)),
    ("DistilBertForMaskedLM", ("mlm",)), ("ElectraForMaskedLM", ("mlm",)), ("AlbertForMaskedLM", ("mlm",)),
    ("RobertaForSequenceClassification", ("classification",)), ("GPT2LMHeadModel", None),
    ("DistilBertForQuestionAnswering", ("question_answering",)), ("ElectraForTokenClassification",
                                                                  ("token_classification",)),
])
def test_every_count_equals_transformers_without_memory(architecture, heads):
    """Odd sizes, built on the meta device."""
    import torch
    import transformers

    kind = getattr(transformers, architecture)
    sizes = {"vocab_size": 211, "hidden_size": 15, "num_hidden_layers": 3, "num_attention_heads": 5,
             "intermediate_size": 23, "max_position_embeddings": 37, "type_vocab_size": 2}
    more = {"n_inner": 23} if "GPT2" in architecture else {"embedding_size": 7} if "lectra" in architecture or \
        "Albert" in architecture else {}
    if "Distil" in architecture:
        more = {"hidden_dim": 23, "dim": 15, "n_heads": 5, "n_layers": 3}
    theirs = kind.config_class(**sizes, **more)
    with torch.device("meta"):
        expected = sum(parameter.numel() for parameter in kind(theirs).parameters())
    ours = BertConfig.from_dict({**sizes, **more, "model_type": theirs.model_type, "architectures": [architecture]})
    assert parameter_count(ours, heads) == expected
