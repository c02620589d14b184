"""Checkpoints as others make them, with something odd about them: what the pages say of such a model is true."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from tokenizers import Tokenizer

from tests.payloads import plain_line, visit


@pytest.fixture
def own(tmp_path, monkeypatch) -> Callable[[str], Path]:
    """own(folder) -> a copy of a checkpoint, to be changed, where visitors may open it."""
    monkeypatch.setenv("BOTH_WAYS_FOLDERS", str(tmp_path))
    return lambda folder: Path(shutil.copytree(folder, tmp_path / "own"))


def look(folder: Path | str, page: str, view: str, **parameters: object) -> AppTest:
    return visit(page, model=str(folder), view=view, **parameters)


@pytest.mark.parametrize(("page", "view"), [
    ("embeddings", "Neighbours"), ("embeddings", "The sum"), ("code", "Stages"), ("code", "Walk"), ("code", "Script")])
def test_a_piece_that_only_the_tokenizer_knows_is_one_line(own, tiny_bert, page, view):
    folder = own(tiny_bert)
    fast = Tokenizer.from_file(str(folder / "tokenizer.json"))
    count = fast.get_vocab_size()
    fast.add_tokens(["xylophone"])
    fast.save(str(folder / "tokenizer.json"))
    at = look(folder, page, view, text="a xylophone barked", token=2)
    assert plain_line(at).startswith(f"vocabulary id {count} is outside 0 to {count - 1}")
