"""[CLS] by another name: which token a classifier answers from, and what its family calls it."""

from __future__ import annotations

from bert_core.measures.cls import answers_at
from bert_core.tokenizer import ROLES, Encoding
from ui import notices, state
from ui.state import Here


def place_and_name(model: str, encoding: Encoding) -> tuple[int, str]:
    """Position of the token that this model's classifier reads, and its name in a sentence: '[CLS]', '<s>'."""
    tokenizer = state.loaded(model).tokenizer
    place = answers_at(tokenizer, encoding)
    return place, encoding.tokens[place] if tokenizer.has_cls else "the last token"


def answers_from(model: str, encoding: Encoding) -> str:
    """What this model's classifier reads, in a sentence: '[CLS]', 'the last token', 'the mean of all tokens'."""
    return "the mean of all tokens" if state.loaded(model).averages_tokens else place_and_name(model, encoding)[1]


def say_name(here: Here) -> None:
    """One line where this model has another token in the place of [CLS], or reads them all."""
    _, name = place_and_name(here.model, here.encoding)
    if state.loaded(here.model).averages_tokens:
        notices.note(f"The head of {here.model} reads the mean of all tokens' last vectors, not that of "
                     f"{ROLES['cls']} alone. What this page shows of {name} is only a part of what the head reads.")
    elif not state.loaded(here.model).tokenizer.has_cls:
        notices.note(f"{here.model} puts no {ROLES['cls']} before its input; its head reads {name}, which takes the "
                     f"place of {ROLES['cls']} on this page.")
    elif name != ROLES["cls"]:
        notices.note(f"{here.model} writes {name} where BERT writes {ROLES['cls']}: what this page says about "
                     f"{ROLES['cls']} holds for {name}.")
