"""The Attention page's view through the layers: what of the sentence reaches one token, and where on the way."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from bert_core.figures.flow import flow_payload, in_words
from bert_core.measures.flow import LENGTH_PARTS, Flow, by_lengths, by_weights, flow
from bert_core.measures.lens import read_layers
from bert_core.measures.predictions import Gap
from bert_core.model import Model
from bert_core.trace import Array, TraceRequest
from ui import chips, components, controls, notices, state
from ui.state import Here

#: How a token's share in another is counted.
LENGTHS, WEIGHTS = "vectors that are added", "attention weights alone"


def draw(here: Here) -> None:
    """Choose a token of the last layer and how shares are counted; the stream that reaches it."""
    encoding = here.encoding
    first = chips.first_choice(encoding)
    chosen = chips.tokens(encoding, "token", "one", (first,), fixed=(), opens=True,
                          label="Token of the last layer that is followed")
    position = chosen[0] if chosen else first
    picture = st.container()
    ours = isinstance(state.loaded(here.model).model, Model)
    counted = _counted(here, ours)
    asked = here.request(parts=LENGTH_PARTS if counted == LENGTHS else LENGTH_PARTS[:1])
    found = flow(state.or_stop(lambda: _mixed(asked)), position)
    pieces, lens = chips.describe(encoding), _lens(here, position) if ours else ()
    with picture:
        notices.result(in_words(found, [_name(pieces, n) for n in range(len(pieces))], position))
        mount("flow", found, pieces, position, state.loaded(here.model).config.attention_kind, lens)


def mount(
    key: str, found: Flow, pieces: Sequence[tuple[str, str]], position: int, kind: str, lens: Sequence[Gap] = ()
) -> None:
    """Draw one stream.

    Args:
        kind: 'bidirectional' or 'causal', which is its colour.
    """
    header, arrays = flow_payload(found, pieces, position, lens)
    components.mount("flow", key, components.pack(header | {"kind": kind}, arrays))


def _counted(here: Here, ours: bool) -> str:
    """By what shares are counted; a model of transformers' leaves no choice."""
    if ours:
        return controls.choice("Shares counted by", (LENGTHS, WEIGHTS), "shares")
    notices.note(f"{here.model} runs through transformers, where the vectors that a head adds can't be seen: shares "
                 "are counted by attention weights.")
    return WEIGHTS


@st.cache_resource(max_entries=4, show_spinner=False, hash_funcs={TraceRequest: repr})
def _mixed(asked: TraceRequest) -> Array:
    """(L, T, T), rows sum to 1, of the parts that were asked for; 25 MB at most for base size and 512 tokens."""
    trace, = state.raw_traces([asked])
    lengths = asked.wants("value")
    return by_lengths(trace, state.loaded(asked.model)) if lengths else by_weights(trace)


def _lens(here: Here, position: int) -> Sequence[Gap]:
    """What the head for gaps would answer in each layer; none where the model has no such head."""
    if "mlm" not in state.loaded(here.model).model.heads:
        return ()
    return state.or_stop(lambda: state.call(read_layers, here.request(), position, 1))


def _name(pieces: Sequence[tuple[str, str]], n: int) -> str:
    """“the” where it is the only one, else “the” (6); in marks that keep the numbers beside a right-to-left word."""
    text = pieces[n][0]
    shown = f"\u2068“{text}”\u2069"
    return shown if sum(piece[0] == text for piece in pieces) == 1 else f"{shown} ({n})"
