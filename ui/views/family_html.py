"""Tables and cards as HTML: readable at 390 pixels, printable, and reachable by keyboard."""

from __future__ import annotations

import functools
import html
import tomllib
from collections.abc import Sequence
from typing import Any

import streamlit as st

from ui import shell


def table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = (),
          stacked: bool = False) -> str:
    """A table that scrolls sideways by itself where the page is narrow.

    Args:
        caption, columns, rows: plain text, escaped here.
        numbers: indices of columns set flush right.
        stacked: where the page is narrow, each row becomes a card instead; for
            tables of sentences.

    Returns:
        HTML for `draw`.
    """
    def cell(tag: str, index: int, text: str) -> str:
        scope = ' scope="col"' if tag == "th" else f' data-label="{html.escape(columns[index], quote=True)}"'
        kind = ' class="bw-number"' if index in numbers else ""
        return f"<{tag}{scope}{kind}>{html.escape(text)}</{tag}>"

    head = "".join(cell("th", n, text) if text else "<td></td>" for n, text in enumerate(columns))
    body = "".join("<tr>" + "".join(cell("td", n, text) for n, text in enumerate(row)) + "</tr>" for row in rows)
    label, kind = html.escape(caption, quote=True), "bw-table bw-stacked" if stacked else "bw-table"
    return (f'<div class="bw-scroll" role="region" tabindex="0" aria-label="{label}"><table class="{kind}">'
            f"<caption>{html.escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>")


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
