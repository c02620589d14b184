"""Fine-tuned heads of every family equal transformers', float64 to 1e-10."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bert_core.load import load_model
from bert_core.trace import TraceRequest, run_batch
from tests.core.reference import open_reference

STEMS = {"BERT": "Bert", "RoBERTa": "Roberta", "CamemBERT": "Camembert", "XLM-RoBERTa": "XLMRoberta",
         "DistilBERT": "DistilBert", "ELECTRA, discriminator": "Electra", "ALBERT": "Albert", "DeBERTa": "Deberta",
         "DeBERTa v2 and v3": "DebertaV2", "FlauBERT": "Flaubert", "ModernBERT": "ModernBert"}
HEADS = ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")
LABELS = {0: "O", 1: "B-PER", 2: "I-PER", 3: "B-LOC", 4: "I-LOC"}


@pytest.mark.parametrize("name", STEMS)
@pytest.mark.parametrize("head", HEADS)
def test_the_head_equals_transformers(name, head, family):
    simple = "Simple" if name == "FlauBERT" and head == HEADS[2] else ""
    labels = {} if head == HEADS[2] else {"id2label": LABELS}
    folder = family(name, STEMS[name] + head + simple, **labels)
    ours, theirs = load_model(folder, torch.float64), open_reference(folder)
    requests = [TraceRequest("The dog barked in Paris .", "who was it?"), TraceRequest("he")]
    for trace in (run_batch(ours, [request])[0] for request in requests):
        given = {"input_ids": torch.tensor([trace.encoding.input_ids])}
        if ours.config.type_vocab_size > 1:
            given["token_type_ids"] = torch.tensor([trace.encoding.token_type_ids])
        out = theirs(**given)
        parts = ("start_logits", "end_logits") if head == HEADS[2] else ("logits",)
        for part in parts:
            np.testing.assert_allclose(trace.arrays[part], out[part][0].detach(), rtol=0, atol=1e-10, err_msg=part)
    if head != HEADS[2]:
        assert ours.config.id2label == tuple(LABELS.values())


@pytest.mark.parametrize(("name", "architecture"), [("unknown: MPNet", "MPNetModel"), ("unknown: ERNIE", "ErnieModel")])
def test_another_familys_pooler_equals_transformers(name, architecture, family):
    folder = family(name, architecture)
    ours, theirs = load_model(folder, torch.float64), open_reference(folder)
    assert "pooled_output" not in ours.gaps
    trace = run_batch(ours, [TraceRequest("The dog barked in Paris .")])[0]
    expected = theirs(torch.tensor([trace.encoding.input_ids])).pooler_output[0].detach()
    np.testing.assert_allclose(trace.arrays["pooled_output"], expected, rtol=0, atol=1e-10)
