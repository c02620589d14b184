"""The house rules of pages, words and addresses."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

from ui import shell

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((ROOT / "pages").glob("*.py"))
NAMES = [name for pages in shell.PAGES.values() for name, _ in pages]
FORBIDDEN = {"torch", "numpy", "plotly"}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_page_defines_and_computes_nothing(path):
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    assert not [node for node in ast.walk(tree) if isinstance(node, kinds)]
    imported = {alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import)
                for alias in node.names}
    imported |= {(node.module or "").split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not imported & FORBIDDEN
    assert len(source.splitlines()) < 80
    assert ast.get_docstring(tree)


def test_every_script_has_its_address():
    assert {path.stem for path in SCRIPTS} <= set(NAMES)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_page_says_its_question_how_to_read_it_and_what_it_does_not_prove(path):
    words = tomllib.loads((shell.PROSE / f"{path.stem}.toml").read_text(encoding="utf-8"))
    assert words["question"]
    assert words["lead"]
    assert words.get("read") or all(words["reading"].values())
    assert words["not_proven"]


def test_only_ui_imports_streamlit():
    for path in (ROOT / "bert_core").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [m for m in modules if m.split(".")[0] in ("streamlit", "ui")], path


def test_prose_is_escaped_before_it_is_styled():
    assert shell.inline("<b>x</b> `a<b` *soft* **loud**") == (
        "&lt;b&gt;x&lt;/b&gt; <code>a&lt;b</code> <em>soft</em> <strong>loud</strong>")
