"""The walk through the vocabulary head shows the rows that the page's predictions come from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bert_core.load import Loaded, load_model
from bert_core.measures import walk
from bert_core.tasks.vocabulary import last_read
from bert_core.trace import TraceRequest, run_batch


def first_logits(loaded: Loaded, text: str) -> tuple[float, ...]:
    """The first numbers that `mlm_logits` gives back in the walk."""
    steps = walk.walk(loaded, loaded.tokenizer.encode(text))
    return next(step.first for step in steps if (step.function, step.name) == ("mlm_logits", "return"))


@pytest.fixture(params=["left-to-right", "right-to-left"])
def turned(request):
    """turned(folder) -> the model, reading in this order."""
    def load(folder: str) -> Loaded:
        loaded = load_model(folder)
        return replace(loaded, model=replace(loaded.model, config=replace(loaded.config, reading_order=request.param)))

    return load


@pytest.mark.parametrize("text", ["the dog barked all night", "the [MASK] barked", ""])
def test_a_causal_model_shows_what_follows_its_last_word(turned, tiny_gpt, text):
    loaded = turned(tiny_gpt)
    trace = run_batch(loaded, [TraceRequest(text)])[0]
    assert first_logits(loaded, text) == pytest.approx(trace.lm_logits[last_read(trace), :3].tolist(), abs=1e-5)


def test_a_gap_is_shown_where_it_stands(turned, tiny_bert):
    loaded, text = turned(tiny_bert), "the [MASK] barked all night"
    trace = run_batch(loaded, [TraceRequest(text)])[0]
    assert first_logits(loaded, text) == pytest.approx(trace.mlm_logits[0, :3].tolist(), abs=1e-5)
