"""The Meaning page: type a sentence with the word, read which sense it is near, change it."""

import re

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from bert_core import TraceRequest, load_engine
from bert_core.measures.meaning import first_occurrences
from bert_core.measures.similarity import cosine_to
from tests.browser.waiting import becomes, holds
from tests.cases import quick_are
from ui.views.task_models import examples

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

RIVER, MONEY = "The ducks slept on the bank of the river.", "My bank lends money to students."
PARTS = ("hidden_states", "token_embeddings")


def expected(text: str) -> dict[str, float]:
    """Mean cosine, last layer, of the sentence's word to each sense."""
    entry = next(one for one in examples("meaning")["words"] if one["word"] == "bank")
    sentences = [*(sentence for sentence, _ in entry["sentences"]), text]
    traces = load_engine("twin-bert").run_many([TraceRequest(one, model="twin-bert", parts=PARTS) for one in sentences])
    *shipped, mine = first_occurrences(traces, "bank")
    cosines = np.array([float(cosine_to(one.states[-1], mine.states[-1])) for one in shipped])
    senses = np.array([sense for _, sense in entry["sentences"]])
    return {sense: float(cosines[senses == sense].mean()) for sense in ("money", "river")}


def nearest(page: Page) -> tuple[str, float]:
    """The sense that the page says is nearest, and its cosine."""
    line = page.get_by_text("In the last layer your “bank” is nearest to").inner_text()
    sense, cosine = re.search(r"nearest to “(\w+)”: cosine (\d\.\d\d)", line).groups()
    return sense, float(cosine)


def test_a_typed_sentence_joins_its_sense(visitor):
    visitor.open("meaning", text=RIVER, word="bank")
    for text in (MONEY, RIVER):
        visitor.type(text)
        numbers = expected(text)
        near = max(numbers, key=numbers.get)
        becomes(visitor.page, lambda: nearest(visitor.page), (near, pytest.approx(numbers[near], abs=0.011)))
    visitor.no_traceback()


def test_a_sentence_without_the_word_is_told_so(visitor):
    visitor.open("meaning", text="Nothing here.", word="bat")
    expect(visitor.page.get_by_text("Your sentence has no “bat”")).to_be_visible()
    field = visitor.page.get_by_label("More sentences, one a line")
    empty = field.evaluate("field => field.clientHeight")
    assert empty < 60  # a line
    field.fill("One bat.\nTwo bats.\nThree bats.")
    holds(visitor.page, lambda: field.evaluate("field => field.clientHeight") > empty + 30)


@pytest.mark.parametrize("width", quick_are(1, [390, 1440]))
def test_map_and_neighbours(new_visitor, width):
    visitor = new_visitor(width=width)
    visitor.open("meaning", text=RIVER, word="bank", view="Map", layer=2)
    points = visitor.page.locator(".js-plotly-plot .scatterlayer .point")
    expect(points).to_have_count(7)  # six shipped, one typed
    visitor.open("meaning", text=RIVER, word="bank", view="Neighbours")
    marked = visitor.page.locator("[data-testid=stHtml] mark")
    expect(marked).to_have_count(20)
    assert "bank" in [word.lower() for word in marked.all_inner_texts()[:10]]
    visitor.fits()


def test_a_word_of_ones_own_with_lines_of_ones_own(visitor):
    visitor.open("meaning", text="The seal swam away.", word="your own word", own="seal",
                 lines="He put a seal on the letter.\nA seal ate the fish.")
    expect(visitor.page.get_by_text("“seal” in the last layer, mean cosine")).to_be_visible()
    visitor.no_traceback()


def test_a_word_longer_than_the_page_is_broken(new_visitor):
    visitor = new_visitor(width=390)
    page = visitor.open("meaning", view="Sentences", text="abcdefghij" * 300)
    visitor.fits()
    page.set_viewport_size({"width": 800, "height": 844})  # beside the sidebar a matrix needs all of the rest
    holds(page, lambda: page.locator(".st-key-f_meaning_mean").bounding_box()["width"] > 400)
