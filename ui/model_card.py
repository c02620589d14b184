"""The card of the chosen shipped model, behind a button in the sidebar."""

from __future__ import annotations

import functools

import streamlit as st

from bert_core.load import SHIPPED, shipped_names
from bert_core.training.cards import read_card, to_markdown


@functools.lru_cache(maxsize=16)
def text(name: str) -> str | None:
    """The card as Markdown, None where a model has none (loaded from a folder or the hub)."""
    if name not in shipped_names():
        return None
    found = read_card(SHIPPED / name)
    return to_markdown(found) if found else None


def draw(name: str | None) -> None:
    """A button that opens the card, where there is one."""
    if name and text(name) and st.sidebar.button("Model card", key="model_card", width="stretch"):
        _open(name)


@st.dialog("Model card", width="large")
def _open(name: str) -> None:
    st.markdown(text(name))
