"""Masking, the head: the strips, the sum and the softmax against the run itself."""

from __future__ import annotations

import numpy as np
import pytest

from bert_core import TraceRequest, load_engine
from bert_core.figures.masking import percent
from bert_core.measures.predictions import gap_distribution, top_ids
from tests.payloads import drawn, is_ready, plain_line, said, table_rows, visit
from ui.views.masking import BEST, TO_TRY

TEXT = "She poured the tea into her [MASK]."
ODD = "She poured the stone into her cup."


def number(text: str) -> float:
    return float(text.replace("−", "-"))


@pytest.mark.parametrize("gap", [4, 7])
def test_the_table_goes_from_logit_to_probability(gap):
    at = visit("masking", view="The head", text=TEXT, mask="4", gap=gap)
    is_ready(at)
    engine = load_engine("twin-bert")
    trace = engine.run(TraceRequest(TEXT, masked=(4,)))
    p, tokenizer = gap_distribution(trace, gap), engine.loaded().tokenizer
    ids = top_ids(p, BEST).tolist()
    tea = tokenizer.id_of("tea")
    if gap == 4 and tea not in ids:
        ids.append(tea)
    shown = table_rows(at, "Softmax over")
    assert [row[0] for row in shown] == [tokenizer.token_of(n) for n in ids]
    assert [row[-1] for row in shown] == [percent(p[n]) for n in ids]
    logits = trace.mlm_logits[trace.mlm_positions.tolist().index(gap)]
    for row, n in zip(shown, ids, strict=True):
        summed, bias, logit, power = map(number, row[1:5])
        assert summed + bias == pytest.approx(logit, abs=2e-4)
        assert logit == pytest.approx(float(logits[n]), abs=2e-4)
        assert power == pytest.approx(np.exp(logits[n] - logits.max()), abs=1e-4)


def test_the_piece_that_was_hidden_can_be_opened_though_it_is_unlikely():
    at = visit("masking", view="The head", text=ODD, mask="4")
    is_ready(at)
    names = [row[0] for row in table_rows(at, "Softmax over")]
    assert (len(names), names[-1]) == (BEST + 1, "stone")
    at = visit("masking", view="The head", text=ODD, mask="4", guess="stone")
    strips = drawn(at, "operands")
    assert "vector of “stone”" in [row["name"] for row in strips["rows"]]
    row = table_rows(at, "Softmax over")[-1]
    values = strips["arrays"]["values"]
    assert values[-1].sum() == pytest.approx(number(row[1]), abs=2e-4)
    assert np.allclose(values[-1], values[-2] * values[-3], atol=1e-6)
    assert f"Sum of the last strip {row[1]} + bias {row[2]} = {row[3]}; the run itself gave" in said(at)


def test_a_head_of_another_width_leaves_the_last_vector_out(family, monkeypatch):
    monkeypatch.setenv("BOTH_WAYS_MODEL", family("ELECTRA, generator"))
    at = visit("masking", view="The head", text="the [MASK] barked")
    assert [row["name"] for row in drawn(at, "operands")["rows"]][0] == "dense layer: W·[MASK] + b, before GELU"


def test_a_guess_of_another_sentence_is_forgotten():
    at = visit("masking", view="The head", text=TEXT, guess="cup")
    is_ready(at)
    at.text_input(key="text").set_value("The [MASK] barked all night.").run()
    is_ready(at)
    assert at.session_state["guess"] == table_rows(at, "Softmax over")[0][0] != "cup"


def test_without_a_gap_there_are_sentences_to_try_and_without_our_layers_a_line(family, monkeypatch):
    at = visit("masking", view="The head", text="No gap.")
    assert [button.label for button in at.button if button.key.startswith("try_masking")] == list(TO_TRY)
    monkeypatch.setenv("BOTH_WAYS_MODEL", family("ModernBERT"))
    at = visit("masking", view="The head", text="the [MASK] barked")
    assert "which does not give the operands of its head" in plain_line(at)
