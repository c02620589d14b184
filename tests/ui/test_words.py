"""Longer words lie in assets, by language; the code holds labels and short lines."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from ui import shell, words

UI = Path(words.__file__).parent
#: Views whose longer prose is kept in assets.
VIEWS = sorted(path for name in ("family", "code", "class") for path in UI.glob(f"views/{name}*.py"))
MOST_SENTENCES = 2


def texts(tree: ast.Module) -> list[str]:
    """Every string that isn't a docstring; what stands between braces as '0'."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings = {id(node.body[0].value) for node in ast.walk(tree)
                  if isinstance(node, documented) and ast.get_docstring(node) is not None}
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            found.append("".join(part.value if isinstance(part, ast.Constant) else "0" for part in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings | inner:
            found.append(node.value)
    return found


def sentences(text: str) -> int:
    return len(re.findall(r"\w[.!?](?:\s|$)", text))


@pytest.mark.parametrize("path", VIEWS, ids=lambda path: path.name)
def test_long_prose_is_not_in_the_code(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert [text for text in texts(tree) if sentences(text) > MOST_SENTENCES] == []


def test_sentences_are_counted_across_the_pieces_of_a_string():
    tree = ast.parse('"""One. Two. Three."""\nf"A {x}. B is 1.5. " f"C is {y}!"')
    assert [sentences(text) for text in texts(tree)] == [3]


def test_the_folder_of_a_language_is_named_once():
    named = [path.name for path in UI.rglob("*.py")
             if re.search(r"""(?<!lang=)["'/]en(?:\.toml)?["'/]""", path.read_text(encoding="utf-8"))]
    assert named == ["words.py"]


def test_words_of_the_language_are_there():
    assert all(place.exists() for place in (words.PROSE, words.LESSONS, words.GLOSSARY))


def test_a_number_and_its_percent_sign_stay_on_one_line():
    assert shell.inline("keeps **95 %** of it, 3.5 % less") == "keeps <strong>95\u00a0%</strong> of it, 3.5\u00a0% less"
