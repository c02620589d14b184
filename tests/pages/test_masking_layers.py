"""Masking, layer by layer: the table and its words against the measure."""

from __future__ import annotations

import html
import re

import pytest

from bert_core import TraceRequest, load_engine
from bert_core.figures.masking import percent
from bert_core.measures.lens import read_layers
from bert_core.measures.predictions import Gap, Guess
from tests.payloads import is_ready, plain_line, said, visit
from ui.views.masking import TO_TRY
from ui.views.masking_layers import BEST, _in_words

TEXT = "She poured the tea into her [MASK]."


def rows(at) -> list[list[str]]:
    """The table's rows, each a list of its cells' words."""
    (drawn,) = [one.proto.body for one in at.get("html") if 'class="bw-table bw-lens"' in one.proto.body]
    found = re.findall(r"<tr>(.*?)</tr>", drawn.split("<tbody>")[1])
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in found]
    return [[" ".join(html.unescape(re.sub(r"<[^>]+>", " ", cell)).split()) for cell in row] for row in cells]


@pytest.mark.parametrize(("gap", "position", "piece"), [("7", 7, None), ("4", 4, "tea")])
def test_the_table_is_the_measure(gap, position, piece):
    at = visit("masking", view="Layer by layer", text=TEXT, mask="4", gap=gap)
    is_ready(at)
    engine, request = load_engine("twin-bert"), TraceRequest(TEXT, masked=(4,))
    truth = engine.loaded().tokenizer.id_of(piece) if piece else None
    layers = engine.call(read_layers, request, position, BEST, truth)
    expected = [[name, f"number {gap.rank:,} {percent(gap.truth.probability)}",
                 *(f"{guess.token} {percent(guess.probability)}" for guess in gap.guesses)]
                for name, gap in zip(["input", *"123456"], layers, strict=True)]
    assert rows(at) == expected
    assert f"{'The hidden' if piece else 'The answer'} “{layers[0].truth.token}”" in said(at)


def test_one_gap_needs_no_choice_and_none_has_sentences_to_try():
    at = visit("masking", view="Layer by layer", text=TEXT)
    assert len(rows(at)) == 7
    assert "gap" not in [one.key for one in at.get("button_group")]
    at = visit("masking", view="Layer by layer", text="No gap.")
    is_ready(at)
    assert [button.label for button in at.button if button.key.startswith("try_masking")] == list(TO_TRY)


def test_a_model_of_another_kind_says_why_not(family, monkeypatch):
    monkeypatch.setenv("BOTH_WAYS_MODEL", family("ModernBERT"))
    at = visit("masking", view="Layer by layer", text="the [MASK] barked")
    assert "which does not give its head for the vectors of other layers" in plain_line(at)


@pytest.mark.parametrize(("ranks", "words"), [
    ((9, 4, 1), "The answer “a” stands first in the last layer; one layer below it is number 4."),
    ((1, 4, 1), "The answer “a” stands first in the last layer; one layer below it is number 4."),
    ((9, 1, 1), "The answer “a” stands first from layer 1 on."),
    ((1, 1, 1), "The answer “a” stands first from the input on.")])
def test_since_when_in_words(ranks, words):
    assert _in_words([Gap(1, (), Guess(0, "a", 0.5), rank) for rank in ranks], is_hidden=False) == words


@pytest.mark.parametrize(("ranks", "words"), [
    ((1900, 3, 4), "is number 4 at the end; it came furthest in layer 1, number 3."),
    ((2, 3, 4), "is number 4 at the end; it came furthest at the input, number 2."),
    ((9, 4, 11, 4), "is number 4 at the end."),  # no farther than it is in the end
    ((9, 5, 4), "is number 4 at the end.")])
def test_a_hidden_piece_that_is_never_the_answer(ranks, words):
    gaps = [Gap(1, (), Guess(0, "a", 0.5), rank) for rank in ranks]
    assert _in_words(gaps, is_hidden=True) == f"The hidden “a” {words}"
