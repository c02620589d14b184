"""A first visit: a line that offers a tour of a minute, and the tour."""

from __future__ import annotations

import functools
import html
import tomllib
from typing import Any

import streamlit as st

from bert_core.serving.rooms import View
from ui import going, state
from ui.words import PROSE


@functools.cache
def stops() -> tuple[dict[str, Any], ...]:
    """The stops of the tour: title, words, page, and the values shown there."""
    return tuple(tomllib.loads((PROSE / "class.toml").read_text(encoding="utf-8"))["tour"])


def offer(at_root: bool) -> str:
    """A line of HTML for who comes to the bare address and has changed nothing yet, else ''.

    It joins the heading's element, so that it costs no element and nothing
    moves when it goes.
    """
    untouched = st.session_state.get("text", state.DEFAULT_TEXT) == state.DEFAULT_TEXT
    if not at_root or not untouched or "_tour" in st.session_state or st.query_params.to_dict():
        return ""
    return '<p class="bw-offer">New here? <a href="?tour=1" target="_self">Take the tour, one minute</a></p>'


def go_to(at: int) -> None:
    """Go to a stop; for use in a callback."""
    stop = stops()[at]
    st.session_state["_tour"] = at
    going.to(View(stop["page"], tuple(stop["link"].items())))


def end() -> None:
    """No tour any more in this session."""
    st.session_state["_tour"] = None


def begin() -> None:
    """Start the tour if the address asks for it."""
    if st.query_params.get("tour") is not None:
        del st.query_params["tour"]
        go_to(0)


def draw() -> None:
    """The stop one is at; nothing where no tour is running."""
    at = st.session_state.get("_tour")
    if at is None:
        return
    stop, last = stops()[at], at == len(stops()) - 1
    with st.container(key="bw_tour"):
        st.html(f'<div class="bw-reveal" role="status"><p><strong>{at + 1} of {len(stops())}: '
                f'{html.escape(stop["title"])}</strong></p><p>{html.escape(stop["words"])}</p></div>')
        with st.container(horizontal=True):
            if not last:
                st.button("Next stop", key="_tour_next", type="primary", on_click=go_to, args=(at + 1,))
            st.button("End the tour", key="_tour_end", on_click=end)
