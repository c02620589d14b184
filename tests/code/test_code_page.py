"""The losses on the Code page, term by term, run without a browser."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from tests.payloads import is_ready, said, visit

FIRST, SECOND = "She poured the tea into her cup.", "Then she drank it slowly."
NO_PAIR, NO_HEAD = "There is no second sentence above", "This checkpoint has no next-sentence head"


def losses_shown(**parameters: str) -> tuple[dict[str, tuple[float, float, float]], str]:
    """term -> (ours, theirs, difference), and all that the page says."""
    at = visit("code", stage="Losses", text=FIRST, **parameters)
    is_ready(at)
    words = html.unescape(said(at))
    terms = words.partition("The loss, term by term</caption>")[2].partition("</table>")[0]
    rows = re.findall(r"<tr>(.*?)</tr>", terms)
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in rows[1:]]
    assert not re.search(r"\d-|\s-\d", "".join(map("".join, cells)))
    return {name: tuple(float(number.replace("−", "-")) for number in numbers) for name, *numbers in cells}, words


def test_a_pair_has_both_terms_and_their_sum():
    found, words = losses_shown(pair=SECOND)
    assert list(found) == ["masked-LM", "next-sentence", "sum"]
    for ours, theirs, difference in found.values():
        assert ours == pytest.approx(theirs, abs=1e-5)
        assert difference < 1e-5
    assert found["sum"][0] == pytest.approx(found["masked-LM"][0] + found["next-sentence"][0], abs=2e-6)
    assert found["next-sentence"][0] > 0
    assert NO_PAIR not in words
    assert NO_HEAD not in words


def test_a_missing_term_is_said_plainly():
    found, words = losses_shown(model="twin-bert")
    assert list(found) == ["masked-LM"]
    assert words.count(NO_PAIR) == 2  # below the stages, and below the terms


def test_a_missing_head_is_said_plainly(checkpoint, monkeypatch):
    folder = checkpoint("BertForMaskedLM")
    monkeypatch.setenv("BOTH_WAYS_FOLDERS", str(Path(folder).parent))
    found, words = losses_shown(model=folder, pair=SECOND)
    assert list(found) == ["masked-LM"]
    assert words.count(NO_HEAD) == 2


def test_a_model_of_a_folder_has_its_script(checkpoint, monkeypatch):
    folder = checkpoint("BertForMaskedLM")
    monkeypatch.setenv("BOTH_WAYS_FOLDERS", str(Path(folder).parent))
    at = visit("code", view="Script", text=FIRST, model=folder)
    is_ready(at)
    assert repr(folder) in at.code[0].value


@pytest.mark.parametrize(("model", "named", "not_named"), [
    ("twin-gpt", "Language-model head", "Masked-LM head"), ("twin-bert", "Masked-LM head", "Language-model head")])
def test_the_head_over_the_vocabulary_is_called_what_it_was_trained_as(model, named, not_named):
    at = visit("code", text=FIRST, model=model, stage=named)
    is_ready(at)
    assert at.selectbox(key="stage").value == named
    assert f">{named}<" in said(at)
    assert not_named not in said(at)


def test_no_number_of_the_walk_has_a_hyphen_for_a_minus():
    words = html.unescape(said(visit("code", view="Walk", text=FIRST, line="4")))
    step, = re.findall(r"First numbers [^<]*", words)
    assert re.search(r"all between −\d+\.\d{4} and", step)
    assert not re.search(r"-\d", step)


def test_a_causal_model_has_the_loss_of_the_next_token():
    found, words = losses_shown(model="twin-gpt", pair=SECOND)
    (ours, theirs, difference), = found.values()
    assert list(found) == ["next token"]
    assert ours == pytest.approx(theirs, abs=1e-5)
    assert difference < 1e-5
    assert 2 < ours < 12  # nats; a model that may see the token itself would be far below
    assert NO_HEAD not in words
    assert NO_PAIR not in words


def test_the_strip_of_parts_and_the_line_go_together():
    at = visit("code", view="Walk", text="The dog [MASK].", line="17")
    strip = at.get("button_group")
    assert not at.exception
    assert at.session_state["_part"] == "3 Add and norm"
    assert any("layer 1 of 6" in group.label for group in strip)
    at.session_state["line"] = 18
    assert at.run().session_state["_part"] == "4 Feed-forward"
