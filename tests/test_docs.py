"""What is written about the house names files, commands and settings that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "assets").rglob("*.md")])
FOLDERS = ("assets", "bench", "bert_core", "deploy", "docs", "notebooks", "pages", "scripts", "tests", "ui")
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*")
                 if path.suffix in (".py", ".js", ".css", ".sh", ".c", ".conf", ".yaml", ".toml"))
#: A file of one of the folders; a word in capitals stands for any name.
FILE = re.compile(rf"(?<![\w/.${{}}<>-])(?:{'|'.join(FOLDERS)})/[\w./*-]*\.[a-z]\w*")
SETTING = re.compile(r"\bBOTH_WAYS_[A-Z_]+\b")


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def marked(path: Path) -> list[str]:
    """What stands between backticks."""
    return [mark for line in lines(path) for mark in re.findall(r"`([^`]+)`", line)]


def is_there(name: str) -> bool:
    return any(ROOT.glob(re.sub(r"\b[A-Z]{4,}\b", "*", name)))


def heading(line: str) -> str:
    """The address that a heading has within its page."""
    return re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_s_links_lead_somewhere(path):
    for link in re.findall(r"\]\(([^)\s]+)\)", "\n".join(lines(path))):
        if link.startswith(("http:", "https:", "mailto:")):
            continue
        name, _, place = link.partition("#")
        target = path.parent / name if name else path
        assert target.exists(), link
        assert not place or place in {heading(line) for line in lines(target) if line.startswith("#")}, link


@pytest.mark.parametrize("path", [page for page in PAGES if page.name != "CHANGELOG.md"],
                         ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_names_files_and_commands_that_are_there(path):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    benchmarks = {one.stem for one in (ROOT / "bench").glob("[a-z]*.py")}
    for mark in marked(path):
        assert not [name for name in FILE.findall(mark) if not is_there(name)]
        assert set(re.findall(r"^make ([a-z-]+)", mark)) <= targets, mark
        assert set(re.findall(r"-m bench ([a-z_]+)", mark)) <= benchmarks, mark


def test_sources_name_files_that_are_there():
    named = {(name, path) for path in SOURCES for name in FILE.findall(path.read_text(encoding="utf-8"))}
    assert not [one for one in named if not is_there(one[0])]


def test_every_setting_is_written_down_and_every_one_written_down_is_read():
    documents = set(SETTING.findall("\n".join(page.read_text(encoding="utf-8") for page in PAGES)))
    texts = {path: path.read_text(encoding="utf-8") for path in SOURCES}
    in_house = {name for path, text in texts.items() if path.relative_to(ROOT).parts[0] in ("bert_core", "ui")
                for name in SETTING.findall(text)}
    assert in_house <= documents
    assert documents <= {name for text in texts.values() for name in SETTING.findall(text)}
