"""Lines to the visitor: what in them stays together."""

import pytest

from ui import notices


@pytest.mark.parametrize(("text", "kept"), [
    ("“dog” gets 4.2 % of all.", "“dog” gets 4.2\u00a0% of all."),
    ("“עולם”, 4 pieces", "\u2068“עולם”\u2069, 4 pieces"),
    ("“a” and “ذهب b” differ", "“a” and \u2068“ذهب b”\u2069 differ"),
    ("ذهب “a” 4", "ذهب “a” 4"),  # only a quotation stands among the explorer's own words
])
def test_numbers_stay_beside_their_unit_and_quotations_in_their_place(text, kept):
    assert notices.unbroken(text) == kept
