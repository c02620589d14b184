"""Vectors put into another run, against transformers' own layers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from bert_core import TraceRequest, load_engine
from bert_core.load import load_model
from bert_core.measures import swap as swaps
from bert_core.measures.attribution import finish
from bert_core.measures.swap import Swap, carrier, most_tokens, swap_vectors
from tests.core.reference import open_reference

FIRST = TraceRequest("the dog [MASK] all night", "it barked")
SECOND = replace(FIRST, text="the capital [MASK] bad night")


def states_and_answer(loaded, theirs, request: TraceRequest, put=None):
    """transformers' hidden states, and its log-probabilities at position 3; `put` = (layer, position, vector)."""
    encoding = loaded.tokenizer.encode(request.text, request.pair)

    def replaced(layer: int, hidden: torch.Tensor) -> torch.Tensor:
        if put is not None and put[0] == layer:
            hidden = hidden.clone()
            hidden[0, put[1]] = put[2]
        return hidden

    with torch.no_grad():
        hidden = theirs.bert.embeddings(torch.tensor([encoding.input_ids]), torch.tensor([encoding.token_type_ids]))
        states = [replaced(0, hidden)]
        for n, layer in enumerate(theirs.bert.encoder.layer, 1):
            done = layer(states[-1])
            states.append(replaced(n, done[0] if isinstance(done, tuple) else done))
        return states, theirs.cls.predictions(states[-1][0, 3]).log_softmax(-1)


def test_every_cell_is_transformers_run_with_that_vector(tiny_bert):
    loaded, theirs = load_model(tiny_bert, torch.float64), open_reference(tiny_bert)
    found = finish(swap_vectors(loaded, FIRST, SECOND, 3))
    _, first = states_and_answer(loaded, theirs, FIRST)
    states, second = states_and_answer(loaded, theirs, SECOND)
    answers = [int(first.argmax()), int(second.argmax())]
    assert found.answers == tuple(map(loaded.tokenizer.token_of, answers))
    np.testing.assert_allclose(found.ends, torch.stack([first, second])[:, answers], rtol=0, atol=1e-10)
    assert found.runs.shape == (loaded.config.num_hidden_layers + 1, len(found.tokens), 2)
    for layer, row in enumerate(found.runs):
        for place, cell in enumerate(row):
            _, expected = states_and_answer(loaded, theirs, FIRST, (layer, place, states[layer][0, place]))
            np.testing.assert_allclose(cell, expected[answers], rtol=0, atol=1e-10, err_msg=f"{layer}, {place}")


def test_one_changed_word_is_the_other_sentence_at_the_input_and_the_gap_after_the_last_layer(monkeypatch):
    monkeypatch.setattr(swaps, "ROWS_A_PASS", 3)  # passes that end in the midst of a sentence
    dogs, dog = (TraceRequest(f"The {word} in the park [MASK] barking.") for word in ("dogs", "dog"))
    found = load_engine("twin-bert").call(swap_vectors, dogs, dog, 6)
    assert found.answers == ("are", "is")
    changed = [one != other for one, other in zip(found.tokens, found.others, strict=True)]
    np.testing.assert_allclose(found.shares[0], changed, atol=1e-4)
    np.testing.assert_allclose(found.shares[-1], np.arange(10) == 6, atol=1e-4)
    np.testing.assert_allclose(found.runs[0, 2], found.ends[1], atol=1e-3)
    assert [found.tokens[place] for place in carrier(found)] == [
        "dogs", "dogs", "dogs", "dogs", "the", "[MASK]", "[MASK]"]  # as lesson 6 says


def test_shares_go_from_here_to_there():
    ends = np.log([[0.8, 0.1], [0.2, 0.4]])
    halfway = ends.mean(axis=0)
    beyond = ends[0] - (ends[1] - ends[0])
    runs = np.stack([ends[0], ends[1], halfway, beyond])[None]
    assert Swap((), (), 0, ("a", "b"), ends, runs).shares[0] == pytest.approx([0, 1, 0.5, -1])


@pytest.mark.parametrize(("model", "other", "position", "says"), [
    ("bert", "the cat slept", 3, "have 10 and 8 tokens"), ("bert", SECOND.text, 10, "position 10 is not in this text"),
    ("bert", FIRST.text, 3, "both sentences get the same answer"), ("gpt", SECOND.text, 3, "no trained masked-LM head"),
    ("modernbert", SECOND.text, 3, "runs through transformers: vectors")])
def test_what_can_not_be_swapped_is_said(tiny_bert, tiny_gpt, family, model, other, position, says):
    loaded = load_model({"bert": tiny_bert, "gpt": tiny_gpt}.get(model) or family("ModernBERT"))
    with pytest.raises(ValueError, match=says):
        finish(swap_vectors(loaded, FIRST, replace(FIRST, text=other), position))


def test_the_longest_sentence_is_counted_in_layers_that_run(tiny_bert, monkeypatch):
    """Of two layers three a token: both above the embeddings, one above the first layer, none above the last."""
    loaded = load_model(tiny_bert)
    width, inner, tokens, ran = 15, 23, 7, []
    monkeypatch.setattr(swaps, "ROWS_A_PASS", 1)
    layer = swaps.bert.layer
    monkeypatch.setattr(swaps.bert, "layer", lambda *a, **more: ran.append(1) or layer(*a, **more))
    finish(swap_vectors(loaded, FIRST, SECOND, 3))
    assert len(ran) == 2 + 3 * 10  # two to read both sentences
    one = tokens * (4 * width**2 + 2 * width * inner) + 2 * width * tokens**2
    monkeypatch.setattr(swaps, "MAX_WORK", 3 * tokens * one)
    assert most_tokens(loaded) == tokens
    monkeypatch.setattr(swaps, "MAX_WORK", 3 * tokens * one - 1)
    assert most_tokens(loaded) == tokens - 1


def test_a_sentence_that_takes_too_long_is_refused(tiny_bert, monkeypatch):
    loaded = load_model(tiny_bert)
    assert most_tokens(loaded) == loaded.tokenizer.limit
    monkeypatch.setattr(swaps, "MAX_WORK", 500_000)
    most = most_tokens(loaded)
    assert 1 < most < 10
    with pytest.raises(ValueError, match=f"10 tokens are too many runs .* {most} are not"):
        finish(swap_vectors(loaded, FIRST, SECOND, 3))
