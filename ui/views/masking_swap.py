"""The Masking page, vectors swapped: which one carries what the gap depends on, and in which layer."""

from __future__ import annotations

import html
import math
from dataclasses import replace

import streamlit as st

from bert_core.figures.masking import percent
from bert_core.figures.meaning import short_number
from bert_core.measures.swap import Swap, carrier, swap_vectors
from ui import controls, notices, state, tables
from ui.state import Here
from ui.tables import Numbers
from ui.views import masking

#: Beside the sentence that the page opens with.
OTHER = "The schoolteacher opened the [MASK] and let the dogs out."
#: Sentences of the same length whose gaps ask for different words.
TO_TRY = (("The dogs in the park [MASK] barking.", "The dog in the park [MASK] barking."),
          ("The boy kicked the [MASK] over the fence.", "The boy painted the [MASK] over the fence."))
#: Of a cell's colour from which its number is read better in the other ink.
STRONG = 0.75


def swap(here: Here) -> None:
    """The map of two sentences, or what is missing for it."""
    other = controls.text("The sentence again, with a word or two changed", "swapped", OTHER,
                          placeholder="as many tokens as yours, the gap at the same place")
    encoding, masked = here.encoding, masking.chosen(here.encoding)
    masking.mount_gaps("gaps", encoding, masked, [], masking.no_gap(encoding, masked))
    gap = masking.one_gap(encoding, masked)
    if gap is not None and (missing := _missing(here, other, gap, masked)):
        notices.note(missing)
    elif gap is not None:
        state.ours(here.model, "a way to put vectors between its layers")
        request = here.request(masked=masked)
        found = state.or_stop(lambda: state.call(swap_vectors, request, replace(request, text=other), gap))
        notices.result(_in_words(found))
        st.html(_table(found))
        tables.show(_numbers(found))
    with st.container(horizontal=True, gap="small"):
        for n, (text, changed) in enumerate(TO_TRY):
            st.button(text, key=f"try_swap_{n}", on_click=_put, args=(text, changed), type="tertiary")


def _missing(here: Here, other: str, gap: int, masked: tuple[int, ...]) -> str:
    """What keeps the other sentence from standing in for this one; '' where nothing does."""
    again = "type the sentence again with a word changed, one that the gap depends on."
    encoding = state.loaded(here.model).tokenizer.encode(other, here.pair)
    if not other.strip() or other == here.text:
        return again.capitalize()
    if len(encoding) != len(here.encoding):
        return (f"The two have {len(here.encoding)} and {len(encoding)} tokens, and vectors can be swapped only "
                f"between sentences of equal length: {again}")
    if gap not in (*encoding.mask_positions, *masked):
        return f"The other sentence has no gap at position {gap}, where yours has one: {again}"
    return ""


def _put(text: str, changed: str) -> None:
    """Callback: both sentences at once."""
    st.session_state["text"], st.session_state["pair"], st.session_state["swapped"] = text, "", changed
    state.set_param("mask", None)


def _in_words(found: Swap) -> str:
    """The two answers, and where the difference between them is carried."""
    (own, there), names = found.answers, _names(found)
    chances = [[percent(math.exp(value)) for value in row] for row in found.ends]
    answers = (f"Yours: “{own}” {chances[0][0]}, “{there}” {chances[0][1]}. The other: “{there}” {chances[1][1]}, "
               f"“{own}” {chances[1][0]}.")
    carriers = carrier(found)
    moved = next(n for n in range(len(carriers)) if all(one == found.position for one in carriers[n:]))
    if moved == 0:
        return f"{answers} The gap's own vector moves the answer most from the input on."
    since = "in the last layer" if moved == len(carriers) - 1 else f"from layer {moved} on"
    return f"{answers} At the input the vector of “{names[carriers[0]]}” moves the answer most, {since} the gap's own."


def _names(found: Swap) -> list[str]:
    """The tokens; where the sentences differ, both."""
    return [one if one == other else f"{one} → {other}" for one, other in zip(found.tokens, found.others, strict=True)]


def _layers(found: Swap) -> list[str]:
    return ["input", *map(str, range(1, len(found.runs)))]


def _table(found: Swap) -> str:
    """Tokens by layers: how far each one's vector moves the answer."""
    caption = "How far one vector of the other sentence moves the answer, by the layer it comes from"
    heads = "<td></td>" + "".join(f'<th scope="col">{head}</th>' for head in _layers(found))
    rows = ""
    for place, both in enumerate(zip(found.tokens, found.others, strict=True)):
        kind = "bw-swap-gap" if place == found.position else "bw-swap-changed" if len(set(both)) > 1 else ""
        name = " → ".join(f"<bdi>{html.escape(token)}</bdi>" for token in dict.fromkeys(both))
        cells = "".join(_cell(share) for share in found.shares[:, place])
        rows += f'<tr><th scope="row" class="{kind}">{name}</th>{cells}</tr>'
    return tables.frame(caption, heads, rows, "bw-table bw-swap")


def _cell(share: float) -> str:
    """A share on its colour: the page's at 0, red at 1, blue at −1, by the power of 0.8 as on all signed maps."""
    strength = min(abs(share), 1.0) ** 0.8
    if abs(share) < 0.005:
        return '<td class="bw-swap-none">0</td>'
    kind = "bw-swap-away" if share < 0 else "bw-swap-to"
    strong = " bw-swap-strong" if strength >= STRONG else ""
    return f'<td class="{kind}{strong}" style="--much:{100 * strength:.0f}%">{short_number(share)}</td>'


def _numbers(found: Swap) -> Numbers:
    rows = [(layer, name, float(found.shares[n, place]), *(math.exp(value) for value in found.runs[n, place]))
            for n, layer in enumerate(_layers(found)) for place, name in enumerate(_names(found))]
    return Numbers("One vector taken from the other sentence", (
        "layer", "token", "moved", *(f"p({answer})" for answer in found.answers)), rows)
