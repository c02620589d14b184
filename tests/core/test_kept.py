"""A Trace's arrays, written where they stay: the numbers of model.py's own lines, row by row or together."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bert_core import kept, trace
from bert_core import model as bert
from bert_core.load import load_model
from bert_core.request import LAYER_PARTS
from bert_core.trace import TraceRequest, prepare, run_batch, to_inputs

LAYERS = ("query", "key", "value", "attention_scores", "attention_probs", "context", "attention_output",
          "intermediate")
PARTS = (*LAYERS, "hidden_states")


class ByModel(kept.Kept):
    """Takes all of a layer from model.py's own lines, as on a GPU."""

    def __init__(self, *args, **named):
        super().__init__(*args, **named)
        self.by_row = False


def mixed_batch():
    """Rows of other lengths, ways of attention, pairs, hidden and cut words, a word that sees nothing, parts off."""
    nowhere = tuple((1, key) for key in range(8))
    return [TraceRequest("the dog barked all night"),
            TraceRequest("a cat slept", "she walked home", attention="causal"),
            TraceRequest("the [MASK] slept in the house all day", hidden=(2,), window=3, cut=((4, 1),)),
            TraceRequest("we walked home at night", cut=nowhere, heads_off=((0, 1),)),
            TraceRequest("dog", parts=("hidden_states",), feed_forward_off=(1,), neurons=((0, 3, 2.0),)),
            TraceRequest("the cat", parts=("attention_probs",))]


def by_the_model_file(loaded, request):
    """Name -> array of one row alone, by model.py's own lines."""
    layers = []
    embeddings, _ = bert.encode(loaded.model, to_inputs(loaded, [prepare(loaded, request)]),
                                lambda _, out: layers.append(out))
    found = {name: torch.stack([getattr(out, name)[0] for out in layers]) for name in LAYERS}
    return found | {"hidden_states": torch.stack([embeddings.output[0], *(out.hidden[0] for out in layers)])}


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("kind", [kept.Kept, kept.KeptTogether, ByModel])
def test_attention_is_that_of_the_model_file(kind, together, tiny_bert, monkeypatch):
    """What a Trace gets on the CPU equals model.py's lines, each row alone, in a padded batch and without one."""
    monkeypatch.setattr(trace, "kept_of", kind)
    ours = load_model(tiny_bert, torch.float64)
    requests = mixed_batch()
    traces = run_batch(ours, requests) if together else [run_batch(ours, [request])[0] for request in requests]
    compared = 0
    for request, found in zip(requests, traces, strict=True):
        for name, want in by_the_model_file(ours, request).items():
            if request.wants(name):
                np.testing.assert_allclose(found.arrays[name], want, rtol=0, atol=1e-12, err_msg=f"{name} of {request}")
                compared += 1
    assert compared == 4 * 9 + 2
    assert (traces[3].attention_probs[:, :, 1] == 0).all()


@pytest.mark.parametrize(("rows", "words", "kind"),
                         [(4, 20, kept.KeptTogether), (3, 20, kept.Kept), (4, 60, kept.Kept)])
def test_several_short_rows_attend_together(rows, words, kind, tiny_bert):
    ours = load_model(tiny_bert)
    prepared = [prepare(ours, TraceRequest("dog " * (words if n == 0 else 2))) for n in range(rows)]
    like = next(iter(ours.model.weights.values()))
    assert type(kept.kept_of(ours.config, prepared, to_inputs(ours, prepared), like)) is kind


def test_a_row_of_several_keeps_nothing_of_the_others(tiny_bert):
    """Its arrays hold no more memory than they show: a Trace that is kept does not keep its batch."""
    texts = ["the dog barked all night", "a cat slept", "we walked home", "the cat"]
    for found in run_batch(load_model(tiny_bert), [TraceRequest(text) for text in texts]):
        for name in PARTS:
            whole = found.arrays[name]
            while isinstance(whole.base, np.ndarray):
                whole = whole.base
            assert whole.nbytes == found.arrays[name].nbytes, name


@pytest.mark.parametrize("rows", [2, 5])
@pytest.mark.parametrize("words", [5, 60])
def test_half_precision_gives_float32_arrays_near_those_of_float32(words, rows, tiny_bert):
    """Below and above the length up to which its attention runs in float32, few rows and several."""
    requests = [TraceRequest("the dog barked " * (words // 3), attention="causal", parts=PARTS),
                *[TraceRequest("a cat", parts=("attention_probs",))] * (rows - 1)]
    half, single = (run_batch(load_model(tiny_bert, dtype), requests) for dtype in (torch.bfloat16, torch.float32))
    for rough, fine in zip(half, single, strict=True):
        for name in set(fine.arrays) & set(PARTS):
            assert rough.arrays[name].dtype == np.float32
            np.testing.assert_allclose(rough.arrays[name], fine.arrays[name], rtol=0.05, atol=0.25, err_msg=name)
    assert np.abs(half[0].hidden_states - single[0].hidden_states).max() > 1e-4
    assert (half[0].attention_probs[np.isclose(single[0].attention_probs, 0, atol=0)] == 0).all()


@pytest.mark.parametrize("kind", [kept.Kept, kept.KeptTogether])
@pytest.mark.parametrize("mistake", ["swap query and key", "swap key and value", "no mask", "mix heads and tokens"])
def test_a_mistake_in_it_would_be_seen(mistake, kind, tiny_bert, monkeypatch):
    right = kind._attend
    if mistake == "no mask":
        monkeypatch.setattr(kept, "row_masks", lambda inputs, lengths, dtype: [None] * len(lengths))
        monkeypatch.setattr(kept, "batch_mask", lambda inputs, dtype: (None, None))
    monkeypatch.setattr(kind, "_attend", {
        "swap query and key": lambda self, n, q, k, v: right(self, n, k, q, v),
        "swap key and value": lambda self, n, q, k, v: right(self, n, q, v, k),
        "mix heads and tokens": lambda self, n, q, k, v: right(self, n, q, k, v).transpose(1, 2).reshape(q.shape),
    }.get(mistake, right))
    with pytest.raises(AssertionError, match="hidden_states|query|key"):
        test_attention_is_that_of_the_model_file(kind, True, tiny_bert, monkeypatch)


@pytest.mark.parametrize(("one", "other"), [("query", "key"), ("key", "value"), ("context", "attention_output")])
def test_two_parts_of_a_layer_taken_for_each_other_would_be_seen(one, other, tiny_bert, monkeypatch):
    monkeypatch.setitem(LAYER_PARTS, one, other)
    monkeypatch.setitem(LAYER_PARTS, other, one)
    with pytest.raises(AssertionError, match=f"{one}|{other}"):
        test_attention_is_that_of_the_model_file(ByModel, True, tiny_bert, monkeypatch)
