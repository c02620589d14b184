"""A word of one's own on the Meaning page: found as a whole word, and never read as Markdown."""

import html
import re

import numpy as np
import pytest

from bert_core.figures.meaning import YOURS, layer_lines
from bert_core.measures.meaning import cosines_by_layer, every_occurrence, first_occurrences
from bert_core.measures.similarity import cosine_to, similarity_matrix
from bert_core.serving.local import LocalEngine
from bert_core.trace import TraceRequest
from tests.payloads import is_ready, said, table_rows, visit
from ui import state
from ui.views.class_lessons import lessons
from ui.views.meaning_data import FROM_SET, PARTS, _sentences
from ui.views.task_models import examples

IMAGE = "![x](https://example.org/a.png)"


@pytest.mark.parametrize("word", ["he", "I"])
def test_a_word_inside_longer_ones_is_found_as_a_whole_word(word):
    held, _ = _sentences(None, word, state.start_engine().loaded("twin-bert").tokenizer)
    assert 3 <= len(held) <= FROM_SET
    assert all(word.lower() in text.lower().replace(".", "").split() for text in held)


@pytest.mark.parametrize(("text", "link", "word"), [
    ("We sat on the Bank of the river.", {}, "bank"), ("We sat on a banker's chair.", {}, "Python"), ("", {}, "Python"),
    ("We sat on the bank.", {"word": "bark"}, "bark"), ("We slept.", {"pair": "A bat flew by."}, "bat"),
])
def test_the_word_that_the_visitors_sentences_have_is_the_one_shown_first(text, link, word):
    assert visit("meaning", text=text, **link).selectbox(key="word").value == word


def test_a_word_stays_chosen_while_the_sentence_changes():
    at = visit("meaning", text="We sat on the bank.")
    at.selectbox(key="word").set_value("bark").run()
    at.text_input(key="text").set_value("A bat flew by.").run()
    assert at.selectbox(key="word").value == "bark"
    assert "joins the picture" in said(at)


def test_a_word_of_a_link_is_in_no_label():
    at = visit("meaning", view="Neighbours", word="your own word", own=IMAGE, text=f"One {IMAGE} here.",
               lines=f"Another {IMAGE} there.")
    assert not at.exception
    assert at.toggle(key="other_words").label == "Leave out the word itself"


def test_the_words_of_the_lesson_part_their_senses_as_it_says():
    """Mean cosines of the last layer, twin-bert: “Python”, “bank” and “spring” in lesson 10."""
    engine, found = LocalEngine(), {}
    try:
        for entry in examples("meaning")["words"]:
            texts, senses = zip(*entry["sentences"], strict=True)
            traces = engine.run_many([TraceRequest(text, parts=PARTS) for text in texts])
            lines = layer_lines(cosines_by_layer(first_occurrences(traces, entry["word"])), senses)
            values = {line.name: line.values[-1] for line in lines}
            found[entry["word"]] = (values["same sense"], values["different senses"])
    finally:
        engine.close()
    assert next(iter(found)) == "Python"
    python, bank, spring = ([f"{value:.2f}" for value in found[word]] for word in ("Python", "bank", "spring"))
    notice = next(lesson for lesson in lessons() if lesson.key == "meaning").steps[1].notice
    assert "{} and {} in the last layer, against {} and {} for “Python”".format(*bank, *python) in notice
    assert "“spring” hardly do: {} and {}.".format(*spring) in notice
    assert all(same > different for same, different in found.values())


MONEY, RIVER = "The bank raised the interest rate.", "He sat on the bank of the river."
TWICE = "The bank lent us money, so we moored our boat at the bank of the river."


def to_senses(text: str, at: int) -> dict[str, str]:
    """Mean cosines, last layer, of the `at`-th “bank” of a text to each sense, as the page writes them."""
    entry = next(one for one in examples("meaning")["words"] if one["word"] == "bank")
    traces = state.start_engine().run_many([TraceRequest(one, model="twin-bert", parts=PARTS)
                                            for one in (*(sentence for sentence, _ in entry["sentences"]), text)])
    known, mine = first_occurrences(traces[:-1], "bank"), every_occurrence(traces[-1:], "bank", 9)[at]
    cosines = [float(cosine_to(one.states[-1], mine.states[-1])) for one in known]
    return {sense: f"{np.mean([c for c, (_, of) in zip(cosines, entry['sentences']) if of == sense]):.2f}"
            for sense in entry["senses"]}


@pytest.mark.parametrize(("asked", "places"), [
    ({"text": MONEY, "pair": RIVER}, [(MONEY, 0), (RIVER, 0)]),
    ({"text": MONEY, "lines": RIVER}, [(MONEY, 0), (RIVER, 0)]),
    ({"text": TWICE}, [(TWICE, 0), (TWICE, 1)]),
])
def test_each_place_of_the_visitor_s_has_a_verdict_of_its_own(asked, places):
    words = html.unescape(said(visit("meaning", word="bank", **asked)))
    for n, (near, far, (text, at)) in enumerate(zip(("money", "river"), ("river", "money"), places), 1):
        cosines = to_senses(text, at)
        verdict = f"your “bank” (yours {n}) is nearest to “{near}”: cosine {cosines[near]}, {cosines[far]} to “{far}”."
        assert f"In the last layer {verdict}" in words
        place = [found.start() for found in re.finditer("bank", text)][at]
        assert f">bank</mark>{text[place + 4:]}" in words


def test_of_many_places_it_is_said_which_have_lines_and_which_are_taken():
    words = said(visit("meaning", word="bank", text="The bank, the bank, the bank and the bank."))
    assert "Your sentences have “bank” in 4 places; the first 3 have lines of their own." in words
    assert "are taken" not in words
    words = said(visit("meaning", word="bank", text="bank " * 13))
    assert "Your sentences have “bank” 13 times; the first 12 are taken." in words


@pytest.mark.parametrize(("text", "lines"), [
    ("The unbelievably playful kittens meowed.", "An unbelievably loud noise\nUnbelievably, it rained."),
    ("Unbelievably, it was unbelievably loud.", ""),
])
def test_a_word_of_the_visitor_s_sentences_only_is_compared_among_them(text, lines):
    at = visit("meaning", word="your own word", own="unbelievably", text=text, lines=lines)
    assert re.search(r"mean cosine: the word in two places 0\.\d\d\.", said(at))
    assert "<mark" not in said(at)


def test_two_places_in_one_sentence_are_told_apart_on_the_map_and_among_the_neighbours():
    first, second = TWICE.split("bank", 2)[1:]
    words = said(visit("meaning", view="Map", word="bank", text=TWICE))
    assert f"</mark>{first}bank{second}" in words
    assert f"bank</mark>{second}</li>" in words
    options = visit("meaning", view="Neighbours", word="bank", text=TWICE).selectbox(key="from").options
    encoding = state.start_engine().loaded("twin-bert").tokenizer.encode(TWICE)
    places = [n for n, token in enumerate(encoding.tokens) if token == "bank"]
    assert options[:2] == [f"{n}. {TWICE[:90]} (“bank” at position {place})" for n, place in enumerate(places, 1)]
    assert not any("at position" in option for option in options[2:])


def test_on_the_map_a_long_text_stands_by_what_is_around_each_word():
    text = "It rained all day. " * 30 + "The bank was closed. " + "It rained all night. " * 30 + "We sat on the bank."
    at = visit("meaning", view="Map", word="bank", text=text)
    assert text not in said(at)
    assert "closed" in said(at)
    rows = [row[0] for row in table_rows(at, "Where each occurrence lies") if row[1] == YOURS]
    assert len(rows) == 2
    assert all(len(row) < 300 for row in rows)


@pytest.mark.parametrize(("text", "more"), [("\u200b", "\u200b"), ("", "[SEP]\n[PAD]")])
def test_sentences_without_a_token_are_said(text, more):
    at = visit("meaning", view="Sentences", text=text, compare_lines=more)
    assert "These sentences have special tokens only" in said(at)


@pytest.mark.parametrize("model", ["twin-bert", "twin-gpt", "twin-rtl"])
def test_where_cls_tells_nothing_it_is_said(model):
    at = visit("meaning", view="Sentences", model=model)
    assert len(at.get("plotly_chart")) == 3
    assert ("its [CLS] sees nothing but itself" in said(at)) == (model != "twin-bert")


def test_a_model_without_cls_has_no_matrix_of_it(family, monkeypatch):
    monkeypatch.setenv("BOTH_WAYS_MODEL", family("GPT-2"))
    at = visit("meaning", view="Sentences")
    assert len(at.get("plotly_chart")) == 2
    assert "puts no [CLS] before a sentence" in said(at)


def test_two_sentences_are_counted_and_cut_each_by_itself():
    long = "the dog ran home and " * 60
    at = visit("meaning", text=long, pair=long + "slept")
    assert "Cut at" not in said(at)
    assert " · 302 + 303 tokens · " in is_ready(at)["status"]


def test_a_shipped_sentence_of_ones_own_has_the_word():
    entry = examples("meaning")["words"][0]
    typed = visit("meaning", text=entry["sentences"][0][0], word=entry["word"])
    assert "Your sentence has no" not in said(typed)
    assert "Your sentence has no" in said(visit("meaning", text="Nothing here.", word=entry["word"]))


def test_no_sentence_has_no_cosine():
    with pytest.raises(ValueError, match="need a sentence"):
        similarity_matrix([], "cls")
