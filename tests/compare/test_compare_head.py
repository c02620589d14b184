"""Compare, one guess laid open: both readers' sums end at the probabilities of their cards."""

from __future__ import annotations

import html
import re

import numpy as np
import pytest

from bert_core import TraceRequest, load_engine
from bert_core.figures.masking import percent
from bert_core.measures.compare import NoReading
from bert_core.measures.vocabulary_head import head_steps
from bert_core.tasks.support import softmax
from tests.payloads import all_drawn, drawn, is_ready, said, visit

TEXT = "The dog barked all night."
GAP = "The [MASK] barked all night."


@pytest.mark.parametrize(("model", "source"), [("twin-gpt", 2), ("twin-rtl", 4)])
def test_a_causal_head_reads_the_token_that_was_read_last(model, source):
    engine = load_engine(model)
    trace, loaded = engine.run(TraceRequest(TEXT)), engine.loaded()
    barked = loaded.tokenizer.id_of("barked")
    steps = head_steps(loaded, trace, 3, [barked])
    assert steps.source == source
    assert np.array_equal(steps.hidden, trace.hidden_states[-1, source])
    assert steps.logits[0] == pytest.approx(trace.lm_logits[source, barked], abs=2e-5)
    assert steps.softmax.probabilities[0] == pytest.approx(softmax(trace.lm_logits[source])[barked], rel=1e-9)


def test_nothing_is_read_before_the_start():
    engine = load_engine("twin-gpt")
    with pytest.raises(NoReading, match="nothing stands left"):
        head_steps(engine.loaded(), engine.run(TraceRequest(TEXT)), 0, [7])


def sums(at) -> list[tuple[str, ...]]:
    """(sum, bias, logit, the run's own, probability) of each line of words."""
    words = re.sub(r"</?strong>", "", said(at)).replace("\N{NO-BREAK SPACE}", " ")
    line = r"last strip (\S+) \+ bias (\S+) = (\S+); the run itself gave (\S+), by softmax ([^<]+?)\.<"
    return re.findall(line, words)


@pytest.mark.parametrize("is_true", [True, False])
def test_both_end_at_the_probabilities_of_their_runs(is_true):
    engine = load_engine("twin-bert")
    both, left = engine.run_many([TraceRequest(TEXT, masked=(2,)), TraceRequest(TEXT, model="twin-gpt")])
    logits, tokenizer = (both.mlm_logits[0], left.lm_logits[1]), engine.loaded().tokenizer
    number = tokenizer.id_of("dog") if is_true else int(logits[1].argmax())  # the true word, or the GPT's best guess
    at = visit("compare", text=GAP, behind="dog", opened="true", guess=tokenizer.token_of(number))
    is_ready(at)
    assert tokenizer.token_of(number) == at.session_state["guess"]
    strips, vectors = all_drawn(at, "operands"), (both.hidden_states[-1, 2], left.hidden_states[-1, 1])
    assert [one["rows"][0]["name"].split(" at ")[0] for one in strips] == ["“[MASK]”", "“the”"]
    for shown, found, row, vector in zip(strips, sums(at), logits, vectors, strict=True):
        values = shown["arrays"]["values"]
        assert np.allclose(values[0], vector, atol=1e-6)
        assert np.allclose(values[3], values[1] * values[2], atol=1e-6)
        summed, bias, logit = (float(word.replace("−", "-")) for word in found[:3])
        assert values[3].sum() == pytest.approx(summed, abs=2e-4)
        assert summed + bias == pytest.approx(float(row[number]), abs=3e-4)
        assert logit == pytest.approx(float(row[number]), abs=2e-4)
        assert float(found[3].replace("−", "-")) == pytest.approx(float(row[number]), abs=1e-4)
        assert html.unescape(found[4]) == percent(softmax(row)[number])


def test_it_is_closed_until_it_is_asked_for_and_another_model_says_why_not(family, monkeypatch):
    with pytest.raises(AssertionError, match="no component operands"):
        drawn(visit("compare", text=GAP), "operands")
    monkeypatch.setenv("BOTH_WAYS_MODEL", family("ModernBERT"))
    at = visit("compare", text="the [MASK] barked", opened="true")
    assert "runs through transformers: only a head on this explorer" in said(at)
    monkeypatch.setenv("BOTH_WAYS_MODEL", family("GPT-2"))
    at = visit("compare", text="the dog barked", opened="true")
    assert "runs through transformers: only a head on this explorer" in said(at)
    assert len(all_drawn(at, "operands")) == 1


def test_a_reader_with_pieces_of_its_own_says_so(family, monkeypatch):
    monkeypatch.setenv("BOTH_WAYS_MODEL", family("BERT, causal"))
    at = visit("compare", text=TEXT, at="3", opened="true")
    assert "cuts words into pieces of its own: “barked” is none of them" in said(at)
    assert len(all_drawn(at, "operands")) == 1
