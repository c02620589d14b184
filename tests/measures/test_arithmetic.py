"""What bf16 is said to change is what it changes, and what it is said to save is what the clock says."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from bert_core.load import load_model
from bert_core.measures import arithmetic
from bert_core.serving.local import LocalEngine
from bert_core.tasks.support import softmax
from bert_core.trace import TraceRequest, run_batch

SENTENCES = ("the dog [MASK] .", "a cat and the dog [MASK] here .")


def largest(pairs) -> float:
    return max(float(np.abs(a - b).max()) for a, b in pairs)


def test_the_errors_are_those_of_the_same_sentences_in_both_precisions(tiny_bert):
    engine = LocalEngine(tiny_bert, pack=False)
    try:
        found = arithmetic.compare(engine, tiny_bert, SENTENCES)
    finally:
        engine.close()
    traces = [[run_batch(load_model(tiny_bert, dtype), [TraceRequest(text)])[0] for text in SENTENCES]
              for dtype in (torch.float32, torch.bfloat16)]
    pairs = list(zip(*traces, strict=True))
    for got, part in ((found.hidden, "hidden_states"), (found.attention, "attention_probs")):
        assert got == pytest.approx(largest([(getattr(a, part), getattr(b, part)) for a, b in pairs]), rel=1e-3)
    assert found.probability == pytest.approx(
        largest([(softmax(a.mlm_logits), softmax(b.mlm_logits)) for a, b in pairs]), rel=1e-3)
    assert found.hidden_size == pytest.approx(max(np.abs(a.hidden_states).max() for a, _ in pairs), rel=1e-3)
    assert min(found) > 0


def test_a_model_that_predicts_nothing_has_no_probability_that_is_off(checkpoint):
    engine = LocalEngine(checkpoint("BertModel"), pack=False)
    try:
        assert arithmetic.compare(engine, engine.default, SENTENCES).probability is None
    finally:
        engine.close()


@pytest.mark.parametrize(("slow", "share"), [("bf16", 3.0), ("fp32", 1 / 3)])
def test_the_time_is_the_clocks(tiny_bert, monkeypatch, slow, share):
    """On a clock of its own: a neighbour of the machine must not decide this."""
    clock = [0.0]

    class Slow(LocalEngine):
        def run(self, request, visitor=None, keep=True):
            clock[0] += 0.75 if request.precision == slow else 0.25
            return super().run(request, visitor, keep)

    monkeypatch.setattr(arithmetic, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    engine = Slow(tiny_bert, pack=False)
    try:
        assert arithmetic.compare(engine, tiny_bert, SENTENCES).time == pytest.approx(share)
    finally:
        engine.close()
