"""Three tiny random twins that share one vocabulary, and an engine for them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bert_core.measures.compare import Readers
from bert_core.serving.local import LocalEngine
from tests.adapters.families import FAMILIES, make_family


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


@pytest.fixture(scope="session")
def family(tmp_path_factory) -> Callable[[str], str]:
    """family(name) -> folder of a tiny random checkpoint of another architecture, cached."""
    made: dict[str, str] = {}

    def make(name: str) -> str:
        if name not in made:
            found = next(one for one in FAMILIES if one.name == name)
            made[name] = str(make_family(tmp_path_factory.mktemp("family"), found))
        return made[name]

    return make
