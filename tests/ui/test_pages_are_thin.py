"""Every page has its address and its words."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from ui import shell

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((ROOT / "pages").glob("*.py"))
NAMES = [name for pages in shell.PAGES.values() for name, _ in pages]


def test_every_script_has_its_address():
    assert {path.stem for path in SCRIPTS} <= set(NAMES)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_page_says_its_question_how_to_read_it_and_what_it_does_not_prove(path):
    words = tomllib.loads((shell.PROSE / f"{path.stem}.toml").read_text(encoding="utf-8"))
    assert words["question"]
    assert words["lead"]
    assert words.get("read") or all(words["reading"].values())
    assert words["not_proven"]
    assert {*words.get("not_proven_by", {})} <= {*words.get("reading", {})}


def test_a_view_says_what_it_does_not_prove_and_leaves_out_what_another_does_not():
    swap, fill = shell.prose("masking", "Swap vectors").below, shell.prose("masking", "Fill the gap").below
    assert "A vector that moves the answer" in swap
    assert "A vector that moves the answer" not in fill
    for below in (swap, fill):
        assert "A high probability says what is usual" in below


def test_prose_is_escaped_before_it_is_styled():
    assert shell.inline("<b>x</b> `a<b` *soft* **loud**") == (
        "&lt;b&gt;x&lt;/b&gt; <code>a&lt;b</code> <em>soft</em> <strong>loud</strong>")
