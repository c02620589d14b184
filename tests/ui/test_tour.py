"""The tour's box speaks of what is on screen, wherever Back, the sidebar or a switch have led."""

from __future__ import annotations

import pytest

from tests.payloads import is_ready, said, visit
from ui import tour

TITLES = [stop["title"] for stop in tour.stops()]


@pytest.mark.parametrize(("page", "view", "title"), [
    ("masking", "", "A gap"), ("masking", "The head", "A gap"), ("attention", "", "Who looks at whom"),
    ("attention", "Act", "Who looks at whom"), ("attention", "Through the layers", "Through the layers"),
    ("class", "Room", "That is all you need"), ("meaning", "", None),
])
def test_a_stop_belongs_to_its_view_or_its_page(page, view, title):
    at = tour.stop_for(page, view)
    assert (None if at is None else TITLES[at]) == title


def test_another_stops_view_brings_its_words_and_the_way_on_from_there():
    at = visit("masking", tour="1")
    at.switch_page("pages/attention.py").run()
    assert "3 of 6: Who looks at whom" in said(at)
    at.segmented_control(key="view").set_value("Through the layers").run()
    assert "4 of 6: Through the layers" in said(at)
    at.button(key="_tour_next").click().run()
    is_ready(at)
    assert at.session_state["_page"] == "compare"


def test_a_page_of_no_stop_has_a_way_back_to_the_last_one():
    at = visit("masking", tour="1")
    at.button(key="_tour_next").click().run()
    at.switch_page("pages/meaning.py").run()
    assert "You were at 2 of 6: Pieces." in said(at)
    assert "This is what the model gets" not in said(at)
    at.button(key="_tour_back").click().run()
    is_ready(at)
    assert at.session_state["_page"] == "tokens"
    assert "2 of 6: Pieces" in said(at)
    at.switch_page("pages/meaning.py").run()
    at.button(key="_tour_end").click().run()
    assert "of 6" not in said(at)
