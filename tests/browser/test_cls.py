"""The [CLS] page: type, read the answer, change a word, see it change; the next-sentence lab on a phone."""

import pytest
from playwright.sync_api import expect

from bert_core import TraceRequest, load_engine
from bert_core.measures.attribution import finish, leave_one_out
from bert_core.measures.target import Target
from bert_core.tasks import classify, is_next
from tests.browser.tables import bar_shows
from tests.browser.waiting import becomes, holds

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

CLASSIFIER = "twin-bert-sst2"
GOOD, BAD = "I loved this wonderful film.", "I hated this terrible film."
PAIR = {"text": "It had rained for three days.", "pair": "The river was now very high."}


def test_the_answer_follows_the_typing(visitor):
    visitor.open("cls", text=GOOD)
    engine = load_engine(CLASSIFIER)
    for text in (BAD, GOOD):
        visitor.type(text)
        expected = classify(engine, text)
        bar_shows(visitor.page, "positive", expected.probabilities["positive"])
        expect(visitor.page.locator(".bw-first .bw-name")).to_have_text(expected.label)
    visitor.no_traceback()


def test_the_strip_holds_what_leaving_out_gives(visitor):
    visitor.open("cls", text=BAD, explain="negative")
    strip = visitor.page.locator(".bw-influence")
    strip.get_by_text("The numbers as a table").click()
    loaded = load_engine(CLASSIFIER).loaded(CLASSIFIER)
    expected = finish(leave_one_out(loaded, TraceRequest(BAD, model=CLASSIFIER), Target("classification", 0)))
    becomes(visitor.page, lambda: [(row.split()[1], float(row.split("\t")[1]))
                                   for row in strip.locator("tbody tr").all_inner_texts()],
            [(token, pytest.approx(value, abs=2e-3))
             for token, value in zip(expected.tokens, expected.values, strict=True)])
    strip.locator(".bw-column").first.focus()
    visitor.page.keyboard.press("ArrowRight")
    expect(strip.locator(".bw-says")).to_contain_text("“i”: leave one out")


def test_a_changed_word_stands_beside_the_old_answer(visitor):
    visitor.open("cls", text=GOOD, view="Change a word", changed=BAD)
    expect(visitor.page.locator(".bw-quote mark")).to_have_text(["loved", "wonderful", "hated", "terrible"])
    engine = load_engine(CLASSIFIER)
    good, bad = (classify(engine, text).probabilities["positive"] for text in (GOOD, BAD))
    bar_shows(visitor.page, "positive", good, 0)
    bar_shows(visitor.page, "positive", bad, 1)
    run = visitor.run_number()
    visitor.page.get_by_label("Changed sentence").fill(GOOD)
    visitor.after(run)
    bar_shows(visitor.page, "positive", good, 1)


def test_the_changed_sentence_follows_until_it_is_edited(visitor):
    visitor.open("cls", text=GOOD, view="Change a word")
    visitor.in_sentence(GOOD, label="Changed sentence")
    visitor.type(BAD)
    visitor.in_sentence(BAD, label="Changed sentence")
    visitor.type("I hated", label="Changed sentence")
    visitor.type(GOOD)
    visitor.in_sentence("I hated", label="Changed sentence")


def test_the_head_is_opened_down_to_its_numbers(visitor):
    visitor.open("cls", text=GOOD, view="The head")
    strips = visitor.page.get_by_role("slider", name="From [CLS] to the logit")
    strips.focus()
    says = visitor.page.locator(".bw-operands .bw-says")
    expect(says).not_to_be_empty()
    before = says.inner_text()
    visitor.page.keyboard.press("ArrowLeft")
    expect(says).not_to_have_text(before)
    expect(visitor.page.locator("body")).to_contain_text("the run itself gave")


def test_next_sentence_on_a_phone(new_visitor):
    visitor = new_visitor(width=390, scheme="dark")
    visitor.open("cls", view="Next sentence", **PAIR)
    engine = load_engine("twin-bert")
    bar_shows(visitor.page, "IsNext", is_next(engine, *PAIR.values()), 0)
    bar_shows(visitor.page, "IsNext", is_next(engine, PAIR["pair"], PAIR["text"]), 1)
    visitor.fits()
    bars = visitor.page.locator(".bw-bar")
    holds(visitor.page, lambda: bars.evaluate_all("bars => Math.max(...bars.map(b => b.getBoundingClientRect().right))")
          <= 390)
    run = visitor.run_number()
    visitor.page.get_by_role("button", name="Swap A and B").click()
    visitor.after(run)
    visitor.in_sentence(PAIR["pair"])
    visitor.no_traceback()


def test_a_guess_comes_before_the_answer(visitor):
    visitor.open("cls", view="Next sentence", nsp="Ten pairs to predict first")
    expect(visitor.page.get_by_text("does not", exact=True)).to_have_count(10)
    expect(visitor.page.locator("body")).not_to_contain_text("The model says")
    run = visitor.run_number()
    visitor.page.get_by_text("does not", exact=True).first.click()
    visitor.after(run)
    holds(visitor.page, lambda: visitor.page.locator("body").inner_text().count("The model says") == 1)
    expect(visitor.page.locator("body")).to_contain_text("Of 1 pair you had")
