"""Every view with models that run through transformers' own code: a picture or a plain line, never a traceback."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from bert_core.load import load_model
from bert_core.model import Model
from tests.payloads import is_ready, plain_line, visit
from ui import shell

TEXT = "the dog [MASK]"
#: Pages that run the chosen model on the visitor's sentence.
PAGES = ("tokens", "embeddings", "attention", "masking", "compare", "cls", "meaning", "tasks", "family", "code")
VIEWS = [(page, view) for page in PAGES
         for view in tomllib.loads((shell.PROSE / f"{page}.toml").read_text(encoding="utf-8"))["reading"]]
#: Views of the tables and lines of this project's own model.
OWN_LAYERS = {("embeddings", "The sum"), ("embeddings", "Positions"), ("embeddings", "Neighbours"),
              ("embeddings", "Switch off and shuffle"), ("code", "Walk"), ("masking", "The head"),
              ("masking", "Layer by layer"), ("masking", "Neurons")}
MODELS = ("GPT-2", "DeBERTa")
MORE = ("FlauBERT", "ModernBERT", "unknown: MPNet", "ALBERT", "ELECTRA, discriminator", "RoBERTa")


def missing(folder: str, page: str, view: str) -> str:
    """What the plain line says of a model that a view can't draw; '' where it has its picture."""
    model = load_model(folder).model
    if page == "masking" and "mlm" not in model.heads:
        return "has no trained masked-LM head"
    if (page, view) in OWN_LAYERS and not isinstance(model, Model):
        return "runs through transformers"
    return ""


def check(folder: str, monkeypatch, page: str, view: str, **parameters: str) -> None:
    monkeypatch.setenv("BOTH_WAYS_FOLDERS", str(Path(folder).parent))
    at = visit(page, text=TEXT, view=view, model=folder, **parameters)
    why = missing(folder, page, view)
    if why:
        assert why in plain_line(at)
        assert at.button(key="instead").label == "Read with twin-bert"
    else:
        is_ready(at)


def test_the_models_are_not_ours(family):
    assert all(type(load_model(family(name)).model).__name__ == "ForeignModel" for name in MODELS)


@pytest.mark.parametrize(("page", "view"), VIEWS)
@pytest.mark.parametrize("name", MODELS)
def test_view_answers(family, monkeypatch, name, page, view):
    check(family(name), monkeypatch, page, view)


def test_anatomy_of_the_model_above(family, monkeypatch):
    check(family("DeBERTa"), monkeypatch, "family", "Anatomy", size="the chosen model")


@pytest.mark.full
@pytest.mark.parametrize(("page", "view"), VIEWS)
@pytest.mark.parametrize("name", MORE)
def test_view_answers_with_more_models(family, monkeypatch, name, page, view):
    check(family(name), monkeypatch, page, view)
