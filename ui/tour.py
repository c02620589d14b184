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


def stop_for(page: str, view: str) -> int | None:
    """The stop that speaks of what is on screen, if there is one: of this view, else of the page as a whole."""
    here = [n for n, stop in enumerate(stops()) if stop["page"] == page]
    of_view = [n for n in here if stops()[n]["link"].get("view") == view]
    return next(iter(of_view or [n for n in here if "view" not in stops()[n]["link"]]), None)


def draw(page: str) -> None:
    """The stop for what is on screen, or the way back to the last one; nothing where no tour is running.

    Args:
        page: name of the page on screen: the browser's Back and the sidebar leave a stop too.
    """
    last = st.session_state.get("_tour")
    if last is None:
        return
    at = stop_for(page, state.open_view())
    with st.container(key="bw_tour"):
        if at is None:
            _draw_way_back(last)
        else:
            st.session_state["_tour"] = at
            _draw_stop(at)


def _draw_stop(at: int) -> None:
    """What there is to see here, and the way on."""
    stop = stops()[at]
    buttons = [("Next stop", "_tour_next", at + 1)] if at + 1 < len(stops()) else []
    _draw_box(f"{_numbered(at)}: {stop['title']}", stop["words"], buttons)


def _draw_way_back(last: int) -> None:
    """A line on a page that the tour doesn't show."""
    _draw_box("The tour waits", f"You were at {_numbered(last)}: {stops()[last]['title']}.",
              [("Back to the tour", "_tour_back", last)])


def _numbered(at: int) -> str:
    return f"{at + 1} of {len(stops())}"


def _draw_box(title: str, words: str, buttons: list[tuple[str, str, int]]) -> None:
    """The words, and below them the buttons: what each says, its key, and the stop that it goes to."""
    st.html(f'<div class="bw-reveal" role="status"><p><strong>{html.escape(title)}</strong></p>'
            f"<p>{html.escape(words)}</p></div>")
    with st.container(horizontal=True):
        for label, key, at in buttons:
            st.button(label, key=key, type="primary", on_click=go_to, args=(at,))
        st.button("End the tour", key="_tour_end", on_click=end)
