"""Canvas components: from arrays to bytes to the browser, and messages back.

A component NAME is assets/components/NAME.js (its default export draws), with
its parts NAME.*.js before it and NAME.css if it has one; `_base.js` with its
parts and `tokens.css` stand before every one (ui/served.py sends them).
Data travels as raw bytes: equal bytes are not sent again and draw nothing anew.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from bert_core.figures import theme
from ui import served, tables

#: Array types that JavaScript has a view for.
DTYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "float32")


class BadMessage(ValueError):
    """A component sent something that it never sends by itself."""


def pack(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray] | None = None) -> bytes:
    """One payload: 4 bytes length of the JSON, the JSON, then the arrays.

    Args:
        header: what JSON can hold; no key 'arrays'.
        arrays: name -> array of one of DTYPES, any shape. They follow in C
            order, each from a multiple of 8 bytes after the JSON's end.

    Returns:
        Bytes that `unpack` of _base.js reads to the header with `arrays`:
        name -> {shape, data}.
    """
    index, chunks, offset = [], [], 0
    for name, array in (arrays or {}).items():
        if array.dtype.name not in DTYPES:
            raise ValueError(f"array {name!r} is {array.dtype.name}; choose one of {', '.join(DTYPES)}")
        raw = np.ascontiguousarray(array).tobytes()
        index.append([name, array.dtype.name, list(array.shape), offset, len(raw)])
        padding = -len(raw) % 8
        chunks.append(raw + b"\0" * padding)
        offset += len(raw) + padding
    text = json.dumps({**header, "arrays": index}, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    encoded = text.encode("ascii")
    encoded += b" " * (-(len(encoded) + 4) % 8)
    return struct.pack("<I", len(encoded)) + encoded + b"".join(chunks)


@dataclass(frozen=True)
class Charts:
    """How this visitor's charts differ from the usual ones (ui/presenter.py).

    Attributes:
        scale: of their type.
        highest: pixels that one may be high; None is no bound.
    """

    scale: float = 1.0
    highest: int | None = None


#: Where the session keeps its Charts.
CHARTS = "_charts"


@st.cache_resource(show_spinner=False)
def _renderer(name: str, isolated: bool) -> Callable[..., Any]:
    return st.components.v2.component(f"bothways.{name}", js=served.loader(name), isolate_styles=isolated)


def mount(
    name: str,
    key: str,
    data: bytes,
    on_event: Callable[[dict[str, Any]], None] | None = None,
    height: int | str = "content",
    isolated: bool = True,
) -> None:
    """Draw component `name` with `data`.

    Args:
        name: of the files in assets/components.
        key: stable and unique on the page.
        data: from `pack`; keep it deterministic.
        on_event: called before the next run with each message the component
            sent by `send(component, {...})`; it checks the message with
            `number`, `numbers` or `word` below. A message that fails is
            dropped.
        height: pixels, or 'content'.
    """

    def receive() -> None:
        state = st.session_state.get(f"c_{key}")
        message = state.get("event") if state is not None else None
        if on_event is None or not isinstance(message, dict):
            return
        try:
            on_event(message)
        except BadMessage:
            return

    _renderer(name, isolated)(key=f"c_{key}", data=data, height=height, on_event_change=receive)


def charts_wanted() -> Charts:
    """How large this session draws its charts."""
    return st.session_state.get(CHARTS, Charts())


def chart(figure: Any, key: str, shows: tables.Numbers | str) -> None:
    """Draw a plotly figure as wide as the page, without its tool bar.

    Args:
        shows: what it shows, for who has no pointer: its numbers, as a table behind a disclosure, whose caption is
            the chart's name; or the name alone, where the page has the numbers elsewhere.
    """
    name = shows if isinstance(shows, str) else shows.caption
    _draw(_made_ready(figure, name, ink(), charts_wanted()), key)
    if not isinstance(shows, str):
        tables.show(shows)


def shared_chart(make: Callable[[], Any], drawn_of: tuple[Hashable, ...], key: str, name: str) -> None:
    """As `chart`, for what a whole class may look at: made once for all sessions that see the same.

    Args:
        make: gives the figure.
        drawn_of: all that the figure depends on, the page's ink and the session's wishes apart.
        name: for who has no pointer.
    """
    _draw(_made_once((key, *drawn_of), name, ink(), charts_wanted(), make), key)


@st.cache_resource(show_spinner=False, max_entries=200)
def _made_once(drawn_of: tuple[Hashable, ...], name: str, ink: str, wanted: Charts, _make: Callable[[], Any]) -> Any:
    return _made_ready(_make(), name, ink, wanted)


def _made_ready(figure: Any, name: str, ink: str, wanted: Charts) -> Any:
    shown = theme.enlarge(theme.on_page(figure, ink), wanted.scale, wanted.highest)
    return shown.update_layout(
        autotypenumbers="strict",  # "12" among words is a word; Streamlit drops the template that says so
        meta={"name": name})  # ready.charts.js reads it


def _draw(ready: Any, key: str) -> None:
    """Draw a figure, which stays as it is."""
    st.plotly_chart(ready, key=f"f_{key}", theme="streamlit", config={"displayModeBar": False})


def ink() -> str:
    """Colour of the page's text, for figures that must name it: a browser that has not said its theme is light."""
    return theme.INK.get(st.context.theme.type or "light", theme.INK["light"])


# --- checking messages -------------------------------------------------------


def number(message: Mapping[str, Any], field: str, count: int) -> int:
    """A whole number of 0 to count-1."""
    value = message.get(field)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < count:
        raise BadMessage(f"{field} is no number below {count}")
    return value


def numbers(message: Mapping[str, Any], field: str, count: int) -> tuple[int, ...]:
    """Different whole numbers of 0 to count-1, sorted."""
    values = message.get(field)
    if not isinstance(values, list) or len(values) > count:
        raise BadMessage(f"{field} is no list of at most {count}")
    return tuple(sorted({number({field: value}, field, count) for value in values}))


def word(message: Mapping[str, Any], field: str, allowed: tuple[str, ...]) -> str:
    """One of the allowed words."""
    value = message.get(field)
    if value not in allowed:
        raise BadMessage(f"{field} is none of {', '.join(allowed)}")
    return value
