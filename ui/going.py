"""Going somewhere as a whole: a page with its sentence and controls, in the same session.

A plain link would start a new session, and Streamlit lets what is on screen win
over the address, so that a lesson, a room or the tour sets the values itself.
"""

from __future__ import annotations

import time
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from bert_core.serving.rooms import Value, View

_GOING = "_going"
#: Page -> values of its parameters for who comes back by a plain link.
_KEPT = "_kept"
#: Set while one goes there from another page.
_CAME = "_came"
#: Keys of the shared inputs; controls add theirs (see `remember`).
SHARED = ("text", "pair", "model")
#: Parameters of the address: the step of a lesson which opened the page, and a lesson of a teacher's own, packed.
STEP, PLAN = "doing", "plan"
#: Parameters of the address that are the visitor's own and never travel.
OWN = ("room", "present", "hide", "fix", "embed", STEP, PLAN)


def to(view: View) -> None:
    """Go there at the next run; for use in a callback or before `st.rerun`."""
    st.session_state[_GOING] = view


def as_from_link(view: View) -> View:
    """A view that somebody else made, so that it can do no more than a link of theirs.

    A widget of this session takes a value of the type that it has; anything else goes into the address, where the
    widgets check what they read.
    """
    types = {key: type(_frozen(st.session_state[key])) for key in bound_keys(view.page) if key in st.session_state}
    types |= dict.fromkeys(SHARED, str)
    widgets = {key: value for key, value in view.widgets if type(value) is types.get(key)}
    others = {key: list(value) if isinstance(value, tuple) else str(value)
              for key, value in view.widgets if key not in widgets and key not in (*SHARED, *view.usual)}
    others |= dict(view.parameters)
    return View(view.page, tuple(widgets.items()),
                tuple((key, value) for key, value in others.items() if key not in OWN and value), view.usual)


def is_sent() -> bool:
    """Whether a lesson, a room or the tour says what this run is to show."""
    return _GOING in st.session_state


def is_by_history() -> bool:
    """Whether the browser's Back or Forward brings this run: then its address says all."""
    context = get_script_run_ctx(suppress_warning=True)
    return context is not None and context.is_history_navigation


def arrive(page: str) -> None:
    """At the start of a run, before any widget: take on the values of where one goes.

    Args:
        page: name of the page that is about to run.
    """
    view: View | None = st.session_state.get(_GOING)
    if view is None:
        return
    try:
        _take_on(view, page)
    except Exception:
        _forget()
        raise
    _forget()


def _forget() -> None:
    """Nothing is left of it to take on. A run that ends before, as a newer one begins, leaves all of it to that one."""
    for key in (_GOING, _CAME):
        st.session_state.pop(key, None)


def _take_on(view: View, page: str) -> None:
    """Put its values on this page, or go to its own."""
    fresh = _fresh(view, st.session_state.get(_CAME, False) or view.page != page)
    if view.page != page:
        st.session_state[_GOING], st.session_state[_CAME] = view, True
        told = ((key, value) for key, value in fresh.items() if key not in view.usual)
        free = {key: value for key, value in (*told, *view.parameters) if not _is_held(key)}
        # By its name: the bare address has a page of its own, with the same script.
        st.switch_page(st.Page(f"pages/{view.page}.py", url_path=view.page), query_params=free)
    for key, value in view.widgets:
        remember(key)
        st.session_state[key] = list(value) if isinstance(value, tuple) else value
    bound = bound_keys(page)
    wanted = {key: value for key, value in view.parameters if key not in bound}
    for key in [k for k in st.query_params if k not in wanted and k not in OWN and k not in bound and not _is_held(k)]:
        take_out(key)
    for key, value in wanted.items():
        st.session_state.pop(f"_out_{key}", None)
        st.session_state[f"_set_{key}"] = value
        st.query_params[key] = value
    for key, value in fresh.items():
        if not _is_held(key):
            _tell(key, value)
    context = get_script_run_ctx(suppress_warning=True)
    if context is not None:
        with context.session_state.query_params() as address:  # a widget's first value is that of the run's beginning
            address.set_initial_query_params_from_current()


def _tell(key: str, value: str | list[str]) -> None:
    """Put a value in the address where it says another; an empty one is no part of it."""
    if value in ("", []):
        st.query_params.pop(key, None)
    elif st.query_params.get_all(key) != (value if isinstance(value, list) else [value]):
        st.query_params[key] = value


def take_out(key: str) -> None:
    """Take a parameter out of the address, and note when: a browser may still send the address that it had before."""
    st.session_state[f"_out_{key}"] = (st.query_params[key], time.monotonic())
    del st.query_params[key]


def _is_held(key: str) -> bool:
    """Whether Streamlit lets nothing be set under this key: a widget of what is on the screen still has it.

    Also one of a page that the visitor has just left: the frame's go on until the run of the next one ends.
    """
    context = get_script_run_ctx(suppress_warning=True)
    if context is None:
        return False
    with context.session_state.query_params() as address:
        return address.is_bound(key)


def _fresh(view: View, from_elsewhere: bool) -> dict[str, str | list[str]]:
    """What the address has to be told of the widgets.

    Streamlit writes a value that is set there only for a widget that is on the screen; a
    reload or a copied link would lose the others. And a session that has just begun, by a
    reload say, has none on the screen: its first run would take the old value back out of
    the address.

    Args:
        from_elsewhere: whether another page was left, which may have widgets of the same keys.
    """
    known = set(SHARED) if from_elsewhere else bound_keys(view.page)
    on_screen = {key for key in known if _is_held(key)}
    said = {key: "" if key in view.usual else list(value) if isinstance(value, tuple) else str(value)
            for key, value in view.widgets if value is not None}
    return {key: value for key, value in said.items() if key not in on_screen}


# --- what is come back to ----------------------------------------------------


def keep(key: str, value: str) -> None:
    """Let the session keep a parameter of the present page, for a link of the navigation, which brings none."""
    st.session_state.setdefault(_KEPT, {}).setdefault(st.session_state.get("_page", ""), {})[key] = value


def kept(key: str) -> str | None:
    """What the session keeps of it for the present page, '' for nothing; None before anything was said of it."""
    return st.session_state.get(_KEPT, {}).get(st.session_state.get("_page", ""), {}).get(key)


def is_plain() -> bool:
    """Whether the address asks for nothing of the page itself, unlike that of a lesson or of a link with controls."""
    return set(st.query_params) <= {*SHARED, *OWN} - {STEP, PLAN}


def keep_nothing(page: str | None = None) -> None:
    """What a page, or any, is to show is said by others from now on: a room's teacher, or the visitor once more."""
    if page is None:
        st.session_state.pop(_KEPT, None)
    else:
        st.session_state.get(_KEPT, {}).pop(page, None)


# --- where one is ------------------------------------------------------------


def remember(key: str) -> None:
    """Note that a widget of the present page under `key` keeps its value in the address.

    Another page may have a parameter of this name that no widget holds, and
    Streamlit keeps the widget's value when one goes there.
    """
    page = st.session_state.get("_page", "")
    st.session_state.setdefault("_bound", {}).setdefault(page, set()).add(key)


def bound_keys(page: str) -> set[str]:
    """Keys of the widgets that this session has had on a page and whose value is in the address."""
    return {*SHARED, *st.session_state.get("_bound", {}).get(page, ())}


def present_view(page: str) -> View:
    """Where the visitor is now: page, values of its controls, and what else the address holds."""
    bound = bound_keys(page)
    widgets = tuple((key, _frozen(st.session_state[key])) for key in sorted(bound) if key in st.session_state)
    others = tuple((key, value) for key, value in sorted(st.query_params.to_dict().items())
                   if key not in bound and key not in OWN)
    return View(page, widgets, others, frozenset(key for key, _ in widgets if key not in st.query_params))


def _frozen(value: Any) -> Value:
    return tuple(str(part) for part in value) if isinstance(value, list | tuple) else value
