"""What the Masking page asks of the engine and hands to its components."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from bert_core.figures import masking as figures
from bert_core.measures import predictions
from bert_core.measures.predictions import Gap
from bert_core.tokenizer import Encoding
from bert_core.trace import Trace
from ui import chips, components, controls, state
from ui.state import Here
from ui.views import masking_kept, masking_put, task_models

VIEWS = ("Fill the gap", "The head", "Layer by layer", "Neurons", "Before and after", "Other sentence", "Swap vectors",
         "80/10/10", "Pseudo-perplexity")
#: Gaps that get a card, hidden ones first; more are counted.
MAX_CARDS = 12
#: Guesses that a view of one piece can be asked about, beside the piece that was hidden.
BEST = 6
NO_GAP = "Click a token to hide it, or type [MASK] in the sentence."
BEHIND_CUT = "Your [MASK] lies behind the cut. Click a token to hide it, or shorten the text."
#: Sentences with a gap, offered where none is open.
TO_TRY = ("The [MASK] shone brightly in the blue sky.", "A man is riding a [MASK] down the street.",
          "Two dogs are [MASK] through the snow.")


def need_head(here: Here) -> None:
    """End the page if the model can't fill gaps."""
    if "mlm" not in state.loaded(here.model).model.heads:
        state.stop(f"{here.model} has no trained masked-LM head, so it can't say what goes in a gap. "
                   f"Choose a model that has one, such as {state.OFFERED}.", state.instead())


def selectable(encoding: Encoding) -> list[int]:
    """Positions that stay as they are: special tokens, and masks that were typed."""
    return sorted({n for n, special in enumerate(encoding.special) if special} | set(encoding.mask_positions))


def chosen(encoding: Encoding, default: tuple[int, ...] = ()) -> tuple[int, ...]:
    """Positions that the visitor masked by clicking (parameter `mask`); `default` before any click."""
    return chips.chosen_positions("mask", len(encoding), default, fixed=selectable(encoding))


def no_gap(encoding: Encoding, masked: tuple[int, ...]) -> str:
    """What to do where no gap is open, '' where one is."""
    if masked or encoding.mask_positions:
        return ""
    return BEHIND_CUT if encoding.masks_beyond else NO_GAP


def one_gap(encoding: Encoding, masked: tuple[int, ...]) -> int | None:
    """The gap that a view of one is about: the visitor's choice where there are several, None where there is none."""
    gaps = sorted({*masked, *encoding.mask_positions})
    if len(gaps) < 2:
        return gaps[0] if gaps else None
    return int(controls.choice("The gap at position", [str(n) for n in gaps], "gap"))


def ask_gap(here: Here) -> tuple[tuple[int, ...], int | None, DeltaGenerator]:
    """Chips to mask, and the gap that a view of one is about; where none is open, sentences to try.

    Returns:
        The positions that are masked, that of the gap or None, and the row for the view's other choices.
    """
    encoding = here.encoding
    masked = chosen(encoding)
    mount_gaps("gaps", encoding, masked, [], no_gap(encoding, masked))
    place = controls.row()
    with place:
        position = one_gap(encoding, masked)
    if position is None:
        task_models.try_buttons([(text, None) for text in TO_TRY], "masking")
    return masked, position, place


def pieces_to_ask(here: Here, trace: Trace, position: int) -> list[int]:
    """The best guesses for one gap, and the piece that was hidden there if it is none of them."""
    truths = {n: here.encoding.input_ids[n] for n in trace.request.masked}
    gaps = predictions.read_gaps(trace, state.loaded(here.model).tokenizer, BEST, truths, len(trace.mlm_positions))
    gap = next(gap for gap in gaps if gap.position == position)
    found = [guess.id for guess in gap.guesses]
    return found if gap.truth is None or gap.truth.id in found else [*found, gap.truth.id]


def fill_in(here: Here) -> None:
    """Chips to mask, and for every gap the best guesses; below them, how many those are, and what was kept before."""
    picture = st.container()
    masked = chosen(here.encoding)
    if masked or here.encoding.mask_positions:
        below = controls.row()
        with below:
            k = controls.guesses()
        with picture:
            trace, gaps = _chips_and_cards(here, masked, k)
        with below:
            masking_kept.offer(trace, gaps, here.encoding.tokens)
    else:
        with picture:
            mount_gaps("gaps", here.encoding, masked, [], no_gap(here.encoding, masked))
            task_models.try_buttons([(text, None) for text in TO_TRY], "masking")
    masking_kept.listed()


def _chips_and_cards(here: Here, masked: tuple[int, ...], k: int) -> tuple[Trace, tuple[Gap, ...]]:
    trace = state.trace(here.request(masked=masked, parts=("mlm_positions", "mlm_logits")))
    gaps = read_gaps(here, trace, here.encoding, k)
    cards = cards_of(gaps)
    masking_put.mark(cards, gaps, state.loaded(here.model).tokenizer)
    mount_gaps("gaps", here.encoding, masked, cards, without_card(trace), masking_put.receive(here, masked, gaps),
               foot=masking_put.HINT if len(gaps) > 1 else "")
    return trace, gaps


def without_card(trace: Trace) -> str:
    """Which gaps of a run have a card, '' where all have one."""
    count, hidden = len(trace.mlm_positions), len(trace.request.masked)
    if count <= MAX_CARDS:
        return ""
    if hidden == 0:
        which = "the first of the text"
    elif hidden < MAX_CARDS:
        which = "what you hid, and the first that were typed"
    else:
        which = "the first that you hid"
    return f"{MAX_CARDS} of {count} gaps have a card: {which}."


def read_gaps(here: Here, trace: Trace, encoding: Encoding, k: int) -> tuple[Gap, ...]:
    """The best guesses for each gap of one run that has a card."""
    truths = {n: encoding.input_ids[n] for n in trace.request.masked}
    return predictions.read_gaps(trace, state.loaded(here.model).tokenizer, k, truths, MAX_CARDS)


def cards_of(gaps: Sequence[Gap]) -> list[dict]:
    """A card for each gap of one run."""
    return [figures.card(figures.gap_title(gap, n + 1, len(gaps)), [("", gap)]) for n, gap in enumerate(gaps)]


def mount_gaps(key: str, encoding: Encoding, masked: tuple[int, ...], cards: list[dict], hint: str,
               on_event: Callable[[dict[str, Any]], None] | None = None, foot: str = "") -> None:
    """Draw chips with the masked ones covered, and the cards.

    Args:
        hint, foot: what is said above the cards, and below them.
        on_event: takes the chips' messages too, where the cards send some of their own.
    """
    shown = [{"t": token, "k": kind, "i": n} for n, (token, kind) in enumerate(chips.describe(encoding))]
    for n in masked:
        shown[n] = {"t": "[MASK]", "k": "mask", "i": n, "l": encoding.tokens[n]}
    data = components.pack({"chips": shown, "selected": list(masked), "fixed": selectable(encoding), "cards": cards,
                            "hint": hint, "foot": foot, "tried": task_models.tried(),
                            "label": "Tokens; choose some to hide them"})
    components.mount("gaps", key, data, on_event=on_event or chips.receive_positions("mask", len(encoding)))
