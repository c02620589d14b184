"""A page opens on its own first view, whatever view of the same name the page before showed."""

from __future__ import annotations

import tomllib

import pytest

from bert_core.serving.rooms import View
from tests.payloads import drawn, is_ready, said, visit
from ui import shell, tour

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
                    ("attention", "Through the layers"), ("compare", "Side by side"), ("class", "Lessons")]


LEADS = [(path.stem, view) for path in sorted(shell.PROSE.glob("*.toml"))
         for view in tomllib.loads(path.read_text(encoding="utf-8")).get("lead_of", {})]


@pytest.mark.parametrize(("name", "view"), LEADS)
def test_a_view_opens_with_a_lead_that_fits_it(name, view):
    own, first = shell.prose(name, view).heading, shell.prose(name).heading
    assert own != first
    at = visit(name, view=view)
    assert is_ready(at)["lines"] == []  # the page has such a view
    assert own in said(at)
    switch = at.segmented_control(key="view")
    switch.set_value(switch.options[0]).run()
    assert own not in said(at)
    assert first in said(at)


@pytest.mark.parametrize(("text", "place"), [
    ("The old dog barked all night.", 2), ("The old dog [MASK] all night.", 4), ("Hello", 1), ("Unbelievably good.", 6),
])
def test_all_pages_ask_about_the_same_token_until_one_is_chosen(text, place):
    assert drawn(visit("compare", text=text), "chips")["selected"] == [place]
    assert drawn(visit("attention", view="Step by step", text=text), "attention_steps")["query"] == place
    if "[MASK]" not in text:  # else these pages have no choice to offer, or hide one more
        for view in ("Act", "Attribution"):
            assert drawn(visit("attention", view=view, text=text), "chips")["selected"] == [place]
        assert drawn(visit("masking", view="Before and after", text=text), "gaps")["selected"] == [place]
