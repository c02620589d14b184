"""The three pages in Streamlit's test runner: answers with a head, one plain line without, links restored."""

import json
import shutil

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from bert_core import load
from bert_core.serving.engine import engine_of
from tests.payloads import PATIENCE, said, visit


@pytest.fixture
def open_page(monkeypatch, tmp_path):
    """open_page(page, model, **address) on a machine where no model is shipped."""
    monkeypatch.setattr(load, "SHIPPED", tmp_path)

    def run(page: str, model: str, **address: str) -> AppTest:
        monkeypatch.setenv("BOTH_WAYS_MODEL", model)
        st.cache_resource.clear()
        engine_of.cache_clear()
        return visit(page, **address)

    yield run
    st.cache_resource.clear()
    engine_of.cache_clear()


def list_tasks():
    import streamlit as st

    from ui import state
    from ui.views import task_models

    st.session_state["_own_models"] = {"mine:topic": ("classify",), "/gone": ("ner",)}
    st.write({name: task_models.tasks_of(name) for name in state.model_names()})


def test_listing_the_models_loads_none(monkeypatch):
    def load_nothing():
        raise AssertionError("a model was loaded to be listed")

    monkeypatch.setattr("ui.state.engine", load_nothing)
    monkeypatch.delenv("BOTH_WAYS_MODEL", raising=False)
    st.cache_resource.clear()
    at = AppTest.from_function(list_tasks, default_timeout=PATIENCE).run()
    assert not at.exception
    listed = json.loads(at.json[0].value)
    assert listed == {name: list(load.describe_folder(load.SHIPPED / name).tasks) for name in load.shipped_names()} | {
        "mine:topic": ["classify"], "/gone": ["ner"]}


@pytest.mark.parametrize(("page", "view", "missing"), [
    ("cls", "Answer", "twin-bert-sst2 is not here"), ("cls", "Layers", "twin-bert-sst2 is not here"),
    ("tasks", "Entities", "twin-bert-ner is not here"), ("tasks", "Answers", "twin-bert-squad is not here"),
    ("tasks", "Acceptability", "twin-bert-cola is not here"),
])
def test_a_missing_model_is_said_and_nothing_is_drawn(open_page, tiny_bert, page, view, missing):
    app = open_page(page, tiny_bert, view=view, text="the dog barked", pair="we walked home")
    words = said(app)
    assert missing in words
    assert "has no trained" in words
    assert "%" not in words.split("has no trained")[1]


def test_next_sentence_of_a_model_without_the_head(open_page, tiny_classifier):
    assert "has no trained next-sentence head" in said(open_page("cls", tiny_classifier, view="Next sentence"))


@pytest.mark.parametrize("view", ["Answer", "Layers", "Change a word", "The head"])
def test_a_classifier_of_any_folder_answers(open_page, tiny_classifier, view):
    words = said(open_page("cls", tiny_classifier, view=view, text="the film was not good"))
    assert "is not here" not in words


@pytest.mark.parametrize("text", ["", "x", "<script>alert(1)</script> [CLS]", "\u202eabc 雪 🙂", "dog " * 60])
@pytest.mark.parametrize(("page", "view"), [("cls", "Answer"), ("meaning", "By layer"), ("meaning", "Sentences")])
def test_any_text_is_answered(open_page, tiny_classifier, page, view, text):
    words = said(open_page(page, tiny_classifier, view=view, text=text))
    assert "<script>" not in words


@pytest.mark.parametrize("text", ["", "x", "<b>dog</b>", "dog " * 60])
def test_any_text_can_be_searched_for_names_and_answers(open_page, tiny_ner, tiny_qa, text):
    names = said(open_page("tasks", tiny_ner, view="Entities", text=text))
    assert ("finds" if text else "no word to label") in names
    answers = said(open_page("tasks", tiny_qa, view="Answers", text=text, pair=text))
    assert ("answers “" if text else "Ask in") in answers
    assert "<b>dog</b>" not in names + answers


def test_a_bad_view_in_a_link_is_dropped_and_said(open_page, tiny_classifier):
    app = open_page("cls", tiny_classifier, view="<b>no</b>", text="the film was good")
    assert not app.exception
    assert app.session_state["view"] == "Answer"


def test_a_word_in_one_sentence_only_is_said(open_page, tiny_bert):
    app = open_page("meaning", tiny_bert, word="your own word", own="zebra", text="the dog barked")
    assert "“zebra” stands in 0 sentence" in said(app)


def test_the_model_trained_for_the_task_answers_and_opens_into_its_attention(open_page, tiny_bert, tiny_ner, tmp_path):
    shutil.copytree(tiny_ner, tmp_path / "twin-bert-ner")
    app = open_page("tasks", tiny_bert, view="Entities", text="we walked home")
    assert "twin-bert-ner finds" in said(app)
    app.button(key="to_attention").click().run()
    assert not app.exception
    assert (app.session_state["_page"], app.session_state["model"]) == ("attention", "twin-bert-ner")
    assert app.session_state["text"] == "we walked home"


def test_swap_and_random_change_the_inputs_themselves(open_page, tiny_bert):
    app = open_page("cls", tiny_bert, view="Next sentence", text="the dog barked", pair="we walked home")
    app.button(key="nsp_swap").click().run()
    assert (app.session_state["text"], app.session_state["pair"]) == ("we walked home", "the dog barked")
    app.button(key="nsp_random").click().run()
    assert app.session_state["text"] == "we walked home"
    assert app.session_state["pair"] != "the dog barked"
    assert not app.exception


def test_a_page_says_beside_its_views_that_another_model_than_the_chosen_one_answers():
    words = said(visit("tasks", model="twin-gpt", text="Anna lives in Berlin."))
    assert ">twin-bert-ner</strong> answers here; twin-gpt has no such head." in words
    assert "answers here" not in said(visit("tasks", model="twin-bert-ner", text="Anna lives in Berlin."))
