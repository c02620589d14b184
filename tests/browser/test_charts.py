"""Every chart is one picture with a name for who can't see it, and keeps its words inside on the narrowest screen."""

from __future__ import annotations

import pytest

from tests.browser.waiting import becomes, holds
from tests.cases import quick_are

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

TEXT, PAIR = "The old dog chased my cat.", "A puppy ran after it."
#: Views whose charts need no training and no class.
VIEWS = [("cls", "Layers"), ("meaning", "By layer"), ("meaning", "Map"), ("family", "Side by side"), ("family", "Cost"),
         ("family", "Anatomy"), ("cls", "Change a word"), ("meaning", "Sentences"), ("compare", "Surprise"),
         ("compare", "Writing"), ("tasks", "Entities"), ("tasks", "Sentence pairs")]
#: Charts without a name, or without any chart; two of one name are one too many.
UNNAMED = """() => {
  const charts = [...document.querySelectorAll(".js-plotly-plot")];
  const names = charts.map((one) => one.getAttribute("role") === "img" && one.getAttribute("aria-label"));
  return charts.length && names.every(Boolean) && new Set(names).size === names.length ? [] : names.concat("a chart");
}"""
#: Legends and titles of axes that end outside of their chart.
OUTSIDE = """() => [...document.querySelectorAll(".js-plotly-plot")].flatMap((chart) => {
  const around = chart.getBoundingClientRect();
  return [...chart.querySelectorAll(".legendtext, .xtitle, .ytitle, .cbtitle text")].filter((one) => {
    const { left, right } = one.getBoundingClientRect();
    return left < around.left - 1 || right > around.right + 1;
  }).map((one) => one.textContent);
})"""


def test_a_chart_takes_on_the_theme_that_the_system_changes_to(visitor):
    page = visitor.open("cls", view="Layers", text=TEXT)
    shades = """() => JSON.stringify([...document.querySelectorAll(".js-plotly-plot")].map(
        (chart) => chart.data.map((trace) => [trace.colorscale, trace.line?.color])))"""
    light = page.evaluate(shades)
    page.emulate_media(color_scheme="dark")
    holds(page, lambda: page.evaluate(shades) != light)
    page.emulate_media(color_scheme="light")
    becomes(page, lambda: page.evaluate(shades), light)


@pytest.mark.parametrize(("name", "view"), quick_are(2, VIEWS))
def test_every_chart_has_a_name(visitor, name, view):
    page = visitor.open(name, view=view, text=TEXT, pair=PAIR)
    becomes(page, lambda: page.evaluate(UNNAMED), [])


def test_a_chart_that_changes_is_named_by_what_it_then_shows(visitor):
    page = visitor.open("cls", view="Layers", text=TEXT, layer=2)
    names = page.get_by_role("img", name="The heads of layer")
    becomes(page, lambda: names.get_attribute("aria-label"), "The heads of layer 2")
    run = visitor.run_number()
    page.get_by_role("slider").press("ArrowRight")
    visitor.after(run)
    becomes(page, lambda: names.get_attribute("aria-label"), "The heads of layer 3")


@pytest.mark.parametrize(("name", "view"), quick_are(1, VIEWS))
def test_legends_and_titles_stay_in_their_chart_on_the_narrowest_screen(new_visitor, name, view):
    page = new_visitor(width=320, height=640).open(name, view=view)
    page.locator(".js-plotly-plot .main-svg").first.wait_for()
    becomes(page, lambda: page.evaluate(OUTSIDE), [])
