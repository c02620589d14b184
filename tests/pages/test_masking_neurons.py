"""Masking, neurons: their shares, and both sentences with them changed, against the runs themselves."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bert_core import TraceRequest, load_engine
from bert_core.figures.masking import percent
from bert_core.measures.knowledge_neurons import neuron_shares, others_like
from bert_core.measures.predictions import gap_distribution
from bert_core.measures.target import Target
from tests.payloads import drawn, is_ready, plain_line, said, visit
from ui.state import DEFAULT_TEXT
from ui.views.masking import TO_TRY
from ui.views.masking_neurons import DRAWS, LONGEST, OTHER

PLACE, SIZE = 6, 1536


@pytest.fixture(scope="module")
def engine():
    return load_engine("twin-bert")


def shown_neurons(at) -> list[tuple[int, int]]:
    """0-based (layer, neuron) of the bars."""
    (side,) = drawn(at, "verdict")["sides"]
    return [(int(layer) - 1, int(neuron)) for layer, neuron in (
        re.fullmatch(r"layer (\d+), neuron (\d+)", bar["label"]).groups() for bar in side["bars"])]


@pytest.mark.parametrize(("give", "factor"), [("Nothing", 0.0), ("Twice as much", 2.0)])
def test_both_sentences_run_with_the_strongest_neurons_changed(engine, give, factor):
    at = visit("masking", view="Neurons", text=DEFAULT_TEXT, guess="door", count=5, give=give)
    is_ready(at)
    door = engine.loaded().tokenizer.id_of("door")
    shares = engine.call(neuron_shares, TraceRequest(DEFAULT_TEXT), Target("mlm", door, PLACE, "probability"))
    best = np.argsort(-shares.values, axis=None)[:5]
    neurons = shown_neurons(at)
    assert neurons == [(int(n) // SIZE, int(n) % SIZE) for n in best]
    values = [bar["value"] for bar in drawn(at, "verdict")["sides"][0]["bars"]]
    assert values == pytest.approx(shares.values.ravel()[best].tolist(), abs=1e-6)
    change = tuple((*neuron, factor) for neuron in neurons)
    for block, text in zip(drawn(at, "effect")["blocks"], (DEFAULT_TEXT, OTHER), strict=True):
        for key, request in (("before", TraceRequest(text)), ("after", TraceRequest(text, neurons=change))):
            trace = engine.run(request)
            p = gap_distribution(trace, int(trace.mlm_positions[0]))
            assert block[key][block["names"].index("door")] == pytest.approx(float(p[door]), abs=1e-5)
        assert (block["title"], block["followed"]) == (text, "door")


def test_the_line_compares_with_as_many_other_neurons(engine):
    at = visit("masking", view="Neurons", text=DEFAULT_TEXT)
    is_ready(at)
    book, neurons = engine.loaded().tokenizer.id_of("book"), shown_neurons(at)
    found = []
    for chosen in (neurons, *(others_like(neurons, SIZE, n) for n in range(DRAWS))):
        trace = engine.run(TraceRequest(DEFAULT_TEXT, neurons=tuple((*neuron, 0.0) for neuron in chosen)))
        found.append(float(gap_distribution(trace, PLACE)[book]))
    assert f"8 neurons of 9,216 switched off: “book” goes from 62 % to {percent(found[0])}." in said(at)
    assert f"{DRAWS} times: {percent(min(found[1:]))} to {percent(max(found[1:]))}." in said(at)
    assert found[0] < 0.2 < min(found[1:])


def test_the_gap_may_be_a_hidden_piece_and_one_of_several(engine):
    text = "She poured the tea into her [MASK]."
    at = visit("masking", view="Neurons", text=text, mask="4", gap=4, also="He drank a cup of [MASK].")
    is_ready(at)
    first, _ = drawn(at, "effect")["blocks"]
    trace = engine.run(TraceRequest(text, masked=(4,)))
    best = int(gap_distribution(trace, 4).argmax())
    assert first["followed"] == engine.loaded().tokenizer.token_of(best) == first["names"][0]
    assert first["before"][0] == pytest.approx(float(gap_distribution(trace, 4)[best]), abs=1e-5)


def test_what_is_missing_is_said(family, monkeypatch):
    at = visit("masking", view="Neurons", text="No gap.")
    assert [button.label for button in at.button if button.key.startswith("try_masking")] == list(TO_TRY)
    at = visit("masking", view="Neurons", text=DEFAULT_TEXT, also="No gap either.")
    assert "The other sentence has no [MASK]" in said(at)
    assert len(drawn(at, "effect")["blocks"]) == 1
    at = visit("masking", view="Neurons", text="[MASK] " + "dog " * LONGEST)
    is_ready(at)
    assert f"up to {LONGEST} tokens; this input has {LONGEST + 3}" in said(at)
    monkeypatch.setenv("BOTH_WAYS_MODEL", family("ModernBERT"))
    assert "which does not give its neurons one by one" in plain_line(
        visit("masking", view="Neurons", text="the [MASK] barked"))
