"""The Tasks page: entities on the text, answers on the grid, pairs on a phone, acceptability."""

import pytest
from playwright.sync_api import expect

from bert_core import load_engine
from bert_core.tasks import answer, classify, embed, find_entities
from tests.browser.tables import bar_shows
from tests.browser.waiting import becomes
from tests.cases import quick_are

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

NAMES = "Anna Schmidt moved from Hamburg to Toronto."
#: A sentence that is none, and one that is.
ODD, PLAIN = "Boys the sleeping are.", "The boys are sleeping."
#: Of these the one is typed whose answer is least like that of QUESTION.
OTHERS = ("When was it planned?", "When did it open?", "What was planned?", "What opened in May?")
QUESTION = {"text": "When did the bridge open?", "pair": "The bridge was planned in 1874. It opened in May 1881."}
#: The text that was drawn, without the labels of its entities.
TEXT_WITHOUT_LABELS = """element => {
  const copy = element.cloneNode(true);
  copy.querySelectorAll('.bw-tag').forEach((label) => label.remove());
  return copy.textContent;
}"""
PAIR = {"text": "A man plays the guitar.", "pair": "Someone makes music."}


def drawn(visitor) -> list[tuple[str, int, int]]:
    """Label, start and end of every entity on the text."""
    return [(box["label"], int(box["start"]), int(box["end"]))
            for box in visitor.page.locator(".bw-entity").evaluate_all("all => all.map(one => ({...one.dataset}))")]


@pytest.mark.parametrize("width", quick_are(1, [390, 1440]))
def test_entities_are_drawn_where_they_stand(new_visitor, width):
    visitor = new_visitor(width=width)
    visitor.open("tasks", text="Nobody is here.")
    visitor.type(NAMES)
    found = find_entities(load_engine("twin-bert-ner"), NAMES).entities
    becomes(visitor.page, lambda: drawn(visitor), [(entity.label, entity.start, entity.end) for entity in found])
    becomes(visitor.page, lambda: visitor.page.locator(".bw-text").evaluate(TEXT_WITHOUT_LABELS), NAMES)
    visitor.page.locator(".bw-word").first.focus()
    visitor.page.keyboard.press("ArrowRight")
    expect(visitor.page.locator(".bw-panel caption")).to_contain_text("Schmidt")
    visitor.fits()


def test_a_word_that_is_clicked_stays_open_and_is_in_the_link(visitor):
    page = visitor.open("tasks", view="Entities", text="Anna lives in Cologne near Lee.")
    caption, words = page.locator(".bw-panel caption"), page.locator(".bw-word")
    run = visitor.run_number()
    words.filter(has_text="Cologne").click()
    visitor.after(run)
    assert "token=4" in page.url
    words.filter(has_text="Lee").hover()
    expect(caption).to_contain_text("“Lee”")
    page.mouse.move(2, 2)
    expect(caption).to_contain_text("“Cologne”")
    page = visitor.open("tasks", view="Entities", text="Anna lives in Cologne near Lee.", token="6")
    expect(caption).to_contain_text("“Lee”")
    run = visitor.run_number()
    page.locator(".bw-word[tabindex='0']").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    visitor.after(run)
    expect(caption).to_contain_text("“near”")
    expect(words.filter(has_text="near")).to_have_attribute("aria-pressed", "true")
    expect(words.filter(has_text="near")).to_be_focused()


@pytest.mark.parametrize("width", quick_are(1, [1440, 390]))
def test_the_grid_has_the_answer_and_forbids_ends_before_starts(new_visitor, width):
    visitor = new_visitor(width=width)
    visitor.open("tasks", view="Answers", **QUESTION)
    best = answer(load_engine("twin-bert-squad"), *QUESTION.values())
    grid = visitor.page.locator(".bw-startend")
    grid.get_by_text("The numbers as a table").click()
    first = grid.locator("tbody tr").first

    def read() -> tuple[str, float]:
        cells = first.inner_text().split("\t")
        return cells[0], float(cells[5])

    becomes(visitor.page, read, (best.text, pytest.approx(best.score, abs=1e-3)))
    grid.locator("canvas").focus()
    for _ in range(20):
        visitor.page.keyboard.press("ArrowDown")
        visitor.page.keyboard.press("ArrowLeft")
    expect(grid.locator(".bw-says")).to_contain_text("the end stands before the start")
    asked = {question: answer(load_engine("twin-bert-squad"), question, QUESTION["pair"]) for question in OTHERS}
    question, other = max(asked.items(), key=lambda pair: (pair[1].text != best.text, abs(pair[1].score - best.score)))
    visitor.type(question)
    becomes(visitor.page, read, (other.text, pytest.approx(other.score, abs=1e-3)))
    visitor.no_traceback()
    visitor.fits()


def test_a_pair_on_a_phone(new_visitor):
    visitor = new_visitor(width=390, scheme="dark")
    visitor.open("tasks", view="Sentence pairs", **PAIR)
    engine = load_engine("twin-bert-stsb")
    bar_shows(visitor.page, "these two sentences", float(embed(engine, PAIR["text"]) @ embed(engine, PAIR["pair"])))
    visitor.type(PAIR["text"], label="Second sentence")
    bar_shows(visitor.page, "these two sentences", 1.0, within=1e-5)
    visitor.fits()


def test_acceptability(visitor):
    visitor.open("tasks", view="Acceptability", text=ODD)
    engine = load_engine("twin-bert-cola")
    one, other = (classify(engine, text).probabilities["acceptable"] for text in (ODD, PLAIN))
    assert abs(one - other) > 1e-3
    bar_shows(visitor.page, "acceptable", one)
    visitor.type(PLAIN)
    bar_shows(visitor.page, "acceptable", other)


def test_each_picture_opens_into_its_attention(visitor):
    visitor.open("tasks", text=NAMES)
    visitor.page.get_by_role("button", name="Open this in the attention of twin-bert-ner").click()
    visitor.page.wait_for_url("**/attention?*")
    visitor.wait_ready(NAMES)
    expect(visitor.page.locator("[data-ready]")).to_contain_text("twin-bert-ner")
