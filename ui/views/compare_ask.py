"""Compare page: who reads, and which word of the sentence is the question."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from bert_core.load import Loaded
from bert_core.measures import compare
from bert_core.measures.compare import Question, Readers
from bert_core.tokenizer import MASK, Encoding, Tokenizer
from bert_core.trace import Trace, TraceRequest
from ui import chips, controls, follow, notices, state
from ui.state import DEFAULT_TEXT, Here

ROOT = Path(__file__).resolve().parents[2]
TWINS = {"masked": "twin-bert", "left": "twin-gpt", "right": "twin-rtl"}
#: The word behind the gap of the sentence that a new visitor sees.
DEFAULT_WORD = "book"
#: Session key: the word behind a gap, as the last run had it.
_GIVEN = "_given_word"


@dataclass(frozen=True)
class Asked:
    """One question to the readers.

    Attributes:
        here: what the visitor looks at.
        readers: the models that read.
        encoding: the input as the masked model cuts it, the true word in its place.
        positions: the hidden pieces in it.
        question: the stretch of text that is hidden.
        word: the true word, '' where [MASK] was typed and nobody said what it was.
        guesses: how many guesses of each reader to show.
        beside: where the view's own controls go, in the row of the examples; None if it asked for no such place.
    """

    here: Here
    readers: Readers
    encoding: Encoding
    positions: tuple[int, ...]
    question: Question
    word: str
    guesses: int = controls.GUESSES
    beside: DeltaGenerator | None = None


class VisitorEngine:
    """The engine as measures use it: in this visitor's name and arithmetic, problems shown as one line."""

    default = TWINS["masked"]

    def run(self, request: TraceRequest, keep: bool = True) -> Trace:
        return self.run_many([request], keep)[0]

    def run_many(self, requests: Sequence[TraceRequest], keep: bool = True) -> list[Trace]:
        here = state.here()
        named = [replace(r, precision=replace(here, model=r.model or self.default).precision) for r in requests]
        return state.traces(named, keep)

    def loaded(self, name: str | None = None) -> Loaded:
        return state.loaded(name)


def readers_of(here: Here) -> Readers | None:
    """The twins; the visitor's own model takes the part that it can play. None if nobody can play the masked one."""
    there = set(state.model_names())
    parts = {part: name for part, name in TWINS.items() if name in there}
    mine = state.loaded(here.model)
    if "mlm" in mine.model.heads:
        parts["masked"] = here.model
    elif "lm" in mine.model.heads:
        parts["right" if mine.config.reading_order == "right-to-left" else "left"] = here.model
    return Readers(**parts) if "masked" in parts else None


def choose_readers(here: Here) -> Readers:
    """`readers_of`; it is said where the visitor's own model is none of them, or where there are none."""
    readers = readers_of(here)
    if readers is None:
        state.stop(f"{here.model} has no masked-LM head and no model that has one is here; "
                   "choose one in the sidebar.")
    if not {"mlm", "lm"} & set(state.loaded(here.model).model.heads):
        notices.note(f"{here.model} has no language-model head, so {readers.masked} reads instead.")
    else:
        _say_stranger(here, readers)
    return readers


def _say_stranger(here: Here, readers: Readers) -> None:
    """One line where the visitor's own model reads in the place of a twin, so that the training is not the same."""
    for part, twin in TWINS.items():
        if getattr(readers, part) == here.model and here.model != twin:
            notices.note(f"{here.model} reads in the place of {twin}. It is not a twin of the others, so the readers "
                         "may differ in more than what they see.")


def ask(here: Here, with_guesses: bool = False, with_notes: bool = True, beside: bool = False,
        one_way: Sequence[str] = ("left",), whole: bool = False) -> Asked:
    """Draw the examples and the chips; the chosen word is the question.

    Args:
        with_guesses: whether the view shows guesses, so that their number is a choice.
        with_notes: whether the examples say which side decides; not where the visitor is to guess that.
        beside: whether the view puts controls of its own beside the examples.
        one_way: which readers that go one way the view asks, of "left" and "right".
        whole: whether they read all of the sentence, not only up to the gap.
    """
    readers = choose_readers(here)
    encoding = state.loaded(readers.masked).tokenizer.encode(here.text, here.pair)
    if not encoding.content:
        _examples(with_notes)
        state.stop("There is no word to hide: type a sentence, or choose an example.")
    place = _place(encoding)
    question, is_gap = compare.question_at(encoding, place), place in encoding.mask_positions
    widths = [5 if beside else 4, *[2.4 if beside else 2] * (is_gap + with_guesses), *[6] * beside]
    columns = iter(st.columns(widths, gap="small", vertical_alignment="top" if beside else "bottom"))
    with next(columns):
        _examples(with_notes)
    word, guesses = question.word, controls.GUESSES
    if is_gap:
        with next(columns):
            _forget_another_gaps_word(question, encoding.tokens, place)
            word = _behind_the_mask(question, state.loaded(readers.masked).tokenizer)
        question = with_word(question, word) if word else question
    if with_guesses:
        with next(columns):
            guesses = controls.guesses()
    place_beside = next(columns).container(key="beside") if beside else None
    chips.tokens(encoding, "at", select="one", selected=(place,), label="Choose the word to hide")
    encoding = state.loaded(readers.masked).tokenizer.encode(question.text, question.pair)
    positions = state.or_stop(lambda: compare.positions_of(encoding, question))
    _say_other_gaps(readers, encoding, positions, one_way, whole)
    return Asked(here, readers, encoding, positions, question, word, guesses, place_beside)


def _say_other_gaps(readers: Readers, encoding: Encoding, positions: Sequence[int], one_way: Sequence[str],
                    whole: bool) -> None:
    """Which of these readers meet a [MASK] that stands elsewhere, on their way to the gap."""
    others = set(encoding.mask_positions) - set(positions)
    on_the_way = {"left": any(whole or n < min(positions) for n in others),
                  "right": any(whole or n > max(positions) for n in others)}
    if names := [getattr(readers, one) for one in one_way if getattr(readers, one) and on_the_way[one]]:
        as_what = "the piece" if state.loaded(names[0]).tokenizer.mask_token else "the letters"
        notices.note(f"The sentence has other gaps. {' and '.join(names)} "
                     f"{'read' if len(names) > 1 else 'reads'} them as {as_what} [MASK], which training never showed.")


def _place(encoding: Encoding) -> int:
    """The chosen token, from the address."""
    specials = [n for n, special in enumerate(encoding.special) if special]
    chosen = chips.chosen_positions("at", len(encoding), (chips.first_choice(encoding),), specials, only_one=True)
    return chosen[0] if chosen else chips.first_choice(encoding)


def with_word(question: Question, word: str) -> Question:
    """The question with the true word put where [MASK] was typed."""
    end = question.start + len(word)
    if question.sequence == 0:
        text = question.text[:question.start] + word + question.text[question.end:]
        return replace(question, text=text, end=end)
    pair = (question.pair or "")[:question.start] + word + (question.pair or "")[question.end:]
    return replace(question, pair=pair, end=end)


def with_best_guess(asked: Asked) -> Asked:
    """The same question of the word that the masked reader guesses first; as it was if that is no word by itself."""
    engine = VisitorEngine()
    readings, _ = compare.read(engine, asked.question, asked.readers, ("both",))
    guesses = compare.top(readings["both"], engine, 1) if "both" in readings else ()
    word = guesses[0].token if guesses else ""
    if not word.isalnum():
        return asked
    question = with_word(asked.question, word)
    encoding = state.loaded(asked.readers.masked).tokenizer.encode(question.text, question.pair)
    positions = compare.positions_of(encoding, question)
    return replace(asked, question=question, word=word, encoding=encoding, positions=positions)


class Given(NamedTuple):
    """A word, and the gap that it was given for: its input, its tokens, and the gap's place in both."""

    word: str
    inputs: tuple[str, str | None]
    at: tuple[int, int]
    tokens: Sequence[str]
    place: int

    def is_of(self, gap: Given) -> bool:
        """Whether that one is the same gap, in the same input or in the same one edited."""
        if self.inputs == gap.inputs:  # perhaps in another model's pieces
            return self.at == gap.at
        return follow.moved(self.tokens, gap.tokens).get(self.place) == gap.place


def _forget_another_gaps_word(question: Question, tokens: Sequence[str], place: int) -> None:
    """Before the word's widget: what was given for another gap, or another sentence, is not behind this one."""
    word = st.session_state.get("behind", st.query_params.get("behind", ""))
    before: Given | None = st.session_state.get(_GIVEN)
    now = Given(word, (question.text, question.pair), (question.sequence, question.start), tokens, place)
    if before is not None and word and word == before.word and not before.is_of(now):
        st.session_state["behind"] = ""
        now = now._replace(word="")
    st.session_state[_GIVEN] = now


def _behind_the_mask(question: Question, tokenizer: Tokenizer) -> str:
    """What the visitor says the gap hides, '' for what is no word; for the first sentence it is known."""
    known = DEFAULT_WORD if (question.text, question.sequence) == (DEFAULT_TEXT, 0) else ""
    typed = controls.text("Word behind the gap", "behind", max_chars=60, placeholder=known or "unknown",
                          help="With it the page can say what each reader gives the true word.")
    word = " ".join(typed.split()) or known
    if not word or MASK in word:
        return ""
    if not tokenizer.encode(word).content:
        notices.note("What you put behind the gap has no piece that a model could guess; the gap counts as unknown.")
        return ""
    return word


# --- examples ----------------------------------------------------------------

#: A verdict of bert_core.measures.reveal -> how an example says it.
NOTES = {"left": "left decides", "right": "right decides", "either": "either side will do",
         "together": "takes both sides", "neither": "nothing decides"}


@functools.cache
def examples() -> tuple[dict, ...]:
    """Shipped sentences: 'text', 'word' to hide, 'verdict' that Reveal measures with twin-bert, 'about' for some."""
    return tuple(json.loads((ROOT / "assets" / "examples" / "compare.json").read_text(encoding="utf-8")))


def example_label(example: dict, with_note: bool) -> str:
    """The sentence and its word; with the note also what decides."""
    about = [example["about"]] if "about" in example else []
    said = [f"“{example['word']}”", *about, *([NOTES[example["verdict"]]] if with_note else [])]
    return f"{example['text']}  ({', '.join(said)})"


def _examples(with_notes: bool) -> None:
    st.selectbox("Examples", range(len(examples())), index=None, key="_compare_example",
                 format_func=lambda n: example_label(examples()[n], with_notes),
                 placeholder="Does the right side decide?", on_change=_take_example)


def _take_example() -> None:
    """Put an example's sentence and word into the shared inputs and the address."""
    chosen = st.session_state.get("_compare_example")
    if not isinstance(chosen, int):  # none of them, whatever a browser says
        return
    text, word = examples()[chosen]["text"], examples()[chosen]["word"]
    st.session_state["text"], st.session_state["pair"] = text, ""
    st.session_state["_compare_example"] = None
    readers = choose_readers(replace(state.here(), text=text, pair=None))
    encoding = state.loaded(readers.masked).tokenizer.encode(text)
    question = Question(text, None, 0, text.index(word), text.index(word) + len(word))
    chips.set_positions("at", compare.positions_of(encoding, question)[:1])


# --- small parts that the views share ----------------------------------------


def say(text: str, kind: str = "cmp-line") -> None:
    """A line of prose under a picture, with *emphasis*, **strong** and `code`."""
    from ui.shell import inline

    if text:
        st.html(f'<p class="{kind}">{inline(text)}</p>')
