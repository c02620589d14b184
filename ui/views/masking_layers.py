"""The Masking page, layer by layer: what the head would answer if the layers above were left out."""

from __future__ import annotations

import html
from collections.abc import Sequence

import streamlit as st

from bert_core.figures.masking import percent
from bert_core.measures.lens import read_layers, stays_first
from bert_core.measures.predictions import Gap, Guess
from ui import notices, state, tables
from ui.state import Here
from ui.views import masking

#: Guesses of each layer; a narrow page shows the first two.
BEST = 5


def layer_by_layer(here: Here) -> None:
    """The best guesses for one gap in every layer, and how far the answer has come there."""
    masked, position, _ = masking.ask_gap(here)
    if position is None:
        return
    state.ours(here.model, "its head for the vectors of other layers")
    truth = here.encoding.input_ids[position] if position in masked else None
    layers = state.or_stop(lambda: state.call(read_layers, here.request(masked=masked), position, BEST, truth))
    notices.result(_in_words(layers, is_hidden=truth is not None))
    st.html(_table(layers, position))


def _table(layers: Sequence[Gap], position: int) -> str:
    """A row a layer: its guesses with their bars, and the place of the piece that is followed."""
    followed = layers[0].truth
    caption = f"What each layer's vector of position {position} would answer"
    heads = ["layer", f"“{followed.token}” is", *("best guess", "second", "third", "fourth", "fifth")[:BEST]]
    columns = "".join(f'<th scope="col">{html.escape(head)}</th>' for head in heads[:2 + len(layers[0].guesses)])
    names = ["input", *map(str, range(1, len(layers)))]
    rows = "".join(
        f'<tr><th scope="row">{name}</th><td>{_place(gap)}</td>'
        f'{"".join(_cell(guess, guess.id == followed.id) for guess in gap.guesses)}</tr>'
        for name, gap in zip(names, layers, strict=True))
    return tables.frame(caption, columns, rows, "bw-table bw-lens")


def _cell(guess: Guess, is_followed: bool) -> str:
    """A guess, its probability and the bar of it, 0 to 1."""
    kind = "bw-lens-guess bw-lens-followed" if is_followed else "bw-lens-guess"
    probability = html.escape(percent(guess.probability))
    return (f'<td class="{kind}"><span>{html.escape(guess.token)}</span> <small>{probability}</small>'
            f'<i><b style="width:{100 * guess.probability:.1f}%"></b></i></td>')


def _place(gap: Gap) -> str:
    """'number 1,204, <0.1 %'."""
    return f"number {gap.rank:,}<br><small>{html.escape(percent(gap.truth.probability))}</small>"


def _in_words(layers: Sequence[Gap], is_hidden: bool) -> str:
    """Since which layer the piece that is followed stands first."""
    name, first = f"“{layers[0].truth.token}”", stays_first(layers)
    what = f"The hidden {name}" if is_hidden else f"The answer {name}"
    if first == len(layers) - 1 > 0:
        return f"{what} stands first in the last layer; one layer below it is number {layers[-2].rank:,}."
    if first is not None:
        return f"{what} stands first from {'the input' if first == 0 else f'layer {first}'} on."
    best = min(range(len(layers)), key=lambda n: layers[n].rank)
    what = f"{what} is number {layers[-1].rank:,} at the end"
    if layers[best].rank == layers[-1].rank:
        return f"{what}."
    return f"{what}; it came furthest {_at(best)}, number {layers[best].rank:,}."


def _at(row: int) -> str:
    return f"in layer {row}" if row else "at the input"
