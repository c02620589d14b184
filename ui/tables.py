"""Tables as HTML: readable at 390 pixels, printable, and reachable by keyboard."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import NamedTuple

import streamlit as st


class Numbers(NamedTuple):
    """What a chart shows, as rows; each begins with its name."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


def table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = (),
          stacked: bool = False, named: bool = False) -> str:
    """A table that scrolls sideways by itself where the page is narrow.

    Args:
        caption, columns, rows: plain text, escaped here.
        numbers: indices of columns set flush right.
        stacked: where the page is narrow, each row becomes a card instead; for
            tables of sentences.
        named: the first cell of a row is its heading.

    Returns:
        HTML for `st.html`.
    """
    def cell(scope: str, index: int, text: str) -> str:
        tag = "th" if scope else "td"
        about = f' scope="{scope}"' if scope else f' data-label="{html.escape(columns[index], quote=True)}"'
        kind = ' class="bw-number"' if index in numbers else ""
        return f"<{tag}{about}{kind}>{html.escape(text)}</{tag}>"

    def line(row: Sequence[str]) -> str:
        return "".join(cell("row" if named and n == 0 else "", n, text) for n, text in enumerate(row))

    head = "".join(cell("col", n, text) if text else "<td></td>" for n, text in enumerate(columns))
    body = "".join(f"<tr>{line(row)}</tr>" for row in rows)
    return frame(caption, head, body, "bw-table bw-stacked" if stacked else "bw-table")


def frame(caption: str, head: str, body: str, kind: str) -> str:
    """A table around cells and rows that are HTML already; it scrolls sideways by itself.

    Args:
        caption: plain text, escaped here.
        head, body: the heading's cells, and the rows.
        kind: classes of the table.
    """
    label = html.escape(caption, quote=True)
    return (f'<div class="bw-scroll" role="region" tabindex="0" aria-label="{label}"><table class="{kind}">'
            f"<caption>{html.escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>")


def written(numbers: Numbers) -> str:
    """The numbers as a table, HTML for `st.html`."""
    rows = [[_written(value) for value in row] for row in numbers.rows]
    flush = [n for n in range(1, len(numbers.columns)) if any(isinstance(row[n], int | float) for row in numbers.rows)]
    return table(numbers.caption, numbers.columns, rows, flush, named=True)


def show(numbers: Numbers, is_open: bool = False, summary: str = "The numbers as a table") -> None:
    """Draw the numbers behind a disclosure."""
    st.html(f'<details class="bw-behind"{" open" if is_open else ""}><summary>{html.escape(summary)}</summary>'
            f"{written(numbers)}</details>")


def show_growing(*tables: Numbers) -> None:
    """The same for numbers that change while one looks: redrawn, it stays open and where it was scrolled to."""
    with st.expander("The numbers as a table"), st.container(height=260, border=False):
        for numbers in tables:
            st.html(written(numbers))


def _written(value: object) -> str:
    if isinstance(value, float) and math.isnan(value):  # nothing was measured there
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
