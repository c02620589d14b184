"""Kept answers: what was on screen, side by side and as a file, and the way back to each."""

from __future__ import annotations

import csv
import io

import pytest

from bert_core import TraceRequest, load_engine
from bert_core.figures import kept
from bert_core.measures.predictions import Gap, Guess, read_gaps
from tests.payloads import drawn, said, visit
from ui.views import masking_kept

TEXT = "She poured the tea into her cup."


def press(at, key):
    return at.button(key=key).click().run()


def file_of(at):
    """The CSV's rows as the page offers it."""
    (answers,) = [at.session_state[masking_kept._KEPT]]
    return list(csv.reader(io.StringIO(kept.kept_csv(answers))))


def test_an_answer_is_kept_with_the_engines_numbers():
    at = press(visit("masking", text=TEXT, mask="4", k="5"), "keep_answer")
    engine = load_engine("twin-bert")
    trace = engine.run(TraceRequest(TEXT, masked=(4,)))
    (gap,) = read_gaps(trace, engine.loaded().tokenizer, 5, {4: engine.loaded().tokenizer.id_of("tea")}, 1)
    words = said(at)
    assert "Kept answers" in words
    assert kept.gap_lines(kept.kept_answer(trace, [gap]))[0] in words
    assert "hidden: tea · twin-bert" in words
    rows = file_of(at)
    assert [row[6] for row in rows[1:]] == [guess.token for guess in gap.guesses]
    assert [float(row[7]) for row in rows[1:]] == pytest.approx([guess.probability for guess in gap.guesses], rel=1e-5)
    assert rows[1][:6] == [TEXT, "", "tea", "twin-bert", "4", "1"]


def test_what_is_kept_stays_while_one_goes_on_and_comes_back_by_a_click():
    at = press(visit("masking", text=TEXT, mask="4"), "keep_answer")
    assert at.button(key="keep_answer").disabled
    at.session_state["text"] = "Two [MASK] run through the snow."
    at = press(at.run(), "keep_answer")
    assert len(at.session_state[masking_kept._KEPT]) == 2
    at = press(at, "kept_0")
    assert at.session_state["text"] == TEXT
    assert drawn(at, "gaps")["selected"] == [4]
    assert at.button(key="keep_answer").disabled


def test_they_are_listed_also_where_no_gap_is_open_and_go_when_told_to():
    at = press(visit("masking", text="The [MASK] barked."), "keep_answer")
    at.session_state["text"] = "The dog barked."
    at = at.run()
    assert "Kept answers" in said(at)
    at = press(at, "kept_none")
    assert "Kept answers" not in said(at)


def test_the_oldest_goes_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr(masking_kept, "MOST", 2)
    at = visit("masking", text="The [MASK] barked.")
    for text in ("A [MASK] ran.", "My [MASK] sang.", "Our [MASK] slept."):
        at.session_state["text"] = text
        at = press(at.run(), "keep_answer")
    assert [answer.text for answer in at.session_state[masking_kept._KEPT]] == ["My [MASK] sang.", "Our [MASK] slept."]


def test_a_sentence_is_shown_as_it_was_typed():
    text = "*Stars* [MASK](link) :red[b] $x$ <b>é</b> -> 1."
    at = press(visit("masking", text=text), "keep_answer")
    label = at.button(key="kept_0").label
    assert label.replace("\\", "") == text
    assert all(f"\\{sign}" in label for sign in "*[]():$<>-.")


def test_a_hidden_piece_that_is_not_among_the_best_is_named_with_its_rank():
    likely = [("a", 0.5), ("b", 0.25), ("c", 0.125), ("d", 0.1)]
    guesses = tuple(Guess(n, token, p) for n, (token, p) in enumerate(likely))
    gap = Gap(3, guesses, guesses[3], 4)
    answer = kept.KeptAnswer("x", None, (3,), "m", (gap, Gap(5, guesses, guesses[0], 1)))
    assert kept.gap_lines(answer) == ["position 3: a 50 %, b 25 %, c 12 %, hidden: d 10 %, rank 4",
                                      "position 5: a 50 %, b 25 %, c 12 %"]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t"])
def test_nothing_is_a_formula_to_a_spreadsheet(start):
    gap = Gap(1, (Guess(0, f"{start}1", 1.0),))
    rows = list(csv.reader(io.StringIO(kept.kept_csv([kept.KeptAnswer(f"{start}A1", f"{start}B", (), "m", (gap,))]))))
    assert [rows[1][n] for n in (0, 1, 6)] == [f"'{start}A1", f"'{start}B", f"'{start}1"]
