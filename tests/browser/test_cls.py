"""The [CLS] page: type, read the answer, change a word, see it change; the next-sentence lab on a phone."""

import pytest

from bert_core import TraceRequest, load_engine
from bert_core.load import shipped_names
from bert_core.measures.attribution import Target, finish, leave_one_out
from bert_core.tasks import classify, is_next

pytestmark = pytest.mark.browser

CLASSIFIER = "twin-bert-sst2"
GOOD, BAD = "I loved this wonderful film.", "I hated this terrible film."
PAIR = {"text": "It had rained for three days.", "pair": "The river was now very high."}


def is_here(visitor, model: str) -> bool:
    """Whether the model is shipped; where it isn't, the page must have said so."""
    if model in shipped_names():
        return True
    assert f"{model} is not here" in visitor.page.get_by_role("alert").inner_text()
    return False


def bar(visitor, label: str, side: int = 0) -> float:
    return float(visitor.page.locator(f'.bw-bar[data-label="{label}"]').nth(side).get_attribute("data-value"))


def test_the_answer_follows_the_typing(visitor):
    visitor.open("cls", text=GOOD)
    if not is_here(visitor, CLASSIFIER):
        return
    engine = load_engine(CLASSIFIER)
    for text in (BAD, GOOD):
        visitor.type(text)
        expected = classify(engine, text)
        assert bar(visitor, "positive") == pytest.approx(expected.probabilities["positive"], abs=1e-4)
        assert visitor.page.locator(".bw-first .bw-name").inner_text() == expected.label
    visitor.no_traceback()


def test_the_strip_holds_what_leaving_out_gives(visitor):
    visitor.open("cls", text=BAD, explain="negative")
    if not is_here(visitor, CLASSIFIER):
        return
    strip = visitor.page.locator(".bw-influence")
    strip.get_by_text("The numbers as a table").click()
    rows = [row.split("\t") for row in strip.locator("tbody tr").all_inner_texts()]
    loaded = load_engine(CLASSIFIER).loaded(CLASSIFIER)
    expected = finish(leave_one_out(loaded, TraceRequest(BAD, model=CLASSIFIER), Target("classification", 0)))
    assert [row[0].split()[1] for row in rows] == list(expected.tokens)
    assert [float(row[1]) for row in rows] == pytest.approx(list(expected.values), abs=2e-3)
    strip.locator(".bw-column").first.focus()
    visitor.page.keyboard.press("ArrowRight")
    assert "“i”: left out" in strip.locator(".bw-says").inner_text()


def test_a_changed_word_stands_beside_the_old_answer(visitor):
    visitor.open("cls", text=GOOD, view="Change a word", changed=BAD)
    if not is_here(visitor, CLASSIFIER):
        return
    assert visitor.page.locator(".bw-quote mark").all_inner_texts() == ["loved", "wonderful", "hated", "terrible"]
    engine = load_engine(CLASSIFIER)
    assert bar(visitor, "positive", 0) == pytest.approx(classify(engine, GOOD).probabilities["positive"], abs=1e-4)
    assert bar(visitor, "positive", 1) == pytest.approx(classify(engine, BAD).probabilities["positive"], abs=1e-4)
    run = visitor.run_number()
    visitor.page.get_by_label("Changed sentence").fill(GOOD)
    visitor.after(run)
    assert bar(visitor, "positive", 1) == pytest.approx(bar(visitor, "positive", 0), abs=1e-6)


def test_the_head_is_opened_down_to_its_numbers(visitor):
    visitor.open("cls", text=GOOD, view="The head")
    if not is_here(visitor, CLASSIFIER):
        return
    strips = visitor.page.get_by_role("img", name="From [CLS] to the logit")
    strips.focus()
    before = visitor.page.locator(".bw-operands .bw-says").inner_text()
    visitor.page.keyboard.press("ArrowLeft")
    assert visitor.page.locator(".bw-operands .bw-says").inner_text() != before
    assert "the run itself gave" in visitor.page.locator("body").inner_text()


def test_next_sentence_on_a_phone(new_visitor):
    visitor = new_visitor(width=390, scheme="dark")
    visitor.open("cls", view="Next sentence", **PAIR)
    engine = load_engine("twin-bert")
    assert bar(visitor, "IsNext", 0) == pytest.approx(is_next(engine, *PAIR.values()), abs=1e-4)
    assert bar(visitor, "IsNext", 1) == pytest.approx(is_next(engine, PAIR["pair"], PAIR["text"]), abs=1e-4)
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 390
    for box in visitor.page.locator(".bw-bar").all():
        assert box.bounding_box()["x"] + box.bounding_box()["width"] <= 390
    run = visitor.run_number()
    visitor.page.get_by_role("button", name="Swap A and B").click()
    visitor.after(run)
    assert visitor.page.get_by_label("Sentence", exact=True).input_value() == PAIR["pair"]
    visitor.no_traceback()


def test_a_guess_comes_before_the_answer(visitor):
    visitor.open("cls", view="Next sentence", nsp="Ten pairs to predict first")
    assert "The model says" not in visitor.page.locator("body").inner_text()
    run = visitor.run_number()
    visitor.page.get_by_text("does not", exact=True).first.click()
    visitor.after(run)
    words = visitor.page.locator("body").inner_text()
    assert words.count("The model says") == 1
    assert "Of 1 pairs you had" in words
