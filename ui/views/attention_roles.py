"""The Attention page's roles view: what heads do on the shipped sentences, beside what was published."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from bert_core.facts import read_facts
from bert_core.figures.attention import heads_payload
from bert_core.measures.attention import special_names
from bert_core.measures.heads import HeadRoles, Role, measure_roles, place_holds, place_shares, roles_of
from bert_core.trace import Array, Trace
from ui import components, state
from ui.state import Here
from ui.views import attention

NAMES = {"det": "determiner", "amod": "adjective", "poss": "possessive", "nsubj": "subject", "dobj": "direct object",
         "pobj": "object of a preposition", "aux": "auxiliary", "prt": "particle"}


def draw(here: Here) -> None:
    """The table of relations, then the grid whose cards say each head's role, and where it looks in those sentences."""
    roles = state.shared(_roles, here.model)
    layer, _ = attention.opened(here)
    trace = state.trace(attention.request(here))
    components.mount("attention_roles", "attention_roles", components.pack(table(roles, here.model)),
                     on_event=lambda message: _open(here, message))
    header, arrays = heads_payload(trace, layer, attention.first_head(here.model)[1], roles=lines(roles, trace))
    more, places = attention.elsewhere(here)
    header, arrays = header | more | {"jump": attention.jump()}, arrays | places
    components.mount("attention", "attention_roles_grid", components.pack(header, arrays),
                     on_event=attention.receive_view(here))


@st.cache_resource(max_entries=8, show_spinner="Testing every head on the shipped sentences …")
def _roles(model: str) -> HeadRoles:
    return measure_roles(state.engine(), model)


def table(roles: HeadRoles, model: str) -> dict[str, Any]:
    """Each relation: this model's best head, its baseline and cases, and bert-base's published head."""
    facts = read_facts("heads")
    published = {row["relation"].rpartition("(")[2].rstrip(")"): row for row in facts["head"]}
    rows = [{
        "name": f"{NAMES[t.name]} ({t.name})", "layer": t.layer, "head": t.head, "direction": t.direction, "n": t.n,
        "accuracy": t.accuracy, "baseline": t.baseline, "offset": t.offset, "verdict": t.verdict,
        "published": {k: published[t.name][k] for k in ("head", "accuracy", "baseline")},
    } for t in roles.tests]
    return {"rows": rows, "model": model, "sentences": roles.sentences} | {
        k: facts[k] for k in ("source", "note", "exemplars", "coreference")}


def lines(roles: HeadRoles, trace: Trace) -> list[str]:
    """One line a head for its card, layer by layer."""
    layers, heads = roles.places.shape[1:]
    shares = place_shares(trace) if trace.encoding.content else None
    called = special_names(trace.encoding)
    return [line(roles_of(roles, layer, head), shares, layer, head, called)
            for layer in range(layers) for head in range(heads)]


def line(found: tuple[Role, ...], shares: Array | None, layer: int, head: int, called: Mapping[str, str]) -> str:
    """A head's roles with their evidence, and whether a place holds on this text too.

    Args:
        shares: (6, L, H), place_shares of the text; None where it has no words.
        called: what this model writes for [CLS] and [SEP], where that is something else.
    """
    if not found:
        return "No clear role on the shipped sentences."
    parts = []
    for role in found:
        if role.baseline is None:
            place = called.get(role.name, role.name)
            parts.append(f"Mostly at: {place} ({100 * role.score:.0f} % of tokens in {role.n} sentences; "
                         f"{_here(shares, role, layer, head)})")
        else:
            name, _, way = role.name.partition(", ")
            parts.append(f"{NAMES[name].capitalize()}, {way}: {100 * role.score:.0f} % of {role.n}, "
                         f"best fixed distance {100 * role.baseline:.0f} %")
    return ". ".join(parts) + "."


def _here(shares: Array | None, role: Role, layer: int, head: int) -> str:
    """A place role against the text at hand."""
    if shares is None:
        return "this text has no words"
    return "holds for this text" if place_holds(shares, role, layer, head) else "does not hold for this text"


def _open(here: Here, message: dict[str, Any]) -> None:
    """A row of the table was chosen: open its head."""
    layers, heads = attention.sizes(here)
    layer, head = components.number(message, "layer", layers), components.number(message, "head", heads)
    state.set_param("layer", str(layer + 1))
    state.set_param("head", str(head + 1))


