"""The house rules that prose alone would not hold: who imports whom, what a page may be, how code looks."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "pages").glob("*.py"))
SOURCES = sorted(path for folder in ("bert_core", "ui", "pages", "bench", "scripts", "tests")
                 for path in (ROOT / folder).rglob("*.py"))
HEAVY = {"torch", "numpy", "plotly", "pandas", "transformers", "safetensors"}


def imported(tree: ast.AST) -> set[str]:
    """First names of every module that a file imports."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return found


def run(*command: str) -> subprocess.CompletedProcess:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_imports_go_one_way():
    """The contracts of .importlinter."""
    code = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"
    done = run(sys.executable, "-c", code)
    assert done.returncode == 0, done.stdout


def test_ruff_finds_nothing():
    done = run(sys.executable, "-m", "ruff", "check", "--no-cache", ".")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_page_only_puts_things_together(page):
    text = page.read_text(encoding="utf-8")
    tree = ast.parse(text)
    defined = [node for node in ast.walk(tree)
               if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    assert not defined
    assert not imported(tree) & HEAVY
    assert len(text.splitlines()) < 80


def test_no_form_is_emptied_by_the_browser():
    """It does so at the first of two clicks; a busy server takes the second one's words, none, for both."""
    found = [path.name for path in (ROOT / "ui").rglob("*.py") if "clear_on_submit=True" in path.read_text("utf-8")]
    assert found == []


def test_every_page_of_the_design_is_there():
    wanted = {"tokens", "embeddings", "masking", "attention", "compare", "cls", "meaning", "pretrain", "finetune",
              "tasks", "family", "code", "class"}
    assert wanted <= {page.stem.rstrip("_") for page in PAGES}


def faults(path: Path) -> list[str]:
    """What the house can't have in a file."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    wrong = {
        "more than 450 lines": len(text.splitlines()) > 450,
        "no docstring": text.strip() and not ast.get_docstring(tree),
        "something left to do": any(word in text for word in ("TO" + "DO", "FIX" + "ME", "X" + "XX")),
        "streamlit": (path.parts[len(ROOT.parts)] not in ("ui", "pages", "tests", "bench")
                      and "streamlit" in imported(tree)),
    }
    return [fault for fault, is_there in wrong.items() if is_there]


def test_a_file_can_be_read_in_a_sitting_and_says_what_it_is():
    found = {str(path.relative_to(ROOT)): faults(path) for path in SOURCES}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
    assert len(found) > 500
