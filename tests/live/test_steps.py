"""Ten training steps equal transformers' own, at float64."""

import numpy as np
import pytest
import torch
from transformers import BertConfig as TheirConfig
from transformers import BertForPreTraining, BertForSequenceClassification

from bert_core.config import BertConfig
from bert_core.model import Model
from bert_core.training.live import finetuning, pairs
from bert_core.training.live.pretraining import HEADS, joint_loss
from bert_core.training.live.specs import PretrainSpec
from bert_core.training.live.text import Text, learn_vocabulary
from bert_core.training.live.world import read_world, stories
from bert_core.training.objectives import IGNORED, losses

STEPS, LR = 10, 3e-3
SIZES = dict(hidden_size=15, num_hidden_layers=3, num_attention_heads=5, intermediate_size=22,
             max_position_embeddings=64)


@pytest.fixture(scope="module")
def lesson() -> pairs.Lesson:
    told = tuple(stories(read_world(), 30, seed=1))
    return pairs.make_lesson(Text(told[:25], told[25:]), learn_vocabulary(told))


def their_model(kind, vocabulary: int, **changes):
    """Transformers' model in float64 with no dropout and a fixed random start."""
    torch.manual_seed(5)
    config = TheirConfig(vocab_size=vocabulary, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
                         attn_implementation="eager", **SIZES, **changes)
    return kind(config).double().train()


def our_weights(theirs) -> dict[str, torch.Tensor]:
    """Its weights under our names, a tied decoder left out."""
    skipped = ("cls.predictions.decoder.", "bert.embeddings.position_ids")
    return {n: t.detach().clone().requires_grad_() for n, t in theirs.state_dict().items() if not n.startswith(skipped)}


def assert_same(theirs, ours: dict[str, torch.Tensor]) -> None:
    there = theirs.state_dict()
    for name, tensor in ours.items():
        torch.testing.assert_close(tensor.detach(), there[name], rtol=0, atol=1e-8, msg=lambda m, n=name: f"{n}: {m}")


def test_pre_training_steps_equal_bert_for_pre_training(lesson):
    vocabulary = lesson.tokenizer.get_vocab_size()
    theirs = their_model(BertForPreTraining, vocabulary)
    weights = our_weights(theirs)
    model = Model(BertConfig(vocab_size=vocabulary, **SIZES), weights, HEADS)
    optimizers = [torch.optim.AdamW(p, lr=LR, weight_decay=0.01) for p in (weights.values(), theirs.parameters())]
    spec = PretrainSpec(batch=7)
    for step in range(STEPS):
        batch = pairs.to_batch(pairs.seen_at(lesson, spec, step), lesson)
        found = losses(model, batch)
        loss = joint_loss(found)
        labels = torch.full(batch.inputs.input_ids.shape, IGNORED)
        row, column = batch.chosen.nonzero(as_tuple=True)
        labels[row, batch.positions[row, column]] = batch.targets
        expected = theirs(
            input_ids=batch.inputs.input_ids, attention_mask=batch.inputs.attention_mask.long(),
            token_type_ids=batch.inputs.token_type_ids, labels=labels, next_sentence_label=batch.labels).loss
        assert loss.item() == pytest.approx(expected.item(), abs=1e-8)
        for value, optimizer in zip((loss, expected), optimizers, strict=True):
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
    assert_same(theirs, weights)


def test_fine_tuning_steps_equal_bert_for_sequence_classification():
    vocabulary, labels = 53, ("a", "b", "c")
    theirs = their_model(BertForSequenceClassification, vocabulary, num_labels=3)
    weights = our_weights(theirs)
    rng = np.random.default_rng(2)
    rows = [rng.integers(1, 40, size=rng.integers(3, 11)) for _ in range(STEPS * 6)]
    table = finetuning.Rows(np.concatenate([*rows, [0]]), vocabulary)
    full = weights[finetuning.WORD].detach().clone()
    weights[finetuning.WORD] = table.take(full).requires_grad_()
    config = BertConfig(vocab_size=vocabulary, architectures=("BertForSequenceClassification",), id2label=labels,
                        num_labels=3, **SIZES)
    model = Model(config, weights, finetuning.HEADS)
    classes = torch.from_numpy(rng.integers(0, 3, size=len(rows)))
    optimizers = [torch.optim.AdamW(p, lr=LR, weight_decay=0.0) for p in (weights.values(), theirs.parameters())]
    for step in range(STEPS):
        chosen = range(6 * step, 6 * step + 6)
        mine = finetuning.pad([table.local[rows[i]] for i in chosen], int(table.local[0]))
        loss, _ = finetuning.classifier_loss(model, mine, classes[list(chosen)])
        whole = finetuning.pad([rows[i] for i in chosen])
        expected = theirs(input_ids=whole.input_ids, attention_mask=whole.attention_mask.long(),
                          labels=classes[list(chosen)]).loss
        assert loss.item() == pytest.approx(expected.item(), abs=1e-8)
        for value, optimizer in zip((loss, expected), optimizers, strict=True):
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
    weights[finetuning.WORD] = table.put(full, weights[finetuning.WORD].detach())
    assert_same(theirs, weights)


def test_rows_that_never_occur_stay_as_they_were():
    table = finetuning.Rows(np.array([3, 5, 5, 9]), 12)
    full = torch.arange(24.0).view(12, 2)
    rows = table.take(full)
    assert rows.tolist() == [[6, 7], [10, 11], [18, 19]]
    assert table.local[[3, 9, 5]].tolist() == [0, 2, 1]
    put = table.put(full, rows + 1)
    assert put[5].tolist() == [11, 12]
    assert torch.equal(put[[0, 1, 2, 4, 6, 7, 8, 10, 11]], full[[0, 1, 2, 4, 6, 7, 8, 10, 11]])
