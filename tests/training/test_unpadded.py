"""Rows without padding: the same losses and gradients as padded batches, each sequence by itself."""

import dataclasses

import numpy as np
import pytest
import torch

from bert_core.training import unpadded
from bert_core.training.objectives import OBJECTIVES, SummedLoss, losses
from bert_core.training.pretrain import WORDS
from bert_core.training.runs import _check_flags
from bert_core.training.unpadded import attended, by_kernel, join, room_for, rows_of, summed_loss
from tests.training.tiny import CONFIG, objective, packed, trainer


def samples(kind: str = "mlm", count: int = 9):
    made = objective(kind)
    return [made.sample(packed()[i]) for i in range(count)]


def row_of(found, kind: str = "mlm", more: int = 100):
    longest = packed().longest
    return join(found, sum(len(s.input_ids) for s in found) + more, longest, 0, kind != "mlm")


@pytest.mark.parametrize("kind", OBJECTIVES)
def test_a_row_gives_the_losses_and_gradients_of_a_padded_batch(kind):
    run, found = trainer(kind, torch.float64), samples(kind)
    by_way = []
    for done in (losses(run.model, run.objective.collate(found)), unpadded.losses(run.model, row_of(found, kind))):
        (done.token + 3 * done.nsp).backward()
        by_way.append((done, {name: weight.grad.clone() for name, weight in run.weights.items()
                              if weight.grad is not None}))
        run.optimizer.zero_grad()
    (padded, its), (rows, own) = by_way
    assert rows.token.item() == pytest.approx(padded.token.item(), rel=1e-12)
    assert rows.nsp.item() == pytest.approx(padded.nsp.item(), rel=1e-12)
    assert rows[1:3] == padded[1:3]
    assert rows[4:] == padded[4:]
    assert padded.tokens > 9
    assert own.keys() == its.keys()
    assert max((own[name] - its[name]).abs().max().item() for name in its) < 1e-10


@pytest.mark.parametrize("kind", OBJECTIVES)
def test_a_run_in_rows_is_the_run_in_batches(kind):
    padded, rows = trainer(kind, torch.float64), trainer(kind, torch.float64, unpadded=True)
    for _ in range(4):
        one, other = padded.train_step(), rows.train_step()
        assert other.pop("seconds") >= 0
        one.pop("seconds")
        assert other == pytest.approx(one, rel=1e-9)
    worst = max((padded.weights[name] - weight).abs().max().item() for name, weight in rows.weights.items())
    assert worst < 1e-8


def test_rows_have_one_shape_and_hold_every_sequence_once():
    found = samples(count=30)
    parts = list(rows_of(found, 100))
    assert [s for part in parts for s in part] == found
    pieces = [sum(len(s.input_ids) for s in part) for part in parts]
    room = room_for(100, packed().longest)
    assert all(100 <= count <= room for count in pieces[:-1])
    rows = [join(part, room, packed().longest, 0, False) for part in parts]
    assert {row.inputs.input_ids.shape for row in rows} == {(1, room)}
    assert len(rows) > 3


def test_what_fills_a_row_up_is_cut_into_sequences_and_asked_nothing():
    found = samples(count=3)
    row = row_of(found, more=100)
    lengths = np.diff(row.ends.numpy())
    assert lengths[:3].tolist() == [len(s.input_ids) for s in found]
    assert lengths.max() <= row.longest == packed().longest
    assert row.ends[-1] == row.inputs.input_ids.shape[1]
    assert row.inputs.position_ids.max() < row.longest
    filled = row.ends[3]
    assert row.inputs.input_ids[0, filled:].eq(0).all()
    assert row.asked.max() < filled


def test_sequences_of_a_row_do_not_see_each_other():
    run, found = trainer("mlm", torch.float64), samples(count=4)
    other = dataclasses.replace(run.objective, seed=9)
    for neighbours in (found[1:], [other.sample(packed()[i]) for i in (20, 21)]):
        row = row_of([found[0], *neighbours])
        hidden, _ = unpadded._before_last_context(run.model, row.inputs, row.ends, row.longest, False)
        alone = row_of(found[:1])
        expected, _ = unpadded._before_last_context(run.model, alone.inputs, alone.ends, alone.longest, False)
        size = len(found[0].input_ids)
        assert (hidden[0, :size] - expected[0, :size]).abs().max() < 1e-12


def test_all_tensors_of_a_row_move_to_the_device_and_nothing_else_changes():
    row = row_of(samples(count=3))
    there = row.to("meta")
    tensors = [part for part in (*row.inputs, *row) if isinstance(part, torch.Tensor)]
    also = [part for part in (*there.inputs, *there) if isinstance(part, torch.Tensor)]
    assert [part.shape for part in also] == [part.shape for part in tensors]
    assert {part.device.type for part in also} == {"meta"}
    assert (there.longest, there.causal, there.inputs.blocked) == (row.longest, row.causal, None)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_softmax_within_each_sequence(causal):
    generator = torch.Generator().manual_seed(4)
    query, key, value = (torch.randn(11, 2, 4, generator=generator, dtype=torch.float64) for _ in range(3))
    ends = torch.tensor([0, 4, 5, 11], dtype=torch.int32)
    got = attended(query, key, value, ends, 6, causal)
    for start, end in ((0, 4), (4, 5), (5, 11)):
        for head in range(2):
            scores = query[start:end, head] @ key[start:end, head].T / 2
            if causal:
                scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
            assert (got[start:end, head] - scores.softmax(-1) @ value[start:end, head]).abs().max() < 1e-12


@pytest.mark.parametrize("causal", [False, True])
def test_the_kernel_of_a_gpu_takes_what_it_is_given(causal):
    """Shapes only, as torch knows them without a GPU: a torch that calls its kernel otherwise is noticed here."""
    parts = [torch.empty(11, 12, 32, device="meta", dtype=torch.bfloat16, requires_grad=True) for _ in range(3)]
    got = by_kernel(*parts, torch.empty(4, device="meta", dtype=torch.int32), 6, causal)
    got.float().sum().backward()
    assert (got.shape, got.dtype) == (parts[0].shape, torch.bfloat16)
    assert all(part.grad.shape == part.shape for part in parts)


@pytest.mark.parametrize(("dtype", "near"), [(torch.float64, 1e-12), (torch.bfloat16, 2e-3)])
def test_the_loss_that_a_gpu_compiles_is_the_summed_loss(dtype, near):
    generator = torch.Generator().manual_seed(6)
    logits = torch.randn(37, 90, generator=generator, dtype=torch.float64).to(dtype)
    targets = torch.randint(90, (37,), generator=generator)
    targets[:5] = logits[:5].argmax(-1)
    found = []
    for way in (SummedLoss.apply, summed_loss):
        given = logits.clone().requires_grad_()
        loss, right = way(given, targets)
        (loss / 37).backward()
        found.append((loss.item(), right.tolist(), given.grad))
    (loss, right, gradient), (other, also_right, its) = found
    assert other == pytest.approx(loss, rel=1e-6 if dtype is torch.bfloat16 else 1e-12)
    assert right == also_right
    assert sum(right) >= 5
    assert (gradient - its).abs().max() < near


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_only_the_words_packed_most_often_learn(optimizer):
    run = trainer(optimizer=optimizer, learn_words=20, weight_decay=0.5)
    before = run.weights[WORDS].detach().clone()
    for _ in range(3):
        run.train_step()
    counts = np.bincount(run.packed.ids, minlength=CONFIG.vocab_size)
    moved = (run.weights[WORDS].detach() != before).any(1)
    assert int(moved.sum()) == 20
    assert counts[moved.numpy()].min() >= counts[~moved.numpy()].max()


@pytest.mark.parametrize(("flags", "device", "said"), [
    ({"freeze_words": True, "learn_words": 9}, "cpu", "contradict each other"),
    ({"unpadded": True, "precision": "fp32"}, "cuda", "needs --precision bf16"),
])
def test_flags_that_contradict_each_other_are_refused(flags, device, said):
    plain = {"freeze_words": False, "learn_words": None, "unpadded": False, "precision": "bf16"}
    _check_flags(plain, device)
    with pytest.raises(ValueError, match=said):
        _check_flags({**plain, **flags}, device)


def test_learning_every_word_is_learning_without_a_bound():
    bound, free = trainer(learn_words=CONFIG.vocab_size), trainer()
    for _ in range(3):
        bound.train_step()
        free.train_step()
    assert all(torch.equal(weight, free.weights[name]) for name, weight in bound.weights.items())
