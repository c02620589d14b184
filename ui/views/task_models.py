"""Which model makes the picture of a task, and the plain answer when it isn't there."""

from __future__ import annotations

import functools
import html
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from bert_core import load
from bert_core.figures.masking import near_an_end
from bert_core.serving.rooms import View
from ui import controls, going, notices, shell, state
from ui.follow import read_by
from ui.state import Here

#: How a stretch of text is marked, in either theme.
MARK = ("background:color-mix(in srgb, currentColor 15%, transparent);color:inherit;font-weight:600;"
        "border-radius:4px;padding:0 3px")
EXAMPLES = Path(__file__).resolve().parent.parent.parent / "assets" / "examples"
ATTENTION = Path(__file__).resolve().parent.parent.parent / "pages" / "attention.py"

#: Before a widget's key: where the session keeps the default that it last had.
DEFAULT_OF = "_default_"
#: Session key: how many examples were put in.
TRIED = "_tried"

#: Head that a task needs -> (its name in ModelInfo.tasks, in words).
TASKS = {
    "classification": ("classify", "classification"), "token_classification": ("ner", "token-classification"),
    "question_answering": ("answer", "question-answering"), "nsp": ("nsp", "next-sentence"),
}


@functools.cache
def examples(name: str) -> Any:
    """The parsed assets/examples/NAME.json; don't change it."""
    return json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8"))


def open_view(options: list[str]) -> tuple[str, DeltaGenerator]:
    """The page's views in one row with a place for the model of the picture."""
    left, right = st.columns([3, 1], gap="medium", vertical_alignment="center")
    with left:
        chosen = controls.view(options)
    return chosen, right


def with_head(here: Here, head: str, preferred: str, key: str, label: str | None = None) -> Here:
    """The visitor's input with a model that has the head.

    The model of the sidebar if it has it; else one that the visitor chooses,
    first the one trained for this task. Without it the page says so and ends.

    Args:
        head: of Model.heads.
        preferred: the shipped model of this task.
        key: parameter of the choice in the address.
        label: what the task's labels say; a model with other words in its labels was trained for another task.
    """
    task, words = TASKS[head]
    loaded = state.loaded(here.model)
    if head in loaded.model.heads and (label is None or may_say(loaded.config.id2label, label)):
        return here
    names = [name for name in state.model_names() if task in tasks_of(name)]
    if preferred not in names:
        that = "" if label is None else f" with the label “{label}”"
        state.stop(f"{preferred} is not here, and {here.model} has no trained {words} head{that}. "
                   "Under Model name one that has: a folder or a hub id.")
    names = [preferred, *(name for name in names if name != preferred and label is None)]
    chosen = names[0]
    if len(names) > 1:
        lacks = f"{controls.literal(here.model)} has no {words} head, so another model answers here."
        chosen = controls.choice("Model of this picture", names, key, as_list=True, help=lacks)
    else:
        st.html(f'<p class="bw-small"><strong translate="no">{html.escape(shell.short_name(chosen))}</strong> answers '
                f"here; {html.escape(shell.short_name(here.model))} has no such head.</p>")
    read_by(chosen)
    return replace(here, model=chosen)


def may_say(labels: Sequence[str], label: str) -> bool:
    """Whether a classifier's labels have this word, or are bare numbers that leave it open."""
    return any(label in name for name in labels) or all(name.startswith("LABEL_") for name in labels)


def tasks_of(name: str) -> tuple[str, ...]:
    """What a model can do, as ModelInfo.tasks; only the default one, which every visitor needs, is loaded for it."""
    if name in load.shipped_names():
        return _shipped_tasks(name)
    own = state.own_models()
    return own[name] if name in own else state.loaded(name).info.tasks


@st.cache_resource(max_entries=64, show_spinner=False)
def _shipped_tasks(name: str) -> tuple[str, ...]:
    return load.describe_folder(load.SHIPPED / name).tasks


def follow(key: str, default: str) -> None:
    """Before the widget `key`: let a default that nobody has edited follow what it is the default of."""
    before = st.session_state.get(DEFAULT_OF + key)
    if before is not None and st.session_state.get(key) == before:
        st.session_state[key] = default
    st.session_state[DEFAULT_OF + key] = default


def put(text: str, pair: str | None = None) -> None:
    """Callback: make this the visitor's input."""
    st.session_state["text"] = text
    st.session_state["pair"] = pair or ""
    st.session_state[TRIED] = tried() + 1


def tried() -> int:
    """How many examples this visitor has put in: a picture that takes the place of their buttons takes the focus."""
    return st.session_state.get(TRIED, 0)


def or_example(here: Here, text: str, pair: str | None = None) -> Here:
    """The visitor's input; a shipped example, said to be one, while nothing has been typed yet."""
    if (here.text, here.pair) != (state.DEFAULT_TEXT, None):
        return here
    shown = f"“{text}”" if pair is None else f"“{text}” + “{_short(pair)}”"
    notices.note(f"An example until you type your own above: {shown}")
    return replace(here, text=text, pair=pair)


def try_buttons(inputs: Sequence[tuple[str, str | None]], key: str, only_first: bool = False) -> None:
    """Shipped inputs as buttons that put them in the shared fields.

    Args:
        only_first: name a pair by its first sentence.
    """
    with st.container(horizontal=True, gap="small"):
        for n, (text, pair) in enumerate(inputs):
            label = named(text, None if only_first else pair)
            st.button(label, key=f"try_{key}_{n}", on_click=put, args=(text, pair), type="tertiary")


def named(text: str, pair: str | None) -> str:
    """An input in a few words."""
    return _short(text) if pair is None else f"{_short(text)} + {_short(pair)}"


def _short(text: str, limit: int = 48) -> str:
    return text if len(text) <= limit else text[:limit].rsplit(" ", 1)[0] + " …"


def share(p: float) -> str:
    """A probability in a sentence: '58.1 %'; what is possible never reads as 0, nor as 100 % what isn't sure."""
    return near_an_end(p) or f"{100 * p:.1f} %"


def signed(value: float, digits: int = 2, plus: str = "+") -> str:
    """A number in words, with a minus sign for a hyphen and no sign before zero: '−0.31', '+1.20'."""
    size = f"{abs(value):.{digits}f}"
    return size if float(size) == 0 else f"{'−' if value < 0 else plus}{size}"


def marked(text: str, start: int, end: int) -> str:
    """The text as escaped HTML with [start, end) marked."""
    before, word, after = (html.escape(part) for part in (text[:start], text[start:end], text[end:]))
    return f'{before}<mark style="{MARK}">{word}</mark>{after}'


def lines(rows: Sequence[str]) -> None:
    """Rows of escaped HTML, one below the other."""
    items = "".join(f"<li>{row}</li>" for row in rows)
    st.html(f'<ul style="list-style:none;padding-left:0;overflow-wrap:anywhere">{items}</ul>')


def say(text: str, strong: bool = False) -> None:
    """A line of plain text below a picture; nothing in it is read as HTML or Markdown."""
    words = html.escape(notices.unbroken(text))
    st.html(f"<p><strong>{words}</strong></p>" if strong else f"<p>{words}</p>")


def attention_buttons(*read: Here) -> None:
    """A way to the attention inside this very answer, in this session.

    Args:
        read: each input that the model of the picture read by itself.
    """
    for n, here in enumerate(read if ATTENTION.exists() else ()):
        inputs = (("model", here.model), ("pair", here.pair or ""), ("text", here.text))
        what = "this" if len(read) == 1 else f"sentence {n + 1}"
        st.button(f"Open {what} in the attention of {controls.literal(here.model)}",
                  key="to_attention" + ("" if n == 0 else f"_{n}"), icon=":material/open_in_new:", type="tertiary",
                  on_click=going.to, args=(View("attention", inputs, ()),))
