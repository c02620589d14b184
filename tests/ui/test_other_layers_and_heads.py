"""Words that hold 'layer' or 'heads' and mean something else get their own explanation, and [SEP] no claim."""

from __future__ import annotations

import html

import pytest

from ui import glossary, shell


def meaning_of(name: str) -> str:
    return next(html.escape(term.means) for term in glossary.terms() if term.name == name)


@pytest.mark.parametrize(("said", "term"), [
    ("one linear layer on top", "linear layer"), ("dense layer, tanh, weight", "linear layer"),
    ("the last layer", "layer"), ("twelve heads each", "attention head")])
def test_the_longest_term_explains(said: str, term: str):
    marked = glossary.mark(said)
    assert meaning_of(term) in marked
    assert marked.count("<dfn") == 1


@pytest.mark.parametrize(("page", "view"), [("tasks", "Entities"), ("cls", "The head"), ("finetune", "")])
def test_pages_that_speak_of_a_linear_layer_explain_that_one(page: str, view: str):
    words = shell.prose(page)
    assert meaning_of("linear layer") in words.heading + words.below + shell.prose(page, view).below
