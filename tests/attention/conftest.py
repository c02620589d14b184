"""A tiny random BERT of 3 layers and 5 heads of 7, and a Trace of it with a pair, a split word and a mask."""

from __future__ import annotations

import pytest
import torch

from bert_core.load import Loaded, load_model, with_dtype
from bert_core.serving.local import LocalEngine
from bert_core.trace import Trace, TraceRequest

SIZES = {"hidden_size": 35, "num_hidden_layers": 3, "num_attention_heads": 5, "intermediate_size": 44,
         "initializer_range": 0.35, "max_position_embeddings": 131}


@pytest.fixture(scope="session")
def small_folder(checkpoint) -> str:
    """BERT with masked-LM and next-sentence heads."""
    return checkpoint("BertForPreTraining", **SIZES)


@pytest.fixture(scope="session")
def small(small_folder) -> Loaded:
    """The same, float64."""
    return with_dtype(load_model(small_folder), torch.float64)


@pytest.fixture(scope="session")
def small_classifier(checkpoint) -> Loaded:
    """BERT with three classes, float64."""
    folder = checkpoint("BertForSequenceClassification", num_labels=3, **SIZES)
    return with_dtype(load_model(folder), torch.float64)


@pytest.fixture(scope="session")
def small_engine(small_folder) -> LocalEngine:
    return LocalEngine(small_folder)


@pytest.fixture(scope="session")
def pair_request() -> TraceRequest:
    """[CLS] the dog barked ##s all [MASK] . [SEP] we walked home . [SEP], as the tiny vocabulary cuts it."""
    return TraceRequest("The dog barkeds all [MASK].", "We walked home.")


@pytest.fixture(scope="session")
def trace(small_engine, pair_request) -> Trace:
    return small_engine.run(pair_request)
