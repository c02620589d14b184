"""The published figures the explorer may show, each with its source, as plain data.

Everything here is read from `assets/facts`: a figure that isn't there is not
shown. What is computed there is recomputed by the tests.
"""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bert_core.config import BertConfig

FACTS = Path(__file__).resolve().parent.parent / "assets" / "facts"


@functools.cache
def read_facts(name: str) -> dict[str, Any]:
    """One file of `assets/facts`, parsed; treat it as read-only.

    Raises:
        ValueError: there is no such file.
    """
    path = FACTS / f"{name}.toml"
    if not path.is_file():
        there = ", ".join(sorted(p.stem for p in FACTS.glob("*.toml")))
        raise ValueError(f"no facts called {name!r}; there are {there}")
    return tomllib.loads(path.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class KnownSize:
    """A published architecture and its number of parameters."""

    name: str
    what: str
    parameters: int
    heads: tuple[str, ...]
    config: BertConfig


@functools.cache
def known_sizes() -> tuple[KnownSize, ...]:
    """Every model of `sizes.toml`, bert-base first."""
    return tuple(
        KnownSize(m["name"], m["what"], m["parameters"], tuple(m["heads"]), BertConfig(**m["config"]))
        for m in read_facts("sizes")["model"]
    )


@dataclass(frozen=True)
class PaperTable:
    """One table of the paper, as text cells."""

    key: str
    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@functools.cache
def paper_tables() -> tuple[PaperTable, ...]:
    """The result tables of `paper.toml`, in the order in which they are shown."""
    return tuple(
        PaperTable(t["key"], t["title"], t["note"], tuple(t["columns"]), tuple(tuple(r) for r in t["rows"]))
        for t in read_facts("paper")["table"]
    )
