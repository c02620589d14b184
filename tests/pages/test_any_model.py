"""Every view with models that run through transformers' own code: a picture or a plain line, never a traceback."""

from __future__ import annotations

import tomllib

import pytest

from bert_core.load import load_model
from tests.adapters.families import FAMILIES, make_family
from tests.payloads import is_ready, visit
from ui import shell

TEXT = "the dog [MASK]"
#: Pages that run the chosen model on the visitor's sentence.
PAGES = ("tokens", "embeddings", "attention", "masking", "compare", "cls", "meaning", "tasks", "family", "code")
VIEWS = [(page, view) for page in PAGES
         for view in tomllib.loads((shell.PROSE / f"{page}.toml").read_text(encoding="utf-8"))["reading"]]
MODELS = ("GPT-2", "DeBERTa")
MORE = ("FlauBERT", "ModernBERT", "unknown: MPNet", "ALBERT", "ELECTRA, discriminator", "RoBERTa")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Name of a family -> its folder, all below one root."""
    root = tmp_path_factory.mktemp("models")
    made = {}
    for family in FAMILIES:
        if family.name in (*MODELS, *MORE):
            made[family.name] = root / f"tiny-{len(made)}"
            made[family.name].mkdir()
            make_family(made[family.name], family)
    return made


def check(folders, monkeypatch, name, page, view, **parameters):
    monkeypatch.setenv("BOTH_WAYS_FOLDERS", str(folders[name].parent))
    at = visit(page, text=TEXT, view=view, model=str(folders[name]), **parameters)
    is_ready(at)


def test_the_models_are_not_ours(folders):
    assert all(type(load_model(str(folders[name])).model).__name__ == "ForeignModel" for name in MODELS)


@pytest.mark.parametrize(("page", "view"), VIEWS)
@pytest.mark.parametrize("name", MODELS)
def test_view_answers(folders, monkeypatch, name, page, view):
    check(folders, monkeypatch, name, page, view)


def test_anatomy_of_the_model_above(folders, monkeypatch):
    check(folders, monkeypatch, "DeBERTa", "family", "Anatomy", size="the model above")


@pytest.mark.full
@pytest.mark.parametrize(("page", "view"), VIEWS)
@pytest.mark.parametrize("name", MORE)
def test_view_answers_with_more_models(folders, monkeypatch, name, page, view):
    check(folders, monkeypatch, name, page, view)
