"""The Tasks page: entities on the text, answers on the grid, pairs on a phone, acceptability."""

import pytest

from bert_core import load_engine
from bert_core.load import shipped_names
from bert_core.tasks import answer, classify, embed, find_entities

pytestmark = pytest.mark.browser

NAMES = "Anna Schmidt moved from Hamburg to Toronto."
QUESTION = {"text": "When did the bridge open?", "pair": "The bridge was planned in 1874. It opened in May 1881."}
#: The text that was drawn, without the labels of its entities.
TEXT_WITHOUT_LABELS = """element => {
  const copy = element.cloneNode(true);
  copy.querySelectorAll('.bw-tag').forEach((label) => label.remove());
  return copy.textContent;
}"""
PAIR = {"text": "A man plays the guitar.", "pair": "Someone makes music."}


def is_here(visitor, model: str) -> bool:
    """Whether the model is shipped; where it isn't, the page must have said so."""
    if model in shipped_names():
        return True
    assert f"{model} is not here" in visitor.page.get_by_role("alert").inner_text()
    return False


@pytest.mark.parametrize("width", [390, 1440])
def test_entities_are_drawn_where_they_stand(new_visitor, width):
    visitor = new_visitor(width=width)
    visitor.open("tasks", text="Nobody is here.")
    if not is_here(visitor, "twin-bert-ner"):
        return
    visitor.type(NAMES)
    found = find_entities(load_engine("twin-bert-ner"), NAMES).entities
    drawn = [(box.get_attribute("data-label"), int(box.get_attribute("data-start")), int(box.get_attribute("data-end")))
             for box in visitor.page.locator(".bw-entity").all()]
    assert drawn == [(entity.label, entity.start, entity.end) for entity in found]
    assert visitor.page.locator(".bw-text").evaluate(TEXT_WITHOUT_LABELS) == NAMES
    visitor.page.locator(".bw-word").first.focus()
    visitor.page.keyboard.press("ArrowRight")
    assert "Schmidt" in visitor.page.locator(".bw-panel caption").inner_text()
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [390, 1440])
def test_the_grid_has_the_answer_and_forbids_ends_before_starts(new_visitor, width):
    visitor = new_visitor(width=width)
    visitor.open("tasks", view="Answers", **QUESTION)
    if not is_here(visitor, "twin-bert-squad"):
        return
    best = answer(load_engine("twin-bert-squad"), *QUESTION.values())
    grid = visitor.page.locator(".bw-startend")
    grid.get_by_text("The numbers as a table").click()
    first = grid.locator("tbody tr").first.inner_text().split("\t")
    assert first[0] == best.text
    assert float(first[5]) == pytest.approx(best.score, abs=1e-3)
    grid.locator("canvas").focus()
    for _ in range(20):
        visitor.page.keyboard.press("ArrowDown")
        visitor.page.keyboard.press("ArrowLeft")
    assert "the end stands before the start" in grid.locator(".bw-says").inner_text()
    visitor.type("Who planned the bridge?")
    visitor.no_traceback()
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_pair_on_a_phone(new_visitor):
    visitor = new_visitor(width=390, scheme="dark")
    visitor.open("tasks", view="Sentence pairs", **PAIR)
    tuned = "twin-bert-stsb" if "twin-bert-stsb" in shipped_names() else "twin-bert"
    if tuned == "twin-bert":
        assert visitor.page.get_by_text("twin-bert-stsb is not here").is_visible()
    value = float(visitor.page.locator('.bw-bar[data-label="in context"]').first.get_attribute("data-value"))
    engine = load_engine(tuned)
    assert value == pytest.approx(float(embed(engine, PAIR["text"]) @ embed(engine, PAIR["pair"])), abs=1e-4)
    visitor.type(PAIR["text"], label="Second sentence")
    again = float(visitor.page.locator('.bw-bar[data-label="in context"]').first.get_attribute("data-value"))
    assert again == pytest.approx(1.0, abs=1e-5)
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 390


def test_acceptability(visitor):
    visitor.open("tasks", view="Acceptability", text="The boys is sleeping.")
    if not is_here(visitor, "twin-bert-cola"):
        return
    expected = classify(load_engine("twin-bert-cola"), "The boys is sleeping.")
    label, probability = next(iter(expected.probabilities.items()))
    shown = visitor.page.locator(f'.bw-bar[data-label="{label}"]').get_attribute("data-value")
    assert float(shown) == pytest.approx(probability, abs=1e-4)


def test_each_picture_opens_into_its_attention(visitor):
    visitor.open("tasks", text=NAMES)
    if not is_here(visitor, "twin-bert-ner"):
        return
    visitor.page.get_by_role("button", name="Open this in the attention of twin-bert-ner").click()
    visitor.page.wait_for_url("**/attention?*")
    visitor.wait_ready(NAMES)
    assert "twin-bert-ner" in visitor.page.locator("[data-ready]").inner_text()
