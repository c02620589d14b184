"""The Attention page's bertviz view: its three pictures of our Trace, offline."""

from __future__ import annotations

import streamlit as st

from bert_core import MissingPart, bertviz_offline
from ui import components, controls, notices, state
from ui.state import Here
from ui.views import attention


def draw(here: Here) -> None:
    """One of bertviz's views in a frame, or why it can't be drawn of this model or at this length."""
    which = controls.choice("bertviz", list(bertviz_offline.LIMITS), "bertviz", hide_label=True)
    layer, head = attention.opened(here)
    scale = components.charts_wanted().scale
    trace = state.trace(here.request(parts=bertviz_offline.PARTS[which]))
    try:
        page = bertviz_offline.page(trace, which, layer, head, scale)
    except (bertviz_offline.TooLong, MissingPart) as problem:
        notices.note(str(problem))
        return
    st.iframe(page, height=round(scale * bertviz_offline.height(trace, which)),
              alt=f"bertviz's {which.lower()} of this sentence")
    masked = (" It shows q · k also where a token may not look; the softmax there is 0."
              if which == "Neuron view" and trace.attention_kind == "causal" else "")
    st.markdown("bertviz 1.4.1 on the same attention, its scripts from this server. It counts layers and heads from 0."
                + masked)
