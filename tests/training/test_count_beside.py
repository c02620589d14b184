"""Words in one sentence of a corpus, counted; and the counts that a lesson names."""

from __future__ import annotations

import pytest

from bert_core.training.corpus import documents, sources
from tests.training.scripts import load
from tests.training.test_cards_hold import DATA
from ui.lessons import lessons

CORPUS = DATA / "pretrain"


def test_sentences_that_have_both_words_are_counted_once():
    found = load("count_beside").count(
        ["The Doctor took his hat and his coat. Her doctors came.\nShe has a doctorate.", "He took his coat."],
        ("doctor",), ("his", "her"))
    assert found == {("doctor", ""): 2, ("doctor", "his"): 1, ("doctor", "her"): 1}


@pytest.mark.full
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not here; DATA names the folder")
def test_the_lesson_s_counts_are_the_corpus_s():
    lesson = next(one for one in lessons() if one.key == "text")
    texts = (text for file in sources(CORPUS).values() for text in documents(file))
    found = load("count_beside").count(texts, ("doctor", "waitress"), ("his", "her"))
    assert (f"{found['doctor', 'his']:,} sentences with a doctor have “his”, {found['doctor', 'her']} have “her”"
            in lesson.reveal)
    assert (f"{found['waitress', '']} sentences with a waitress in the corpus, {found['waitress', 'his']} have “his” "
            f"and {found['waitress', 'her']} “her”" in lesson.steps[1].notice)
