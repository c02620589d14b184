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
    tokens = engine.loaded().tokenizer.encode(TEXT).tokens
    assert kept.gap_lines(kept.kept_answer(trace, [gap], tokens))[0] in words
    assert "hidden: tea · twin-bert" in words
    rows = file_of(at)
    found = [*gap.guesses, *([gap.truth] if gap.rank > len(gap.guesses) else [])]
    assert [row[7] for row in rows[1:]] == [guess.token for guess in found]
    assert [float(row[8]) for row in rows[1:]] == pytest.approx([guess.probability for guess in found], rel=1e-5)
    assert rows[1][:7] == [TEXT, "", "tea", "twin-bert", "4", "tea", "1"]


def test_what_is_kept_stays_while_one_goes_on_and_comes_back_by_a_click():
    at = press(visit("masking", text=TEXT, mask="4"), "keep_answer")
    assert at.button(key="keep_answer").label == "Kept below"
    at.session_state["text"] = "Two [MASK] run through the snow."
    at = press(at.run(), "keep_answer")
    assert len(at.session_state[masking_kept._KEPT]) == 2
    at = press(at, "kept_0")
    assert at.session_state["text"] == TEXT
    assert drawn(at, "gaps")["selected"] == [4]
    assert len(press(at, "keep_answer").session_state[masking_kept._KEPT]) == 2  # it is there already


def test_more_guesses_take_the_place_of_fewer():
    at = press(visit("masking", text="The [MASK] barked.", k="4"), "keep_answer")
    at.session_state["k"] = 7
    at = at.run()
    assert at.button(key="keep_answer").label == "Keep this answer"
    (answer,) = press(at, "keep_answer").session_state[masking_kept._KEPT]
    assert len(answer.gaps[0].guesses) == 7


def test_gaps_without_a_card_are_counted_and_their_words_named():
    text = "one two three four five six seven eight nine ten eleven twelve [MASK] fourteen"
    at = press(visit("masking", text=text, mask="1,2,3,4,5,6,7,8,9,10,11,12,14"), "keep_answer")
    words = said(at)
    assert "12 of 14 gaps" in words
    assert "hidden: one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, fourteen" in words


def test_sentences_that_differ_at_their_end_have_names_that_do():
    start = "The schoolteacher opened the [MASK] and read the "
    at = press(visit("masking", text=start + "first chapter."), "keep_answer")
    at.session_state["text"] = start + "last page."
    at = press(at.run(), "keep_answer")
    labels = [at.button(key=f"kept_{n}").label.replace("\\", "") for n in range(2)]
    assert labels == [start + "first chapter.", start + "last page."]
    long = masking_kept._in_short("a" * 300 + "b")
    assert len(long) < 200
    assert long.endswith("b")


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
    answer = kept.KeptAnswer("x", None, (3, 5), ("d", "a"), "m", (gap, Gap(5, guesses[:2], guesses[3], 4)), 2)
    assert kept.gap_lines(answer) == ["position 3: “a” 50 %, “b” 25 %, “c” 12 %, hidden: “d” 10 %, rank 4",
                                      "position 5: “a” 50 %, “b” 25 %, hidden: “d” 10 %, rank 4"]
    rows = list(csv.reader(io.StringIO(kept.kept_csv([answer]))))[1:]
    assert [row[5:8] for row in rows if row[4] == "5"] == [["d", "1", "a"], ["d", "2", "b"], ["d", "4", "d"]]
    assert [row[6] for row in rows if row[4] == "3"] == ["1", "2", "3", "4"]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t"])
def test_nothing_is_a_formula_to_a_spreadsheet(start):
    gap = Gap(1, (Guess(0, f"{start}1", 1.0),))
    answer = kept.KeptAnswer(f"{start}A1", f"{start}B", (), (), "m", (gap,), 1)
    rows = list(csv.reader(io.StringIO(kept.kept_csv([answer]))))
    assert [rows[1][n] for n in (0, 1, 7)] == [f"'{start}A1", f"'{start}B", f"'{start}1"]
