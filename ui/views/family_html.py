"""Headings, small print and lists of words as HTML, for pages that draw them with tables in one element."""

from __future__ import annotations

import functools
import html
import tomllib
from typing import Any

import streamlit as st

from ui import shell


def heading(text: str, level: int = 2) -> str:
    """A heading inside a page."""
    return f'<h{level} class="bw-sub">{html.escape(text)}</h{level}>'


def small(text: str) -> str:
    """A line in small type below a picture, such as its source."""
    return f'<p class="bw-small">{html.escape(text)}</p>'


@functools.cache
def words_of(page: str) -> dict[str, Any]:
    """A page's prose as data, for lists that the frame doesn't know; treat it as read-only."""
    return tomllib.loads((shell.PROSE / f"{page}.toml").read_text(encoding="utf-8"))


def draw(*parts: str) -> None:
    """Show HTML made here, in one element."""
    st.html("".join(parts))
