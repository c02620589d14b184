"""Options that a visitor or a model named are shown as they are: no Markdown, no icon, and linked so."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from ui.controls import MARKUP

MARKED = (":material/home: **mid**", "[x](https://evil.test)", ":red[late]", "_low_", "a `b`", "1. first", "# one", "-",
          "$a$ and $b$", "R&amp;D", ":smile:", "a -> b", "~old~", "![x](y)", "> all", "  early", r"a\*b", "*", "#",
          "<https://evil.test>", "--", "+")
PLAIN = ("[CLS]", "80/10/10", "[MASK]", "2 layers × 128", "LABEL_0", "ELMo's", "is_next", "don’t", "R&D", "C++", "C#",
         "$ 5", "10:30", "3,000 steps", "B-PER", "(a) b", ".", "!", "##ing", "<mask>", "a: b, c: d", "1.5", "-1", "+1")


@pytest.mark.parametrize("option", MARKED)
def test_what_a_button_would_change_is_known(option):
    assert MARKUP.search(option)


@pytest.mark.parametrize("option", PLAIN)
def test_words_that_a_button_shows_as_they_are_stay_buttons(option):
    assert not MARKUP.search(option)


def choose(names: tuple[str, ...], several: bool) -> None:
    """A page with one choice."""
    import streamlit as st

    from ui import controls

    st.text(repr(controls.many("Classes", names, "class") if several else controls.choice("Class", names, "class")))


def page(names: tuple[str, ...], several: bool = False, **address: str) -> AppTest:
    at = AppTest.from_function(choose, kwargs={"names": names, "several": several})
    for key, value in address.items():
        at.query_params[key] = value
    return at.run()


def test_a_name_with_marks_is_chosen_from_a_list_and_linked_as_it_is():
    names = ("low", MARKED[0], MARKED[1])
    at = page(names)
    assert not at.button_group
    assert at.selectbox(key="class").options == list(names)
    at.selectbox(key="class").set_value(MARKED[0]).run()
    assert at.text[0].value == repr(MARKED[0])
    assert page(names, **{"class": MARKED[1]}).text[0].value == repr(MARKED[1])


def test_any_number_of_them_too():
    names = ("low", MARKED[0])
    at = page(names, several=True, **{"class": MARKED[0]})
    assert not at.button_group
    assert at.multiselect(key="class").options == list(names)
    assert at.text[0].value == repr([MARKED[0]])


def test_plain_names_stand_side_by_side():
    assert page(("low", "LABEL_0")).button_group(key="class").options
    assert page(("low", "LABEL_0"), several=True).button_group(key="class").options
