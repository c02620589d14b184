"""The Attention page's first view: the grid of all heads and one head large."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import numpy as np
import streamlit as st

from bert_core.figures.attention import heads_payload, places_payload
from bert_core.measures.attention import SEGMENT_FILTERS, SPECIALS, MapOptions, far_words
from bert_core.measures.head_places import head_places
from bert_core.trace import Array, TraceRequest
from ui import chips, components, controls, state
from ui.state import Here

VIEWS = ("All heads", "Through the layers", "Step by step", "Roles", "Act", "Attribution", "bertviz", "Export")
ELSEWHERE = "Where else does this head look?"
#: Parameters of the address that say what is open.
PLACE = ("layer", "head", "token", "look")
#: Session keys: the place when the page was last drawn or the component spoke, and where one was sent since.
WAS, JUMP = "_attention_place", "_attention_jump"
#: What the component may put in the address: words and numbers that its controls offer, joined by dots.
_PART = (r"(?:lines|map|words|show|hide|renormalise|all|aa|ab|ba|bb|t(?:[0-4]?[0-9]|50)|n(?:[1235]|10)|"
         r"h[0-9]{1,3}(?:-[0-9]{1,3})*)")
LOOK = re.compile(rf"{_PART}(?:\.{_PART})*")


def request(here: Here, **changes: Any) -> TraceRequest:
    """The run whose attention is shown; only the attention is kept of it."""
    return here.request(parts=("attention_probs",), **changes)


def sizes(here: Here) -> tuple[int, int]:
    """(L, H) of the model in use."""
    config = state.loaded(here.model).config
    return config.num_hidden_layers, config.num_attention_heads


def opened(here: Here) -> tuple[int, int]:
    """0-based layer and head that the address names, counted from 1 there."""
    layers, heads = sizes(here)
    layer, head = state.shared(first_head, here.model)
    return state.param("layer", chips.place(layers, 1), layer), state.param("head", chips.place(heads, 1), head)


@st.cache_resource(max_entries=16, show_spinner=False)
def first_head(model: str) -> tuple[int, int]:
    """0-based (layer, head) that is open at first: of all heads the one that looks most at far words.

    Most heads rest on [CLS] or [SEP]. Chosen on the explorer's own first sentence, so that it
    stays while one types.
    """
    trace, = state.raw_traces([TraceRequest(state.DEFAULT_TEXT, model=model, parts=("attention_probs",))])
    scores = far_words(trace.attention_probs, np.asarray(trace.encoding.special, dtype=bool))
    layer, head = np.unravel_index(int(scores.argmax()), scores.shape)
    return int(layer), int(head)


def all_heads(here: Here) -> None:
    """Draw the grid and the open head."""
    layer, _ = opened(here)
    state.param("look", parse_look, "")  # the component reads it; a bad one is dropped and said here
    header, arrays = state.or_stop(lambda: _payload(request(here), layer, first_head(here.model)[1]))
    picture = st.container()
    if controls.toggle(ELSEWHERE, "elsewhere"):
        more, places = elsewhere(here)
        header, arrays = header | more, arrays | places
    with picture:
        components.mount("attention", "attention", components.pack(header | {"jump": jump()}, arrays),
                         on_event=receive_view(here))


def elsewhere(here: Here) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and arrays by which the component says where in the shipped sentences a head looks most."""
    return state.shared(_elsewhere, here.model)


@st.cache_resource(max_entries=4, show_spinner="Reading the shipped sentences …")
def _elsewhere(model: str) -> tuple[dict[str, Any], dict[str, Array]]:
    return places_payload(head_places(state.engine(), model))


@st.cache_resource(max_entries=8, show_spinner=False, hash_funcs={TraceRequest: repr})
def _payload(asked: TraceRequest, layer: int, head: int) -> tuple[dict[str, Any], dict[str, Array]]:
    """The payload, kept while one walks through the heads: at 512 tokens x 144 heads it is 7 MB and a second's work."""
    return heads_payload(*state.raw_traces([asked]), layer, head)


def jump() -> dict[str, Any] | None:
    """Where the address was last changed to by another than the component; None if it never was.

    A room, the browser's Back or the table of roles sends one elsewhere; `number` makes each time another, so that
    the component goes there once and then stays where the visitor takes it.
    """
    now, session = _place(), st.session_state
    if session.get(WAS, now) != now:
        number = (session.get(JUMP) or {"number": 0})["number"] + 1
        session[JUMP] = {"number": number, "address": urlencode(now)}
    session[WAS] = now
    return session.get(JUMP)


def _place() -> dict[str, str]:
    """What the address says of PLACE."""
    return {key: st.query_params[key] for key in PLACE if key in st.query_params}


def parse_look(raw: str) -> str:
    """The look as it stands in the address; ValueError if it is none."""
    if len(raw) > 200 or (raw and not LOOK.fullmatch(raw)):
        raise ValueError("no look")
    return raw


def options_of(look: str) -> MapOptions:
    """The part of a look that changes numbers."""
    parts = look.split(".")
    number = {part[0]: int(part[1:]) for part in parts if re.fullmatch(r"[tn]\d+", part)}
    return MapOptions(
        words="words" in parts, threshold=number.get("t", 0) / 100, top=number.get("n", 0),
        specials=next((p for p in parts if p in SPECIALS), "show"),
        segments=next((p for p in parts if p in SEGMENT_FILTERS), "all"))


def receive_view(here: Here):
    """on_event of the component: check where the visitor is and put it in the address."""
    layers, heads = sizes(here)
    tokens = len(here.encoding)

    def receive(message: Mapping[str, Any]) -> None:
        layer, head = components.number(message, "layer", layers), components.number(message, "head", heads)
        token, look = message.get("token"), message.get("look")
        if token != -1:
            components.number(message, "token", tokens)
        if not isinstance(look, str):
            raise components.BadMessage("look is no text")
        try:
            parse_look(look)
        except ValueError as problem:
            raise components.BadMessage(str(problem)) from None
        where = "" if token == -1 else str(token)
        said = {"layer": str(layer + 1), "head": str(head + 1), "token": where, "look": look}
        for key, value in said.items():
            state.set_param(key, value)
        st.session_state[WAS] = {key: value for key, value in said.items() if value}

    return receive
