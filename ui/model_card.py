"""The card of the chosen shipped model, behind a button in the sidebar."""

from __future__ import annotations

import functools
from typing import Any

import streamlit as st

from bert_core.load import SHIPPED, shipped_names
from bert_core.training.cards import read_card, to_markdown

_OPEN = "_model_card_open"


@functools.lru_cache(maxsize=16)
def card(name: str) -> dict[str, Any] | None:
    """The card as data, None where a model has none (loaded from a folder or the hub)."""
    return read_card(SHIPPED / name) if name in shipped_names() else None


@functools.lru_cache(maxsize=16)
def text(name: str) -> str | None:
    """The card as Markdown, None where there is none; kept, as every run of every page asks whether there is one."""
    found = card(name)
    return to_markdown(found) if found else None


def score(name: str, task: str, metric: str) -> dict[str, Any] | None:
    """A measured figure of the card (`value`, `std`, `n`, `command`), None where there is none."""
    scores = (card(name) or {}).get("scores", ())
    return next((one for one in scores if (one["task"], one["metric"]) == (task, metric)), None)


def draw(name: str | None) -> None:
    """A button that opens the card, where there is one."""
    if not name or not text(name):
        _keep_open(False)
        return
    st.sidebar.button("Model card", key="model_card", width="stretch", on_click=_keep_open, args=(True,))
    if st.session_state.get(_OPEN, False):
        _open(name)


def _keep_open(is_open: bool) -> None:
    """Whether the card is open after this run: a teacher's next key draws the page anew, and closes nobody's card."""
    st.session_state[_OPEN] = is_open


@st.dialog("Model card", width="large", on_dismiss=lambda: _keep_open(False))
def _open(name: str) -> None:
    st.markdown(text(name))
