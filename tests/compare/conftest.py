"""Three tiny random twins that share one vocabulary, and an engine for them."""

from __future__ import annotations

import pytest

from bert_core.measures.compare import Readers
from bert_core.serving.local import LocalEngine


@pytest.fixture(scope="session")
def readers(checkpoint) -> Readers:
    """A masked model, a left-to-right and a right-to-left one."""
    return Readers(
        checkpoint("BertForPreTraining"), checkpoint("BertLMHeadModel", seed=5, is_decoder=True),
        checkpoint("BertLMHeadModel", seed=7, is_decoder=True, reading_order="right-to-left"),
    )


@pytest.fixture(scope="session")
def engine(readers) -> LocalEngine:
    return LocalEngine(readers.masked)
