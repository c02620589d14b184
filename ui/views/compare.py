"""Compare page: the main picture, ELMo's way, and which view is open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from bert_core.figures import compare_cards as cards
from bert_core.measures import compare
from ui import components, controls, shell
from ui.state import Here
from ui.views import (
    compare_experiment,
    compare_flow,
    compare_head,
    compare_masks,
    compare_reveal,
    compare_sentence,
    compare_writing,
)
from ui.views.compare_ask import TWINS, Asked, VisitorEngine, ask, readers_of, say, with_best_guess

#: The paper's argument (Devlin et al. 2018, section 1 and 3), in two sentences.
ARGUMENT = (
    "The BERT paper argues that a left-to-right and a right-to-left reader, trained apart and joined only at the end "
    "as in ELMo, are weaker than one deep model that uses both sides in every layer. "
    "A word may need the two sides *together*, and one-way layers can never bring them together."
)

CAUTION = (
    "To be fair to ELMo: each reader's last layer adds a fixed number for every word piece, its bias, which is "
    "larger for common words. Multiplying the two lists would count the bias twice and favour words like “the”. Here "
    "it counts once, as in one layer over both readers. A layer trained on both could do better still."
)


def mount(asked: Asked, wanted: Sequence[str], parts: tuple[str, ...] = (),
          undrawn: tuple[str, ...] = (), is_true: bool = True) -> dict[str, compare.Reading]:
    """Ask these readers at once and draw a card for each.

    Args:
        parts: Trace arrays to keep beside the logits.
        undrawn: readers that are asked too, and get no card.
        is_true: whether the word in question is what the gap hides.
    """
    engine = VisitorEngine()
    readings, gaps = compare.read(engine, asked.question, asked.readers, (*wanted, *undrawn), parts)
    drawn = []
    for reader in wanted:
        if reader in readings:
            reading = readings[reader]
            encoding = engine.loaded(reading.models[0]).tokenizer.encode(asked.question.text, asked.question.pair)
            drawn.append(cards.card(reading, compare.top(reading, engine, asked.guesses), encoding, asked.word,
                                    is_true))
        else:
            drawn.append(cards.gap_card(reader, gaps[reader]))
    components.mount("compare", "compare", components.pack({"cards": drawn, "label": "What each reader says"}))
    return readings


def side_by_side(here: Here) -> None:
    """BERT both ways, GPT, and BERT with its right side hidden, on one place."""
    asked = ask(here, with_guesses=True)
    picture = st.container()
    with controls.row():
        follows = controls.toggle("Follow both guesses through the layers", "follow")
        is_open = controls.toggle("Open the numbers of one guess", "opened")
    with picture:
        parts = {*compare_flow.PARTS * follows, *compare_head.PARTS * is_open}
        stands_last, is_true = not compare.after(asked.encoding, asked.positions), bool(asked.word)
        asked = asked if is_true else with_best_guess(asked)
        readings = mount(asked, ("both", "left", "hidden"), tuple(sorted(parts)),
                         undrawn=("before",) * (is_true and not stands_last), is_true=is_true)
        say(cards.side_by_side_line(readings, asked.word, stands_last) if is_true else
            cards.guessed_line(asked.word))
    if follows:
        compare_flow.draw(readings)
    if is_open:
        compare_head.draw(asked, readings)


def elmo(here: Here) -> None:
    """Left and right readers alone, the two joined, and both ways in every layer."""
    asked = ask(here, with_guesses=True, one_way=("left", "right"))
    readings = mount(asked, ("left", "right", "elmo", "both"))
    say(cards.elmo_line(readings, asked.word))
    say(ARGUMENT, "cmp-small")
    say(CAUTION, "cmp-small")


VIEWS = {
    "Side by side": side_by_side,
    "ELMo's way": elmo,
    "Masks and heads": compare_masks.masks_and_heads,
    "Reveal": compare_reveal.reveal_context,
    "Surprise": compare_sentence.surprise_of_all,
    "Writing": compare_writing.writing,
    "Experiment": compare_experiment.experiment,
}

#: Fields of Readers that a view asks; one that isn't named asks them all.
PARTS = {"Side by side": ("masked", "left"), "Reveal": ("masked",), "Writing": ("left", "masked")}


def draw(here: Here, which: str) -> None:
    """Draw the open view; nothing of the others is computed."""
    VIEWS[which](here)


def after(here: Here, which: str) -> None:
    """What goes on once the page is drawn: a running experiment."""
    if VIEWS[which] is compare_experiment.experiment:
        compare_experiment.go_on()


def status(here: Here, which: str) -> str:
    """The status bar: who reads in the open view, the visitor's own model first where it is one of them."""
    readers = readers_of(here)
    names = [name for part in PARTS.get(which, TWINS) if (name := getattr(readers, part))]
    first = here.model if here.model in names else names[0]
    others = ", ".join(shell.short_name(name) for name in names if name != first)
    return shell.status_line(replace(here, model=first), note=f"beside it {others}" if others else "")
