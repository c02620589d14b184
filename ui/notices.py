"""Short lines to the visitor, and the sign that a page is drawn."""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Sequence

import streamlit as st

from ui import components, served

_runs = itertools.count(1)


#: A quotation with a letter of a script that runs from right to left.
_RIGHT_TO_LEFT = re.compile("“[^”]*[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc][^”]*”")


def unbroken(text: str) -> str:
    """The same text: numbers and their % stay on one line, a right-to-left quotation turns none beside it round."""
    text = _RIGHT_TO_LEFT.sub(lambda found: f"\u2068{found[0]}\u2069", text)
    return re.sub(r"(\d) %", "\\1\u00a0%", text)


def problem(text: str) -> None:
    """What went wrong and what to do, one line."""
    st.html(f'<p class="bw-notice bw-problem" role="alert">{html.escape(unbroken(text))}</p>')


def note(text: str) -> None:
    """Something worth knowing about the picture (a cut, a dropped value), one line."""
    st.html(f'<p class="bw-notice" role="status">{html.escape(unbroken(text))}</p>')


def result(text: str) -> None:
    """A number or finding in one sentence, as part of the picture."""
    st.html(f'<p class="bw-result">{html.escape(unbroken(text))}</p>')


def ready(text: str, status: str, lines: Sequence[str] = (), read: str = "") -> None:
    """The last element of every run: the status bar, with `data-ready` and `data-text`.

    Args:
        text: the input that the page has drawn for.
        status: model, device and size of what is on screen.
        lines: what else there is to say, such as values of a link that were dropped.
        read: the input in words, for paper, where no field shows it.
    """
    data = components.pack({"text": text, "status": status, "lines": list(lines), "input": read, "run": next(_runs),
                            "style": served.address("app", "css")})
    components.mount("ready", "ready", data, isolated=False)
