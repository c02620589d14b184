"""A model that reads right to left gives its arrays in reading order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from bert_core import model as bert
from bert_core import tasks
from bert_core.load import Loaded, load_model
from bert_core.serving.local import LocalEngine
from bert_core.trace import TraceRequest, prepare, run_batch

TEXT, PAIR = "the dog barked all night", "we walked"
#: Array -> its axes that run over tokens, of a causal model without another head.
TOKEN_AXES = {
    "tokens": (0,), "input_ids": (0,), "token_type_ids": (0,), "attention_mask": (0,), "token_embeddings": (0,),
    "segment_embeddings": (0,), "position_embeddings": (0,), "embedding_sum": (0,), "embedding_output": (0,),
    "query": (2,), "key": (2,), "value": (2,), "attention_scores": (2, 3), "attention_probs": (2, 3), "context": (1,),
    "attention_output": (1,), "intermediate": (1,), "hidden_states": (1,), "lm_logits": (0,),
}


@pytest.fixture(scope="module")
def both(tiny_gpt) -> tuple[Loaded, Loaded]:
    """The same weights, read left to right and right to left."""
    forward = load_model(tiny_gpt, torch.float64)
    config = replace(forward.config, reading_order="right-to-left")
    return forward, replace(forward, name="backward", model=replace(forward.model, config=config))


def reversed_run(forward: Loaded, text: str, pair: str | None):
    """Hidden states and next-token logits of the reversed pieces, by hand: [CLS], reversed, [SEP]."""
    encoding = prepare(forward, TraceRequest(text, pair)).encoding
    order = [0, *range(len(encoding) - 2, 0, -1), len(encoding) - 1]
    ids, segments = (torch.tensor([[values[n] for n in order]]) for values in
                     (encoding.input_ids, encoding.token_type_ids))
    inputs = bert.Inputs(ids, segments, torch.ones_like(ids).bool(), torch.tensor([True]))
    with torch.no_grad():
        _, hidden = bert.encode(forward.model, inputs)
        return order, hidden[0].numpy(), bert.mlm_logits(forward.model, hidden)[0].numpy()


def test_every_array_is_that_of_the_reversed_pieces_in_reading_order(both):
    """Put in the order in which the model reads, each equals the left-to-right model's on the reversed pieces."""
    forward, backward = both
    plain, longer = TraceRequest(TEXT, PAIR), TraceRequest("a longer one to pad the others with .")
    found = run_batch(backward, [plain, longer])[0]
    order, ids, segments = [0, *range(len(found) - 2, 0, -1), len(found) - 1], found.input_ids, found.token_type_ids
    turned = replace(plain, replaced=tuple((n, int(ids[m])) for n, m in enumerate(order)),
                     segments=tuple(int(segments[m]) for m in order))
    wanted = run_batch(forward, [turned])[0]
    assert set(found.arrays) == set(wanted.arrays) == set(TOKEN_AXES)
    for name, axes in TOKEN_AXES.items():
        array = found.arrays[name]
        for axis in axes:
            array = array.take(order, axis)
        if array.dtype.kind == "f":
            np.testing.assert_allclose(array, wanted.arrays[name], rtol=0, atol=1e-10, err_msg=name)
        else:
            np.testing.assert_array_equal(array, wanted.arrays[name], err_msg=name)


@pytest.mark.parametrize("pair", [None, PAIR])
def test_what_it_reads_and_predicts_is_that_of_the_reversed_pieces_by_hand(both, pair):
    forward, backward = both
    trace = run_batch(backward, [TraceRequest(TEXT, pair), TraceRequest("a longer one to pad the others with .")])[0]
    order, hidden, logits = reversed_run(forward, TEXT, pair)
    assert trace.tokens[1] == "the"
    np.testing.assert_allclose(trace.hidden_states[-1][order], hidden, rtol=0, atol=1e-10)
    np.testing.assert_allclose(trace.lm_logits[order], logits, rtol=0, atol=1e-10)


def test_a_piece_sees_only_what_stands_right_of_it(both):
    trace = run_batch(both[1], [TraceRequest(TEXT)])[0]
    inner = trace.attention_probs[:, :, 1:-1, 1:-1]
    left = np.tril(np.ones(inner.shape[-2:], dtype=bool), -1)
    assert (inner[:, :, left] == 0).all()
    assert (inner[:, :, ~left] > 0).all()
    assert (trace.attention_probs[:, :, 1:, 0] > 0).all()  # [CLS] is read first by both


def test_places_in_a_request_count_in_reading_order(both):
    plain, changed = run_batch(both[1], [TraceRequest(TEXT), TraceRequest(TEXT, masked=(2,), hidden=(5,))])
    assert changed.tokens[2] == "[MASK]"
    assert (changed.attention_probs[:, :, 4, 5] == 0).all()
    assert (plain.attention_probs[:, :, 4, 5] > 0).all()


def test_what_comes_next_is_asked_behind_a_special_that_was_typed(both):
    forward, backward = both
    engine = LocalEngine(forward.name, pack=False)
    engine.register(backward)
    for model, text, row in ((forward, f"{TEXT} [SEP]", -2), (backward, f"[SEP] {TEXT}", 1)):
        logits = engine.run(TraceRequest(text, model=model.name)).lm_logits[row]
        found = tasks.continuation(engine, text, model=model.name, top=3)
        assert [one.id for one in found] == np.argsort(-logits, kind="stable")[:3].tolist()
        assert found != tasks.continuation(engine, TEXT, model=model.name, top=3)
    engine.close()


def test_scores_and_continuations_follow_the_reading(both):
    """ln p of a piece is given by the row of what was read just before it; what follows stands to the left."""
    forward, backward = both
    engine = LocalEngine(forward.name, pack=False)
    engine.register(backward)
    order, _, logits = reversed_run(forward, TEXT, None)
    logs = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    encoding = prepare(forward, TraceRequest(TEXT)).encoding
    found = tasks.score(engine, TEXT, model="backward")
    for step, position in enumerate(order[1:-1]):
        piece = next(p for p in found.pieces if p.position == position)
        assert piece.log_probability == pytest.approx(logs[step, encoding.input_ids[position]], abs=1e-5)
    assert found.tokens == 5
    before = tasks.continuation(engine, TEXT, model="backward", top=1)[0]
    assert before.id == int(logits[len(order) - 2].argmax())
    engine.close()
