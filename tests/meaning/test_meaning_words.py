"""A word of one's own on the Meaning page: found as a whole word, and never read as Markdown."""

import pytest

from tests.payloads import visit
from ui import state
from ui.views.meaning_data import FROM_SET, _sentences

IMAGE = "![x](https://example.org/a.png)"


@pytest.mark.parametrize("word", ["he", "I"])
def test_a_word_inside_longer_ones_is_found_as_a_whole_word(word):
    held, _ = _sentences(None, word, state.start_engine().loaded("twin-bert").tokenizer)
    assert 3 <= len(held) <= FROM_SET
    assert all(word.lower() in text.lower().replace(".", "").split() for text in held)


def test_a_word_of_a_link_is_in_no_label():
    at = visit("meaning", view="Neighbours", word="your own word", own=IMAGE, text=f"One {IMAGE} here.",
               lines=f"Another {IMAGE} there.")
    assert not at.exception
    assert at.toggle(key="other_words").label == "Leave out the word itself"
