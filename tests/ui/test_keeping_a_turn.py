"""A page that finds everything at hand draws in one turn: who gives it away waits behind the whole class."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from tests.payloads import is_ready, visit
from ui import state


@pytest.fixture
def given_away(monkeypatch) -> list[bool]:
    """For each time that a page could have to wait, whether it gave its turn away."""
    made: list[bool] = []

    @contextmanager
    def away(unless: bool = False):
        made.append(not unless)
        yield

    monkeypatch.setattr(state.TURNS, "away", away)
    return made


@pytest.mark.parametrize(("page", "parameters"), [
    ("masking", {"mask": "3"}), ("attention", {}), ("compare", {}), ("tokens", {}), ("embeddings", {})])
def test_a_sentence_that_somebody_had_read_is_drawn_in_one_turn(given_away, page, parameters):
    text = f"The old dog of the {page} page barked."
    is_ready(visit(page, text=text, **parameters))
    given_away.clear()
    is_ready(visit(page, text=text, **parameters))
    assert given_away
    assert not any(given_away)


def test_who_waits_for_the_engine_gives_its_turn_away(given_away):
    is_ready(visit("masking", text="The young dog has not been read before.", mask="3"))
    assert sum(given_away) == 1
