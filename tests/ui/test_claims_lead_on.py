"""The Family page's wrong claims lead to the pages that show it, in the same session."""

from __future__ import annotations

import pytest

from bert_core.facts import read_facts
from tests.payloads import said, visit


def test_try_it_opens_the_page_with_the_visitors_sentence():
    at = visit("family", view="Wrong claims", text="Paris is big.")
    assert "target=\"_self\"" not in said(at)
    for claim in read_facts("claims")["claim"]:
        assert bool(claim["page"]) == any(button.key == f"_try_{claim['key']}" for button in at.button)
    leads = next(claim for claim in read_facts("claims")["claim"] if claim["page"] == "tokens")
    at.button(key=f"_try_{leads['key']}").click().run()
    said(at)
    assert at.session_state["_page"] == "tokens"
    assert at.text_input(key="text").value == "Paris is big."


@pytest.mark.parametrize("claim", [claim for claim in read_facts("claims")["claim"] if claim["page"] == "family"],
                         ids=lambda claim: claim["key"])
def test_what_this_page_itself_answers_opens_its_view(claim):
    at = visit("family", view="Wrong claims", text="Paris is big.")
    button = at.button(key=f"_try_{claim['key']}")
    button.click().run()
    said(at)
    assert f"Try it: {at.segmented_control(key='view').value}" == button.label


def test_a_term_is_explained_once_for_all_claims():
    words = said(visit("family", view="Wrong claims", text="Paris is big."))
    claims = words[words.index("Said wrongly elsewhere"):words.index("</section>", words.rindex("bw-claim"))]
    terms = [part.split("<")[0].casefold() for part in claims.split('<dfn class="bw-term" tabindex="0">')[1:]]
    assert terms
    assert len(set(terms)) == len(terms)
