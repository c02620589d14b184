"""Compare page: every token's surprise under every reader, and the totals."""

from __future__ import annotations

import html

import numpy as np
import streamlit as st

from bert_core.figures import compare_curves as figures
from bert_core.figures import theme
from bert_core.figures.compare import COLOURS, DASHES, GLYPHS, NAMES
from bert_core.measures import compare, surprise
from bert_core.measures.surprise import Surprise
from ui import components, controls, notices
from ui.state import Here
from ui.tables import Numbers
from ui.views.compare_ask import VisitorEngine, ask, say

#: What the sums are of where only the first tokens are scored.
PART = "these tokens (right to left: given all that follows)"
#: Nats a token: two readers nearer than this are called alike.
ALIKE = 0.1
#: Readers that are drawn until the visitor chooses: the paper's argument, and no more lines than one can follow.
DRAWN_FIRST = ("both", "left", "elmo")
#: A line's dash in the chart -> as the border of its total.
BORDERS = {"solid": "solid", "dot": "dotted", "dash": "dashed"}


def surprise_of_all(here: Here) -> None:
    """The curves over the sentence; below them where a reader is surprised most, and each one's total."""
    asked = ask(here, beside=True, one_way=("left", "right"), whole=True)
    try:
        found = surprise.surprises(VisitorEngine(), asked.question.text, asked.question.pair, asked.readers)
    except ValueError as problem:
        notices.note(str(problem))
        return
    if found[0].is_cut:
        notices.note(f"Scored: {found[0].covers}. BERT needs a run over all of them for each one, and more runs would "
                     "take longer than a few seconds.")
    readers = {one.reader: one for one in found}
    same = [one for one in found if one.tokens == found[0].tokens]
    rows = [(f"{place} {token}", *(float(one.nats[n]) for one in same))
            for n, (place, token) in enumerate(zip(found[0].places, found[0].tokens, strict=True))]
    with asked.beside:
        drawn = _drawn(same)
    components.chart(figures.surprise_figure(drawn, asked.positions), "surprise", Numbers(
        "Surprise of each token in nats", ("token", *(NAMES[one.reader] for one in same)), rows))
    say(_peak_line(readers))
    _totals(found)
    say(_elmo_line(readers))
    for one in found:
        if one not in same:
            say(f"{NAMES[one.reader]} ({one.models[0]}) cuts the sentence into other pieces: only its total is shown.",
                "cmp-small")
    if reason := compare.why_not_masked(VisitorEngine().loaded(asked.readers.masked)):
        say(f"{NAMES['hidden']}: {reason}.", "cmp-small")
    what = PART if found[0].is_cut else "the sentence"
    say(f"Only the one-way sums are minus the log-probability of {what}. BERT guesses each token with all the "
        "others in sight, so its sum is minus a *pseudo*-log-likelihood: as a rule it is lower, and it is no "
        "probability of anything. The two joined one-way readers also see both sides of each token.", "cmp-small")


def _drawn(found: list[Surprise]) -> list[Surprise]:
    """The readers whose curves are drawn: those chosen, or all if none is."""
    names = {NAMES[one.reader]: one for one in found}
    first = [NAMES[reader] for reader in DRAWN_FIRST if NAMES[reader] in names]
    chosen = controls.many("Readers drawn", list(names), "readers", first or list(names))
    return [names[name] for name in chosen] or found


def _peak_line(found: dict[str, Surprise]) -> str:
    """Where the left reader is surprised most, and BERT there; '' where nobody reads from the left."""
    if "left" not in found:
        return ""
    left, both = found["left"], found.get("both")
    if not np.isfinite(left.nats).any():
        return ""
    most = int(np.nanargmax(left.nats))
    line = f"GPT, which sees the left side only, is surprised most by “{left.tokens[most]}”: {left.nats[most]:.1f} nats"
    if both is None or both.tokens != left.tokens:
        return f"{line}."
    return f"{line}. BERT, with both sides in sight, is surprised by {both.nats[most]:.1f} there."


def _elmo_line(found: dict[str, Surprise]) -> str:
    """The paper's argument over the whole sentence, '' where one of the two readings is missing."""
    if not {"both", "elmo"} <= found.keys() or found["both"].tokens != found["elmo"].tokens:
        return ""
    deep, joined = found["both"].total, found["elmo"].total
    side = "**for** the paper's argument" if deep < joined else "**against** the paper's argument"
    if abs(found["both"].mean - found["elmo"].mean) < ALIKE:
        side = f"less than {ALIKE} nats a token apart, which decides nothing; Experiment counts hundreds of sentences"
    what = found["both"].covers if found["both"].is_cut else "this sentence"
    return (f"Over {what} BERT is surprised by {deep:.1f} nats, the two one-way readers joined at the end by "
            f"{joined:.1f}: {side}.")


def _totals(found: tuple[Surprise, ...]) -> None:
    """A number for each reader: the sum, and nats a token."""
    boxes = []
    for one in found:
        look = f"--mark:{theme.css(COLOURS[one.reader])};--line:{BORDERS[DASHES[one.reader]]}"
        boxes.append(f'<div class="cmp-total" style="{look}">'
                     f'<span class="cmp-name"><i aria-hidden="true">{GLYPHS[one.reader]}</i> {NAMES[one.reader]}</span>'
                     f"<b>{one.total:.1f} nats</b><span>{one.mean:.2f} a token, {one.covers}</span>"
                     f'<span class="cmp-models">{html.escape(" × ".join(one.models))}</span></div>')
    st.html(f'<div class="cmp-totals">{"".join(boxes)}</div>')
