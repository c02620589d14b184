"""The act view's sweep: every head switched off alone, and how far one answer moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from bert_core.counting import counted
from bert_core.figures.head_effects import effects_payload, in_words, together_in_words
from bert_core.measures.head_effects import HeadEffects, each_head_off, longest
from bert_core.trace import TraceRequest
from ui import components, notices, state

SWITCH = "Which head matters?"


def draw(
    kind: str, asked: TraceRequest, shown: Mapping[str, Any], off: Sequence[tuple[int, int]], only_heads: bool,
    receive: Callable[[Mapping[str, Any]], None],
) -> None:
    """The strongest heads in words, and all of them as a grid.

    Args:
        kind: of ablation.ANSWERS.
        asked: the run of the whole model that gives the answer.
        shown: the answer's block on the page, with what is off now.
        off: 0-based (layer, head) that are switched off now.
        only_heads: nothing else is changed.
        receive: on_event of the grid; its message names the heads that are to be off, as `heads`.
    """
    if not _is_soon_enough(asked):
        return
    found = state.or_stop(lambda: _effects(asked, kind))
    notices.result(in_words(found))
    if only_heads and len(off) > 1:
        notices.result(together_in_words(found, off, shown["divergence"]))
    title = f"{shown['title']} {shown['by']}".strip()
    components.mount("head_effects", "head_effects", components.pack(*effects_payload(found, title, off)),
                     on_event=receive)


def _is_soon_enough(asked: TraceRequest) -> bool:
    """Whether all heads are tried in some seconds; what is too much is said."""
    loaded = state.loaded(asked.model)
    length, most = len(loaded.tokenizer.encode(asked.text, asked.pair)), longest(loaded.config)
    if length <= most:
        return True
    heads = loaded.config.num_hidden_layers * loaded.config.num_attention_heads
    notices.note(f"The model is run once without each of its {heads} heads. With {asked.model} that is quick up to "
                 f"{counted(most, 'token')}, and this input has {length}: choose a shorter text, or a smaller model.")
    return False


@st.cache_resource(max_entries=32, show_spinner="Switching off one head after the other …",
                   hash_funcs={TraceRequest: repr})
def _effects(asked: TraceRequest, kind: str) -> HeadEffects:
    return state.call(each_head_off, asked, kind)
