"""Each step of a lesson, opened by its own button, stands on the view that its words speak of."""

from __future__ import annotations

import pytest

from tests.payloads import drawn, is_ready, visit
from ui.views.class_lessons import Lesson, lessons

#: View by lesson and step; None on a page that has no views.
VIEWS = {
    "tokens": ("Step by step", "Ids and segments"),
    "embeddings": ("The sum", "Switch off and shuffle"),
    "gap": ("Fill the gap", "Fill the gap", "Layer by layer", "The head"),
    "masking": ("80/10/10", "Paper tables"),
    "attention": ("All heads", "All heads", "Step by step", "Step by step", "Through the layers"),
    "proof": ("Act", "Attribution", "Swap vectors", "Neurons"),
    "both-ways": ("Side by side", "Side by side", "Reveal"),
    "cls": ("Answer",),
    "nsp": ("Next sentence",),
    "meaning": ("By layer", "By layer"),
    "learning": ("Curves", "Curves"),
    "tasks": (None, "Entities", "Answers"),
    "size": ("Anatomy", "Cost", "Wrong claims"),
    "text": ("Other sentence", "Fill the gap", "Swap vectors", "Side by side"),
}
STEPS = [pytest.param(number, lesson, n, id=f"{lesson.key}-{n}")
         for number, lesson in enumerate(lessons(), 1) for n in range(1, len(lesson.steps) + 1)]


def test_every_step_is_in_the_list():
    assert {key: len(views) for key, views in VIEWS.items()} == {one.key: len(one.steps) for one in lessons()}


@pytest.mark.parametrize(("number", "lesson", "n"), STEPS)
def test_a_step_opens_the_view_that_it_speaks_of(number: int, lesson: Lesson, n: int):
    at = visit("class", lesson=f"{number}. {lesson.title}", model="twin-gpt")
    at.button(key=f"_step_{lesson.key}_{n}").click().run()
    is_ready(at)
    step, state = lesson.steps[n - 1], at.session_state
    assert state["_page"] == step.page
    assert state["model"] == "twin-bert"  # of which the lessons' numbers are
    switches = [control.value for control in at.get("button_group") if control.key == "view"]
    assert switches == [view for view in [VIEWS[lesson.key][n - 1]] if view]
    for key, value in step.link:
        assert state[key] == value
    for key, value in step.at:
        assert at.query_params[key] == value


@pytest.mark.parametrize(("key", "name"), [("meaning", "word"), ("learning", "experiment")])
def test_the_address_holds_what_a_step_has_set_on_a_page_not_seen_before(key: str, name: str):
    number, lesson = next((number, one) for number, one in enumerate(lessons(), 1) if one.key == key)
    at = visit("class", lesson=f"{number}. {lesson.title}")
    at.button(key=f"_step_{key}_2").click().run()
    is_ready(at)
    assert at.query_params[name] == dict(lesson.steps[1].link)[name]


def test_the_step_to_the_neurons_opens_with_the_token_and_the_layer_that_it_counts_in():
    lesson = next(one for one in lessons() if one.key == "attention")
    at = visit("class", lesson=f"5. {lesson.title}")
    at.button(key="_step_attention_4").click().run()
    shown = drawn(at, "attention_steps")
    token, open_ones = shown["tokens"][shown["query"]], int((shown["arrays"]["intermediate"] > 0).sum())
    assert f"here, for “{token}” in layer {shown['layer'] + 1}, {open_ones} do" in lesson.steps[3].notice
