"""The logit lens against transformers' own head on transformers' own layers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from bert_core import TraceRequest, load_engine
from bert_core.load import load_model
from bert_core.measures.attribution import finish
from bert_core.measures.lens import read_layers, stays_first
from bert_core.measures.predictions import Gap, Guess, gap_distribution
from tests.core.reference import open_reference

REQUEST = TraceRequest("the dog [MASK] all night", "it was [MASK]", masked=(2,))


@pytest.mark.parametrize("position", [2, 3])
def test_every_layer_is_read_as_transformers_head_reads_it(tiny_bert, position):
    loaded, theirs = load_model(tiny_bert, torch.float64), open_reference(tiny_bert)
    layers = finish(read_layers(loaded, REQUEST, position, 3))
    encoding = loaded.tokenizer.encode(REQUEST.text, REQUEST.pair)
    ids = [loaded.tokenizer.mask_id if n in REQUEST.masked else i for n, i in enumerate(encoding.input_ids)]
    with torch.no_grad():
        states = theirs.bert(torch.tensor([ids]), token_type_ids=torch.tensor([encoding.token_type_ids]),
                             output_hidden_states=True).hidden_states
        expected = [theirs.cls.predictions(state[0, position]).softmax(-1).numpy() for state in states]
    assert len(layers) == loaded.config.num_hidden_layers + 1
    answer = int(expected[-1].argmax())
    for gap, p in zip(layers, expected, strict=True):
        assert [guess.id for guess in gap.guesses] == np.argsort(-p, kind="stable")[:3].tolist()
        assert [guess.probability for guess in gap.guesses] == pytest.approx(np.sort(p)[::-1][:3], abs=1e-12)
        assert (gap.position, gap.truth.id) == (position, answer)
        assert gap.truth.probability == pytest.approx(p[answer], abs=1e-12)
        assert gap.rank == int((p > p[answer]).sum()) + 1


def test_the_last_layer_is_the_models_answer_and_a_hidden_piece_is_followed():
    engine, request = load_engine("twin-bert"), TraceRequest("She poured the tea into her cup.", masked=(4,))
    tea = engine.loaded().tokenizer.id_of("tea")
    layers = engine.call(read_layers, request, 4, 5, tea)
    p = gap_distribution(engine.run(request), 4)
    assert [guess.id for guess in layers[-1].guesses] == np.argsort(-p)[:5].tolist()
    assert layers[-1].truth.probability == pytest.approx(p[tea], rel=1e-4)
    assert {gap.truth.token for gap in layers} == {"tea"}
    bf16 = engine.call(read_layers, replace(request, precision="bf16"), 4, 5, tea)
    assert bf16[-1].truth.probability == pytest.approx(p[tea], rel=0.1)


@pytest.mark.parametrize(("model", "position", "says"), [
    ("bert", 99, "position 99 is not in this text; choose 0 to 4"), ("bert", -1, "position -1 is not in this text"),
    ("gpt", 1, "has no trained masked-LM head"), ("modernbert", 1, "runs through transformers: only a head")])
def test_what_can_not_be_asked_is_said(tiny_bert, tiny_gpt, family, model, position, says):
    folder = {"bert": tiny_bert, "gpt": tiny_gpt}.get(model) or family("ModernBERT")
    with pytest.raises(ValueError, match=says):
        finish(read_layers(load_model(folder), TraceRequest("the dog barked"), position, 3))


@pytest.mark.parametrize(("ranks", "first"), [((3, 1, 1), 1), ((1, 2, 1), 2), ((1, 1, 1), 0), ((1, 1, 2), None)])
def test_since_when_the_answer_stands_first(ranks, first):
    assert stays_first([Gap(1, (), Guess(0, "a", 0.5), rank) for rank in ranks]) == first
