"""The Meaning page: type a sentence with the word, read which sense it is near, change it."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from bert_core import TraceRequest, load_engine
from bert_core.measures.meaning import first_occurrences
from bert_core.measures.similarity import cosine_to
from ui.views.task_models import examples

pytestmark = pytest.mark.browser

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


def test_a_typed_sentence_joins_its_sense(visitor):
    visitor.open("meaning", text=RIVER, word="bank")
    for text in (MONEY, RIVER):
        visitor.type(text)
        line = visitor.page.get_by_text("In the last layer your “bank” is nearest to").inner_text()
        near, cosine = re.search(r"nearest to “(\w+)”: cosine (\d\.\d\d)", line).groups()
        numbers = expected(text)
        assert near == max(numbers, key=numbers.get)
        assert float(cosine) == pytest.approx(numbers[near], abs=0.011)
    visitor.no_traceback()


def test_a_sentence_without_the_word_is_told_so(visitor):
    visitor.open("meaning", text="Nothing here.", word="bat")
    assert visitor.page.get_by_text("Your sentence has no “bat”").is_visible()


@pytest.mark.parametrize("width", [390, 1440])
def test_map_and_neighbours(new_visitor, width):
    visitor = new_visitor(width=width)
    visitor.open("meaning", text=RIVER, word="bank", view="Map", layer=2)
    points = visitor.page.locator(".js-plotly-plot .scatterlayer .point")
    expect(points).to_have_count(7, timeout=60_000)  # six shipped, one typed; the chart draws after the page
    visitor.open("meaning", text=RIVER, word="bank", view="Neighbours")
    marked = visitor.page.locator("[data-testid=stHtml] mark").all_inner_texts()
    assert len(marked) == 20
    assert "bank" in [word.lower() for word in marked[:10]]
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_word_of_ones_own_with_lines_of_ones_own(visitor):
    visitor.open("meaning", text="The seal swam away.", word="your own word", own="seal",
                 lines="He put a seal on the letter.\nA seal ate the fish.")
    assert visitor.page.get_by_text("“seal” in the last layer, mean cosine").is_visible()
    visitor.no_traceback()
