"""The fast mode: bf16 arithmetic, chosen by the visitor, labelled with what it was measured to change and save."""

from __future__ import annotations

import streamlit as st

from bert_core.measures import arithmetic
from ui import controls, settings, state

LABEL = "Fast arithmetic"
_KEPT = "_fast_kept"
HELP = ("Computes in bf16 (8 bits of mantissa) instead of float32. It is meant for large models on slow computers; "
        "views that are made for checking numbers stay exact.")


def draw() -> None:
    """A switch in the sidebar of the pages that have a fast view; below it, once it is on, what it does here.

    Streamlit forgets a widget that a page doesn't draw, so the choice is kept for the next page that does.
    """
    if not settings.fast_is_offered() or state.here().page not in state.FAST_PAGES:
        return
    if st.session_state.get(_KEPT) and state.FAST not in st.session_state:
        st.session_state[state.FAST] = True
    with st.sidebar:
        chosen = controls.toggle(LABEL, state.FAST, help=HELP)
        st.session_state[_KEPT] = chosen
        if chosen:
            st.caption(said())


def said() -> str:
    """What the fast mode changes here, measured on this model; where it isn't used, that."""
    here = state.here()
    if not state.takes_fast(here.model):
        return f"{here.model} runs through transformers and stays exact."
    if here.precision == "fp32":
        return "This view is made for checking numbers and stays exact."
    return line(state.or_stop(lambda: _measured(here.model)))


def line(found: arithmetic.Arithmetic) -> str:
    """The measured time and errors in a sentence each."""
    measured = f"measured on {len(arithmetic.SENTENCES)} sentences"
    saved = (f"Takes {found.time:.1f} of the exact time, {measured}." if found.time < 0.95 else
             f"Saves no time on this computer: {found.time:.1f} times the exact one, {measured}.")
    guess = "" if found.probability is None else f"a predicted probability by {100 * found.probability:.2g} points, "
    return (f"{saved} Off by at most: {guess}an attention by {100 * found.attention:.2g} points of 100, a hidden "
            f"state by {found.hidden:.2g}, where the largest is {found.hidden_size:.2g}.")


@st.cache_resource(max_entries=16, show_spinner="Measuring …")
def _measured(model: str) -> arithmetic.Arithmetic:
    """Once a process for each model, for all visitors."""
    return arithmetic.compare(state.engine(), model)
