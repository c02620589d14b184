"""Fixtures that every test may use: tiny random checkpoints, made once a session, and their engines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import hypothesis
import pytest
import torch

from tests.adapters.families import FAMILIES, make_family
from tests.checkpoints import make_bert

# What helpers assert is told in full, as in a test.
pytest.register_assert_rewrite("tests.payloads", "tests.waiting", "tests.browser.waiting", "tests.browser.tables")
torch.set_num_threads(1)
# A busy machine is no reason to fail, and the same commit passes or fails everywhere: new examples are drawn by the
# tests marked "full".
hypothesis.settings.register_profile("house", deadline=None, derandomize=True, database=None,
                                     suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("house")

SENTIMENT = {0: "negative", 1: "positive"}
ENTITIES = dict(enumerate(("O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "I-ORG")))


@pytest.fixture(autouse=True)
def _the_same_numbers_each_time() -> None:
    """Whatever a test draws from torch, it draws again."""
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory) -> Callable[..., str]:
    """checkpoint(architecture, **config changes) -> folder of a tiny random BERT, cached."""
    made: dict[tuple, Path] = {}

    def make(architecture: str = "BertForPreTraining", seed: int = 3, **changes) -> str:
        key = (architecture, seed, repr(sorted(changes.items())))
        if key not in made:
            made[key] = make_bert(tmp_path_factory.mktemp(architecture), architecture, seed, **changes)
        return str(made[key])

    return make


@pytest.fixture(scope="session")
def family(tmp_path_factory) -> Callable[..., str]:
    """family(name, architecture, **config changes) -> folder of a tiny random checkpoint of FAMILIES, cached.

    Its architecture is the family's own unless another class of it is asked for.
    """
    made: dict[tuple, Path] = {}

    def make(name: str, architecture: str | None = None, **changes) -> str:
        key = (name, architecture, repr(sorted(changes.items())))
        if key not in made:
            found = next(one for one in FAMILIES if one.name == name)
            asked = replace(found, architecture=architecture or found.architecture, config=found.config | changes)
            made[key] = make_family(tmp_path_factory.mktemp("family"), asked)
        return str(made[key])

    return make


@pytest.fixture(scope="session")
def tiny_bert(checkpoint) -> str:
    """Folder of a tiny BERT with masked-LM and next-sentence heads."""
    return checkpoint("BertForPreTraining")


@pytest.fixture(scope="session")
def tiny_gpt(checkpoint) -> str:
    """Folder of its causal twin."""
    return checkpoint("BertLMHeadModel", is_decoder=True)


@pytest.fixture(scope="session")
def tiny_classifier(checkpoint) -> str:
    return checkpoint("BertForSequenceClassification", id2label=SENTIMENT)


@pytest.fixture(scope="session")
def tiny_acceptability(checkpoint) -> str:
    return checkpoint("BertForSequenceClassification", id2label={0: "unacceptable", 1: "acceptable"})


@pytest.fixture(scope="session")
def tiny_ner(checkpoint) -> str:
    return checkpoint("BertForTokenClassification", id2label=ENTITIES)


@pytest.fixture(scope="session")
def tiny_qa(checkpoint) -> str:
    return checkpoint("BertForQuestionAnswering")
