"""Lessons, glossary and tour as data: complete, linked to what exists, safe to show."""

from __future__ import annotations

import html
import re
import tomllib
from pathlib import Path

import pytest

from tests.payloads import said, visit
from ui import glossary, presenter, shell, tour
from ui.views.class_lessons import checklist, lessons

ROOT = Path(__file__).resolve().parents[2]
PAGES = {name for pages in shell.PAGES.values() for name, _ in pages}
LESSONS = lessons()


def test_about_twelve_lessons_of_five_to_fifteen_minutes():
    assert 12 <= len(LESSONS) <= 14
    assert {lesson.minutes for lesson in LESSONS} <= {5, 10, 15}
    assert len({lesson.key for lesson in LESSONS}) == len(LESSONS)


@pytest.mark.parametrize("lesson", LESSONS, ids=[lesson.key for lesson in LESSONS])
def test_each_lesson_asks_does_and_checks(lesson):
    assert lesson.question.strip().endswith(("?", "…"))
    assert len(lesson.options) == 3
    assert lesson.answer in range(3)
    assert lesson.reveal
    assert lesson.steps
    assert lesson.checks
    for step in lesson.steps:
        assert step.page in PAGES
        assert step.notice
        assert dict(step.view.widgets).get("pair") is not None
        assert set(dict(step.link)) <= {"text", "pair", "view", "experiment", "word", "swapped", "other", "elsewhere",
                                        "also", "follow", "behind"}
        assert set(dict(step.at)) <= {"layer", "head", "step"}


def test_answers_do_not_always_stand_at_the_same_place():
    places = [lesson.answer for lesson in LESSONS]
    assert min(places.count(place) for place in range(3)) > 1
    assert max(places.count(place) for place in range(3)) <= len(places) // 2


def test_checklist_covers_the_course_and_every_item_is_taught():
    keys = {key for key, _ in checklist()}
    assert keys >= {"masking", "nsp", "embeddings", "cls", "finetune", "gpt"}
    assert {key for lesson in LESSONS for key in lesson.checklist} == keys


@pytest.mark.parametrize(("item", "words"), [("masking", "15 %"), ("finetune", "for answers")])
def test_a_lesson_names_what_it_has_said(item, words):
    """The shares of masking are none of the first gap's, and entities and answers none of [CLS]'."""
    for lesson in LESSONS:
        spoken = " ".join([lesson.reveal, *(step.notice for step in lesson.steps), *sum(lesson.checks, ())])
        assert item not in lesson.checklist or words in spoken, lesson.key


def test_tour_goes_to_pages_that_exist():
    assert 4 <= len(tour.stops()) <= 6
    assert {stop["page"] for stop in tour.stops()} <= PAGES


def test_glossary_marks_the_first_of_each_term_only():
    text = "<p>Attention and attention; <code>softmax</code> and softmax, heads.</p>"
    marked = glossary.mark(text)
    assert marked.count("<dfn") == 3
    assert "<code>softmax</code>" in marked
    plain = re.sub(r'<span class="bw-tip".*?</span>', "", marked)
    assert re.sub(r"</?dfn[^>]*>", "", plain) == text


def test_glossary_leaves_tags_headings_and_other_words_alone():
    for text in ('<a href="logits">x</a>', "<h1>Attention</h1>", "<summary>NSP</summary>", "inattention", "a &lt; b"):
        assert glossary.mark(text) == text


def test_special_tokens_are_terms_too():
    assert glossary.mark("[CLS] stands in front").startswith('<dfn class="bw-term" tabindex="0">[CLS]<span')


def test_every_term_has_a_short_meaning_and_no_spelling_twice():
    spellings = [spelling.casefold() for term in glossary.terms() for spelling in term.spellings]
    assert len(set(spellings)) == len(spellings) >= 30
    for term in glossary.terms():
        assert 15 < len(term.means) < 180
        assert html.escape(term.means, quote=False) == term.means


def test_page_prose_is_marked_and_still_has_its_words():
    words = shell.prose("code").below
    assert 'class="bw-term"' in words
    assert "transformers" not in re.findall(r"<dfn[^>]*>([^<]*)", words)


def test_presenter_can_hide_what_it_names():
    assert set(presenter.PARTS) == {"inputs", "model", "pages", "controls", "reading"}
    assert not any("{" in selector or ";" in selector for selector in presenter.PARTS.values())


def test_citation_names_the_project_and_its_licence():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert "cff-version: 1.2.0" in text
    assert re.search(r'^title: "Both Ways', text, re.MULTILINE)
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert f"version: {version}" in text
    assert "license: MIT" in text
    assert (ROOT / "LICENSE").read_text(encoding="utf-8").startswith("MIT")


def test_on_paper_nothing_is_given_away_before_the_answers():
    words = said(visit("class", view="Print and cite"))
    asked, answers = words.split(">Answers</h3>")
    for lesson in LESSONS:
        notices = [shell.inline(step.notice).replace("\u00a0", " ") for step in lesson.steps]
        assert shell.inline(lesson.question).replace("\u00a0", " ") in asked
        assert not [notice for notice in notices if notice in asked]
        assert all(f":</strong> {notice}" in answers for notice in notices)
        assert all(f"Check yourself:</strong> {shell.inline(answer)}".replace("\u00a0", " ") in answers
                   for _, answer in lesson.checks)


def test_the_hour_in_the_teachers_guide_is_made_of_lessons_that_fit():
    text = (ROOT / "docs" / "teaching.md").read_text(encoding="utf-8")
    hour = text.split("## One hour of 45 minutes\n")[1].split("\n## ")[0]
    named = re.findall(r'Lesson (\d+), "([^"]+)"', hour)
    assert len(named) == 3
    assert all(LESSONS[int(number) - 1].title == title for number, title in named)
    minutes = [LESSONS[int(number) - 1].minutes for number, _ in named]
    assert "take {}, {} and {} minutes".format(*minutes) in hour
    assert sum(minutes) + 5 <= 45
