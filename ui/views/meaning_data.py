"""Meaning: the words, their sentences and senses, and the sentence set of a model."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import streamlit as st

from bert_core import Trace, TraceRequest
from bert_core.figures.meaning import YOURS
from bert_core.measures.meaning import Occurrence, all_words, every_occurrence, first_occurrences, word_places
from bert_core.measures.similarity import RandomPairs, random_pairs
from bert_core.serving import EVERYONE
from bert_core.tokenizer import Tokenizer
from ui import controls, state
from ui.state import Here
from ui.views.task_models import examples, say

PARTS = ("hidden_states", "token_embeddings")
OWN = "your own word"
UNKNOWN = "shipped sentences"
#: Sentences that a visitor may add, and characters in all.
MOST_LINES, MOST_CHARACTERS = 12, 3000
#: Occurrences of a typed word that are taken from the shipped set, and of any word from the visitor's sentences.
FROM_SET, FROM_YOURS = 8, 12


@dataclass(frozen=True)
class WordSet:
    """A word and where it occurs.

    Attributes:
        senses: one entry an occurrence.
        layer: whose vectors are looked at, 0 the embeddings; None where the view asks for none.
    """

    word: str
    found: tuple[Occurrence, ...]
    senses: tuple[str, ...]
    layer: int | None = None


@dataclass(frozen=True)
class Library:
    """Every word of the shipped sentence set in one model, and its random pairs."""

    words: tuple[Occurrence, ...]
    baseline: RandomPairs


@st.cache_resource(max_entries=3, show_spinner="Reading the sentence set …")
def library(model: str) -> Library:
    """The sentence set as this model reads it; about 20 MB for a small model."""
    words = all_words(state.engine().run_many(_requests(model, examples("meaning")["set"]), EVERYONE, keep=False))
    states = np.stack([word.states for word in words])  # (N, L+1, D)
    return Library(tuple(words), random_pairs(states, np.array([word.sentence for word in words])))


def _requests(model: str, sentences: list[str]) -> list[TraceRequest]:
    return [TraceRequest(text, model=model, parts=PARTS) for text in sentences]


def word_set(here: Here, asks_layer: bool = False) -> WordSet | None:
    """The chosen word in its sentences and the visitor's; None, and a word why, if there are too few."""
    shipped = {entry["word"]: entry for entry in examples("meaning")["words"]}
    left, *between, right = st.columns([1, 1, 2] if asks_layer else [1, 2], gap="medium")
    with left:
        chosen = controls.choice("Word", [*shipped, OWN], "word", _that_stands_here(here, shipped), as_list=True)
        word = controls.text("Your word", "own", "river", max_chars=60) if chosen == OWN else chosen
    layer = None
    for place in between:
        with place:
            layer = layer_of(state.loaded(here.model).config.num_hidden_layers)
    with right:
        mine = _own_sentences(here)
    if not word.strip():
        say("Type a word to look for.", strong=True)
        return None
    sentences, senses = _sentences(shipped.get(chosen), word, state.loaded(here.model).tokenizer)
    fresh = [text for text in mine if text not in sentences]
    traces = state.traces(_requests(here.model, [*sentences, *fresh]))
    known, own = first_occurrences(traces[:len(sentences)], word), _yours(traces[len(sentences):], word)
    found = (*known, *own)
    result = WordSet(word, found, (*(senses[one.sentence] for one in known), *(YOURS for _ in own)), layer)
    if len(found) < 2:
        say(f"“{word}” stands in {len(found)} sentence here; two are needed. Type sentences that have it.", strong=True)
        return None
    if not any(one.text in mine for one in found):
        say(f"Your sentence has no “{word}”. Type one that has it, and it joins the picture.")
    return result


def layer_of(last: int) -> int:
    """The layer of the picture, of 0 to `last`; 0 are the embeddings."""
    return controls.slider("Layer (0: the input)", 0, last, "layer", last)


def _yours(traces: list[Trace], word: str) -> list[Occurrence]:
    """Every place of the visitor's sentences that has the word; it is said where these are too many."""
    count = sum(1 for trace in traces for _ in word_places(trace.encoding, word))
    if count > FROM_YOURS:
        say(f"Your sentences have “{word}” {count} times; the first {FROM_YOURS} are taken.")
    return every_occurrence(traces, word, FROM_YOURS)


def _that_stands_here(here: Here, words: Iterable[str]) -> str | None:
    """The first of the words that the visitor's sentences have, so that they join the picture at once."""
    texts = f"{here.text}\n{here.pair or ''}"
    return next((word for word in words if re.search(rf"\b{re.escape(word)}\b", texts, re.IGNORECASE)), None)


def _own_sentences(here: Here) -> list[str]:
    """The visitor's sentence, second sentence, and further lines."""
    more = controls.lines("More sentences, one a line", "lines", MOST_CHARACTERS,
                          "They join your sentence above in the picture.")[:MOST_LINES]
    return list(dict.fromkeys(text for text in (here.text, here.pair, *more) if text and text.strip()))


def _sentences(entry: dict | None, word: str, tokenizer: Tokenizer) -> tuple[list[str], list[str]]:
    """Shipped sentences with the word, and the sense of each."""
    if entry is not None:
        return [text for text, _ in entry["sentences"]], [sense for _, sense in entry["sentences"]]
    near = (text for text in examples("meaning")["set"] if word.strip().lower() in text.lower())
    held = [text for text in near if any(word_places(tokenizer.encode(text), word))][:FROM_SET]
    return held, [UNKNOWN] * len(held)
