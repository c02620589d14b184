"""A page opens on its own first view, whatever view of the same name the page before showed."""

from __future__ import annotations

import pytest

from bert_core.serving.rooms import View
from tests.payloads import is_ready, visit
from ui import tour

#: Page with a view -> page that has a view of the same name, and its first one.
SAME_NAMES = (("tokens", "Step by step", "attention", "All heads"), ("compare", "Side by side", "family", "Anatomy"),
              ("embeddings", "Neighbours", "meaning", "By layer"))


@pytest.mark.parametrize(("page", "view", "other", "first"), SAME_NAMES)
def test_the_sidebar_opens_a_page_on_its_first_view(page, view, other, first):
    at = visit(page, view=view)
    at.query_params.pop("view", None)  # as the browser does on the way
    at.switch_page(f"pages/{other}.py").run()
    is_ready(at)
    assert at.session_state["view"] == first


@pytest.mark.parametrize(("page", "view", "other", "first"), SAME_NAMES)
def test_who_is_sent_to_a_page_lands_on_its_first_view_or_on_the_one_that_is_named(page, view, other, first):
    for named, expected in (((), first), ((("view", view),), view)):
        at = visit(page, view=view)
        at.session_state["_going"] = View(other, (("pair", ""), *named))
        at.run()
        is_ready(at)
        assert (at.session_state["_page"], at.session_state["view"]) == (other, expected)


def test_the_tour_shows_the_views_that_its_words_speak_of():
    at, seen = visit("masking", tour="1"), []
    for stop in tour.stops():
        is_ready(at)
        seen.append((at.session_state["_page"], at.session_state["view"]))
        if stop is not tour.stops()[-1]:
            at.button(key="_tour_next").click().run()
    assert seen == [("masking", "Fill the gap"), ("tokens", "Step by step"), ("attention", "All heads"),
                    ("compare", "Side by side"), ("class", "Lessons")]
