"""The layer on top of each token against transformers' own, at double precision."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bert_core.load import load_model
from bert_core.measures.token_head import token_head
from bert_core.trace import TraceRequest, run_batch
from tests.core.reference import open_reference

REQUEST = TraceRequest("the dog barked", "we walked home")


@pytest.mark.parametrize(("fixture", "head", "layer", "labels"), [
    ("tiny_ner", "token_classification", "classifier", None),
    ("tiny_qa", "question_answering", "qa_outputs", ("start", "end"))])
def test_every_operand_is_transformers_own(request, fixture, head, layer, labels):
    folder = request.getfixturevalue(fixture)
    loaded, theirs = load_model(folder, torch.float64), open_reference(folder)
    trace = run_batch(loaded, [REQUEST])[0]
    linear = getattr(theirs, layer)
    for position in (1, len(trace) - 1):
        opened = token_head(loaded, trace, head, position)
        with torch.no_grad():
            expected = linear(torch.tensor(trace.hidden_states[-1, position])).numpy()
        assert np.allclose(opened.logits, expected, atol=1e-12)
        assert np.array_equal(opened.weights, linear.weight.detach().numpy())
        assert np.allclose(opened.products, opened.weights * opened.hidden, atol=1e-15)
        names = ("logits",) if labels is None else ("start_logits", "end_logits")
        traced = np.concatenate([np.atleast_1d(trace.arrays[name][position]) for name in names])
        assert np.allclose(opened.logits, traced, atol=1e-12)
        assert opened.labels == (labels or tuple(loaded.config.id2label))


def test_a_place_that_is_not_there_says_so(tiny_ner):
    loaded = load_model(tiny_ner)
    with pytest.raises(ValueError, match="position 99"):
        token_head(loaded, run_batch(loaded, [REQUEST])[0], "token_classification", 99)
