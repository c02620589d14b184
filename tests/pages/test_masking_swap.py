"""Masking, vectors swapped: the table and its words against the measure."""

from __future__ import annotations

import html
import re

import pytest

from bert_core import TraceRequest, load_engine
from bert_core.figures.meaning import short_number
from bert_core.measures.swap import swap_vectors
from tests.payloads import is_ready, plain_line, said, visit
from ui.views.masking_swap import OTHER, TO_TRY

DOGS, DOG = TO_TRY[0]


def rows(at) -> list[list[str]]:
    """The table's rows, each a list of its cells' words."""
    (drawn,) = [one.proto.body for one in at.get("html") if 'class="bw-table bw-swap"' in one.proto.body]
    found = re.findall(r"<tr>(.*?)</tr>", re.sub("</?bdi>", "", drawn).split("<tbody>")[1])
    return [[html.unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)] for row in found]


def test_the_table_is_the_measure():
    at = visit("masking", view="Swap vectors", text=DOGS, swapped=DOG)
    is_ready(at)
    found = load_engine("twin-bert").call(swap_vectors, TraceRequest(DOGS), TraceRequest(DOG), 6)
    names = ["[CLS]", "the", "dogs → dog", "in", "the", "park", "[MASK]", "barking", ".", "[SEP]"]
    assert rows(at) == [[name, *("0" if abs(share) < 0.005 else short_number(share) for share in column)]
                        for name, column in zip(names, found.shares.T, strict=True)]
    assert "Yours: “are” 82 %, “is” &lt;0.1 %. The other: “is” 92 %, “are” &lt;0.1 %." in said(at)
    assert ("At the input the vector of “dogs → dog” moves the answer most, from layer 5 on the gap&#x27;s own."
            in said(at))


def test_a_hidden_word_is_hidden_in_both():
    at = visit("masking", view="Swap vectors", text="The dogs in the park were barking.",
               swapped="The dog in the park was barking.", mask="6")
    assert [row[0] for row in rows(at)][6] == "[MASK]"
    assert [row[0] for row in rows(at)][2] == "dogs → dog"


@pytest.mark.parametrize(("text", "swapped", "says"), [
    (DOGS, OTHER, "The two have 10 and 14 tokens"), (DOGS, DOGS, "Type the sentence again with a word changed"),
    (DOGS, " ", "Type the sentence again with a word changed"),
    (DOGS, "The dog in the [MASK] is barking.", "has no gap at position 6, where yours has one"),
    ("The dogs in the park bark.", DOG, "Click a token to hide it")])
def test_what_is_missing_is_said(text, swapped, says):
    at = visit("masking", view="Swap vectors", text=text, swapped=swapped)
    is_ready(at)
    assert says in said(at) + str([one.proto for one in at.get("bidi_component")])
    assert "bw-swap-gap" not in said(at).split("</style>")[-1]


def test_two_sentences_with_one_answer_have_nothing_to_swap():
    at = visit("masking", view="Swap vectors", text="Two dogs are [MASK] through the snow.",
               swapped="Two dogs are [MASK] through the mud.")
    assert "both sentences get the same answer, “running”" in plain_line(at)


def test_an_example_puts_both_sentences_in():
    at = visit("masking", view="Swap vectors", text="No gap here.")
    next(button for button in at.button if button.label == DOGS).click().run()
    assert rows(at)[2][0] == "dogs → dog"
    assert (at.session_state["text"], at.session_state["swapped"]) == (DOGS, DOG)
