"""The Tasks page says, opens and reports the inputs that its model really read."""

import numpy as np
import pytest

from bert_core import TraceRequest, load_engine
from tests.payloads import drawn, is_ready, said, visit
from ui.state import DEFAULT_TEXT
from ui.views.task_models import may_say

FIRST, SECOND = "A man plays the guitar.", "Someone makes music."
LONG = "Anna Smith built the bridge. " + "It was raining all day. " * 120 + "The bridge opened in May 1881."


def opened(at, key: str) -> tuple[str, str]:
    """Sentence and second sentence of the Attention page that a button opens."""
    at.button(key=key).click().run()
    assert not at.exception
    assert at.session_state["_page"] == "attention"
    return at.session_state["text"], at.session_state["pair"]


def test_a_context_that_is_read_in_windows_is_not_called_cut():
    words = said(visit("tasks", view="Answers", text="When did the bridge open?", pair=LONG))
    assert "it was read in 2 windows" in words
    assert "Cut at" not in words


def test_a_classifier_of_single_sentences_is_not_asked_about_a_pair():
    at = visit("tasks", view="Sentence pairs", text=FIRST, pair=SECOND, model="twin-bert-sst2")
    assert "cosine" in str(drawn(at, "verdict"))
    assert "read both sentences as one input" not in said(at)


@pytest.mark.parametrize("view", ["Entities", "Acceptability", "Sentence pairs"])
def test_what_is_cut_is_still_said(view):
    assert "Cut at this model" in said(visit("tasks", view=view, text=LONG, pair=SECOND))


@pytest.mark.parametrize("view", ["Entities", "Acceptability"])
def test_a_second_sentence_that_was_not_read_neither_cuts_nor_is_opened(view):
    at = visit("tasks", view=view, text=FIRST, pair=LONG)
    assert "Cut at" not in said(at)
    assert opened(at, "to_attention") == (FIRST, "")


def test_sentences_that_were_read_apart_are_opened_apart():
    assert opened(visit("tasks", view="Sentence pairs", text=FIRST, pair=SECOND), "to_attention") == (FIRST, "")
    assert opened(visit("tasks", view="Sentence pairs", text=FIRST, pair=SECOND), "to_attention_1") == (SECOND, "")


def test_every_token_of_two_long_sentences_is_compared():
    first, second = "One dog ran, " * 14 + "and sat.", "The cat sat down. " * 20
    at = visit("tasks", view="Sentence pairs", text=first, pair=second)
    is_ready(at)
    tokens = [load_engine("twin-bert-stsb").loaded().tokenizer.encode(text).tokens[1:-1] for text in (first, second)]
    data = drawn(at, "maps")
    assert [data["rows"], data["columns"]] == [[f"“{t}” ({n})" for n, t in enumerate(one, 1)] for one in tokens]
    states = [load_engine("twin-bert-stsb").run(TraceRequest(text)).hidden_states[-1, 1:-1] for text in (first, second)]
    a, b = (one / np.linalg.norm(one, axis=1, keepdims=True) for one in states)
    assert data["arrays"]["cosine"] == pytest.approx(a @ b.T, abs=1e-5)


def test_the_window_that_is_shown_is_opened():
    at = visit("tasks", view="Answers", text="When did the bridge open?", pair=LONG)
    start, end = (int(word) for word in at.selectbox(key="window").value.split("characters ")[1].split(" to "))
    assert start > 0
    assert opened(at, "to_attention") == ("When did the bridge open?", LONG[start:end])


def test_the_window_follows_the_best_answer_until_one_is_chosen():
    at = visit("tasks", view="Answers", text="When did the bridge open?", pair=LONG)
    first, second = at.selectbox(key="window").options
    assert at.selectbox(key="window").value == second
    at.text_input(key="text").set_value("Who built the old bridge?").run()
    assert at.selectbox(key="window").value == first
    at.selectbox(key="window").set_value(second).run()
    at.text_input(key="text").set_value("Who built this old bridge?").run()
    assert at.selectbox(key="window").value == second


def test_a_judge_of_something_else_does_not_judge_acceptability():
    at = visit("tasks", view="Acceptability", text=FIRST, model="twin-bert-sst2")
    assert "twin-bert-cola says acceptable" in said(at)


@pytest.mark.parametrize(("labels", "may"), [
    (("unacceptable", "acceptable"), True), (("LABEL_0", "LABEL_1"), True), ((), True),
    (("negative", "positive"), False),
])
def test_labels_say_what_a_classifier_was_trained_for(labels, may):
    assert may_say(labels, "acceptable") == may


@pytest.mark.parametrize(("page", "view"), [("tasks", "Entities"), ("tasks", "Sentence pairs"),
                                            ("cls", "Next sentence"), ("cls", "Answer"), ("cls", "Layers"),
                                            ("cls", "Change a word"), ("cls", "The head")])
def test_an_example_is_not_reported_as_the_input(page, view):
    at = visit(page, view=view)
    assert "An example until you type your own" in said(at)
    assert is_ready(at)["text"] == DEFAULT_TEXT


def test_the_status_bar_counts_what_was_read():
    assert " · 12 tokens · " in is_ready(visit("cls"))["status"]  # of the example, not of the sentence above
    at = visit("tasks", view="Sentence pairs", text="A dog ran.", pair="A cat sat down.")
    assert " · 6 + 7 tokens · " in is_ready(at)["status"]


def test_the_words_on_pairs_are_those_of_the_picture():
    at = visit("tasks", view="Sentence pairs", text=FIRST, pair=SECOND)
    assert "Each sentence is read on its own. The bars" in said(at)
    assert all(bar["text"].startswith("cosine ") for side in drawn(at, "verdict")["sides"] for bar in side["bars"])


def test_a_pair_stands_beside_two_shipped_ones_and_the_first_example_is_one_of_them():
    def shown(**given) -> tuple[list[str], list[list[str]], str]:
        at = visit("tasks", view="Sentence pairs", **given)
        sides = drawn(at, "verdict")["sides"]
        return [side["title"] for side in sides], [[bar["label"] for bar in side["bars"]] for side in sides], said(at)

    own, static = "these two sentences", "these two, static vectors only"
    titles, bars, words = shown()
    assert titles == ["twin-bert-stsb, tuned to compare", "twin-bert"]
    assert bars == [[own, "a pair that is not alike", static]] * 2
    assert "Only twin-bert-stsb has them in the right order" in words
    assert "Your pair" not in words
    titles, bars, words = shown(text=FIRST, pair=SECOND, model="twin-bert-stsb")
    assert titles == ["twin-bert-stsb, tuned to compare", "twin-bert"]  # something untuned to see the tuning by
    assert bars == [[own, "a pair that is alike", "a pair that is not alike", static]] * 2
    assert "Your pair beside the two shipped ones: twin-bert-stsb gives it" in words
