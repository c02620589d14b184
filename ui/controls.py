"""Widgets whose value is in the address.

`key` is the parameter's name in the address and, with the same meaning, may be
used on several pages ('layer', 'head'). Streamlit drops a value of a link that
can't be used without a word; these say so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ui import going, state

#: Up to so many short options stand side by side, where one or any number is chosen; more go into a list.
SIDE_BY_SIDE, PILLS = 9, 12
#: Guesses of a gap that are shown until one asks for more or fewer, on every page.
GUESSES = 6
#: What Streamlit's buttons would read as Markdown, an icon or an arrow; a list shows every text as it is.
MARKUP = re.compile(
    r"[\\`*~\n]|(?<!\w)_|_(?!\w)|\$.*\$|\](?:\(|\[|:)|:\w+\[|:[\w+/-]+:|&#?\w+;|--|->|<-|[<>]=|<\w+:"  # anywhere
    r"|^\s|^(?:#{1,6}|[-+]|\d+[.)])(?:\s|$)|^>")  # at its beginning


#: Whatever Streamlit could read as Markdown, an icon, an arrow or an entity; a backslash before it keeps it as it is.
_SIGNS = re.compile(r"[!-/:-@\[-`{-~]")


def literal(text: str) -> str:
    """A text as (part of) a label, caption or help, which are Markdown: it shows there as it is."""
    return _SIGNS.sub(r"\\\g<0>", " ".join(text.split()))


def _from_link(key: str, is_good: Callable[[str], bool], values: Sequence[str] | None = None) -> None:
    """Say it if the address brings a value that the widget will drop.

    Args:
        values: all that the address brings under this name; None: the last of them counts.
    """
    going.remember(key)
    if key in st.session_state:
        return
    for raw in st.query_params.get_all(key)[-1:] if values is None else values:
        if not is_good(raw):
            state.drop(key, raw)


def _keep_valid(key: str, is_good: Callable[[object], bool]) -> None:
    """Forget a value that the present options don't have (another model, a shorter text)."""
    if key in st.session_state and not is_good(st.session_state[key]):
        if str(st.session_state[key]).startswith(state.MADE):  # of another visit: another answers in its place
            state.drop(key, st.session_state[key])
        del st.session_state[key]


def _as_buttons(options: Sequence[str], most: int) -> bool:
    """Whether they are few, and buttons would show each as it stands: names from a visitor's table may not be."""
    return len(options) <= most and not any(map(MARKUP.search, options))


def choice(
    label: str, options: Sequence[str], key: str, default: str | None = None,
    help: str | None = None, as_list: bool = False, hide_label: bool = False,
) -> str:
    """One of some words; side by side if they are few and plain, else a list.

    Args:
        options: distinct texts, shown and linked as they are.
        default: the first if None.
        as_list: a list in any case.
    """
    options = list(options)
    start = default if default in options else options[0]
    _from_link(key, lambda raw: raw in options)
    _keep_valid(key, lambda value: value in options)
    shown = "collapsed" if hide_label else "visible"
    if _as_buttons(options, SIDE_BY_SIDE) and not as_list:
        return st.segmented_control(label, options, default=start, key=key, required=True, help=help,
                                    label_visibility=shown, bind="query-params")
    return st.selectbox(label, options, index=options.index(start), key=key, help=help,
                        label_visibility=shown, bind="query-params")


def row() -> DeltaGenerator:
    """A container whose widgets stand side by side: `with controls.row(): ...`"""
    return st.container(horizontal=True, vertical_alignment="bottom", gap="medium")


def view(options: Sequence[str], key: str = "view", label: str = "View") -> str:
    """Which of a page's pictures is open; only that one is computed."""
    return choice(label, options, key, hide_label=True)


def many(label: str, options: Sequence[str], key: str, default: Sequence[str] = ()) -> list[str]:
    """Any number of some words."""
    options = list(options)
    _from_link(key, lambda raw: raw in options, st.query_params.get_all(key))
    _keep_valid(key, lambda value: isinstance(value, list) and all(v in options for v in value))
    as_pills = _as_buttons(options, PILLS)
    pick, extra = (st.pills, {"selection_mode": "multi"}) if as_pills else (st.multiselect, {})
    return list(pick(label, options, default=list(default), key=key, bind="query-params", **extra))


def toggle(label: str, key: str, help: str | None = None) -> bool:
    """On or off."""
    _from_link(key, lambda raw: raw.lower() in ("true", "false", "1", "0"))
    return st.toggle(label, key=key, help=help, bind="query-params")


def slider(
    label: str, low: int, high: int, key: str, default: int, step: int = 1, help: str | None = None,
    width: int | str = 260,
) -> int:
    """A whole number between two ends; with one possible value no slider is drawn."""
    if high <= low:
        return low
    _from_link(key, lambda raw: _is_number(raw, low, high, step))
    _keep_valid(key, lambda value: isinstance(value, int) and low <= value <= high and (value - low) % step == 0)
    start = min(max(default, low), high)
    return st.slider(label, low, high, start, step=step, key=key, help=help, width=width, bind="query-params")


def guesses() -> int:
    """How many guesses of a gap to show: the same choice on every page."""
    return slider("Guesses", 3, 20, "k", GUESSES, width=180)


def number(
    label: str, low: float, high: float, key: str, default: float, step: float = 1, help: str | None = None,
    width: int | str = 200,
) -> float:
    """A number one types; whole if all of low, high, default and step are."""
    whole = all(isinstance(value, int) for value in (low, high, default, step))
    _from_link(key, lambda raw: _is_number(raw, low, high, 1 if whole else None))
    _keep_valid(key, lambda value: value is not None and low <= value <= high)
    return st.number_input(label, low, high, default, step=step, key=key, help=help, width=width,
                           bind="query-params")


def text(
    label: str, key: str, default: str = "", max_chars: int = 1000, placeholder: str | None = None,
    help: str | None = None,
) -> str:
    """A line of text that the picture follows while one types."""
    from ui import settings

    _from_link(key, lambda raw: len(raw) <= max_chars)
    return st.text_input(label, value=default, max_chars=max_chars, key=key, placeholder=placeholder, help=help,
                         live=settings.typing_pause(), bind="query-params") or ""


def lines(label: str, key: str, max_chars: int, placeholder: str | None = None) -> list[str]:
    """Lines of text, without blanks around them and without the empty ones."""
    _from_link(key, lambda raw: len(raw) <= max_chars)
    typed = st.text_area(label, key=key, height="content", max_chars=max_chars, placeholder=placeholder,
                         bind="query-params") or ""
    return [line.strip() for line in typed.splitlines() if line.strip()]


def _is_number(raw: str, low: float, high: float, step: int | None) -> bool:
    """Whether it is a number between the ends; with a step, a whole one so many steps from the lower end."""
    try:
        value = float(raw)
    except ValueError:
        return False
    return low <= value <= high and (step is None or (value - low) % step == 0)
