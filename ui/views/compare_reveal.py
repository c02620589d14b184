"""Compare page: guess which side gives the word away, then watch it being revealed."""

from __future__ import annotations

import zlib

import streamlit as st

from bert_core.figures import compare_curves as figures
from bert_core.figures.masking import percent
from bert_core.measures import compare, reveal
from ui import components, notices, state
from ui.state import Here
from ui.tables import Numbers
from ui.views.compare_ask import TWINS, Asked, VisitorEngine, ask, say

OPTIONS = {"left": "the left", "right": "the right", "either": "either alone", "together": "only both together",
           "neither": "not even both"}


def reveal_context(here: Here) -> None:
    """The prediction, and once it is made (or a link says so) the curves."""
    asked = ask(here, with_notes=False, one_way=())
    if reason := compare.why_not_masked(VisitorEngine().loaded(asked.readers.masked)):
        notices.note(f"No curves: {reason}, and each step hides the words not yet revealed. Under Model choose one of "
                     f"BERT's own kind, such as {TWINS['masked']}. Side by side and Surprise work with this one.")
        return
    if not asked.word:
        notices.note("Say what the gap hides (“Word behind the gap”): the curves follow the true word's probability.")
        return
    mark = f"{zlib.crc32(repr(asked.question).encode()):08x}"
    say(f"Which side of “{asked.word}” gives it away to {asked.readers.masked}?")
    guess = st.segmented_control("Your prediction", list(OPTIONS), format_func=OPTIONS.get, key=f"_guess_{mark}")
    if state.param("shown", str, "") != mark:
        st.button("Reveal", type="primary", on_click=state.set_param, args=("shown", mark), disabled=guess is None)
        return
    _curves(asked, guess)


def _curves(asked: Asked, guess: str | None) -> None:
    try:
        curves = reveal.reveal(VisitorEngine(), asked.question, asked.readers.masked)
    except ValueError as problem:
        notices.note(str(problem))
        return
    say(_verdict(curves, asked.word, guess))
    rows = [(curve.side, step.words, figures.last_words(step), step.probability, step.answer,
             "flips" if n in curve.flips else "") for curve in curves for n, step in enumerate(curve.steps)]
    components.chart(figures.reveal_figure(curves), "reveal", Numbers(
        "Context revealed word by word",
        ("side", "words in sight", "revealed last", "p(true word)", "best guess", "the answer"), rows))
    joined = [f"{curve.joined} words on the {curve.side}" for curve in curves if curve.joined]
    if joined:
        say(f"A side has at most {reveal.MAX_STEPS} steps: the last one reveals {' and '.join(joined)} at once.",
            "cmp-small")
    say("Words not yet revealed keep their place, but no token may look at them: only the context changes. "
        f"A side decides if it alone brings at least {100 * reveal.SHARE:.0f} % of what both sides bring and the other "
        f"does not. Where none of the three reaches {100 * reveal.FOUND:.0f} %, the verdict is “not even both”. "
        f"{_always_seen(asked)}", "cmp-small")


def _always_seen(asked: Asked) -> str:
    """Which special tokens no step hides; '' where the model has none."""
    names = dict.fromkeys(token for token, special in zip(asked.encoding.tokens, asked.encoding.special) if special)
    if not names:
        return ""
    return f"`{'` and `'.join(names)}` {'is' if len(names) == 1 else 'are'} always in sight."


def _verdict(curves: tuple[reveal.Curve, ...], word: str, guess: str | None) -> str:
    """What the numbers say, and whether the prediction was right."""
    said = reveal.verdict(curves)
    final = {curve.side: percent(curve.final) for curve in curves}
    numbers = f"“{word}” gets {final['left']} from the left, {final['right']} from the right, {final['both']} from both"
    if guess is None:
        return f"The numbers say: **{OPTIONS[said]}**. {numbers}."
    agree = "as you said" if guess == said else f"you said {OPTIONS[guess]}"
    return f"The numbers say: **{OPTIONS[said]}** ({agree}). {numbers}."
