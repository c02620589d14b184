"""The loop: equal to transformers step by step, equal after a kill, learning at all."""

import json

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from bert_core import model as core
from bert_core.training import block, pretrain
from bert_core.training.block import hidden_at
from bert_core.training.objectives import IGNORED, OBJECTIVES, Sample, SummedLoss, losses
from bert_core.training.optim import StackedMuon, adamw, clip_gradients, learning_rate_factor
from tests.training.tiny import CONFIG, objective, packed, trainer

STEPS_TO_SEE = 10


def peer(run):
    """transformers' model with the run's weights."""
    import transformers

    names = {k: v for k, v in CONFIG.to_dict().items() if k not in ("reading_order", "architectures")}
    config = transformers.BertConfig(**{**names, "is_decoder": run.objective.kind != "mlm"}, hidden_dropout_prob=0.0,
                                     attention_probs_dropout_prob=0.0, attn_implementation="eager")
    kind = transformers.BertForPreTraining if run.objective.kind == "mlm" else transformers.BertLMHeadModel
    model = kind(config).double()
    missing, unexpected = model.load_state_dict({n: w.detach() for n, w in run.weights.items()}, strict=False)
    assert all("decoder" in name or "position_ids" in name for name in missing)
    assert not unexpected
    model.tie_weights()
    return model.train()


def peer_loss(model, batch):
    """The paper's loss by transformers' own forward: mean over pieces plus mean over pairs."""
    labels = torch.full(batch.inputs.input_ids.shape, IGNORED)
    rows = torch.arange(len(labels))[:, None].expand_as(batch.positions)
    labels[rows[batch.chosen], batch.positions[batch.chosen]] = batch.targets
    out = model(input_ids=batch.inputs.input_ids, token_type_ids=batch.inputs.token_type_ids,
                attention_mask=batch.inputs.attention_mask.long())
    logits = out.prediction_logits if hasattr(out, "prediction_logits") else out.logits
    loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED)
    if hasattr(out, "seq_relationship_logits") and (batch.labels != IGNORED).any():
        loss = loss + F.cross_entropy(out.seq_relationship_logits, batch.labels,
                                                        ignore_index=IGNORED)
    return loss


@pytest.mark.parametrize("kind", ["mlm", "clm"])
def test_ten_steps_equal_transformers_at_float64(kind):
    run = trainer(kind, torch.float64)
    model = peer(run)
    parameters = dict(model.named_parameters())
    optimizer = adamw(parameters, run.recipe.lr, run.recipe.head_lr, run.recipe.weight_decay)
    warmup, decay = int(run.recipe.warmup * run.steps), int(run.recipe.decay * run.steps)
    for step in range(STEPS_TO_SEE):
        samples = [run.objective.sample(run.packed[i]) for i in run.plan[step]]
        pretrain.set_learning_rate(optimizer, learning_rate_factor(step, run.steps, warmup, decay))
        loss = peer_loss(model, run.objective.collate(samples))
        loss.backward()
        clip_gradients(parameters, run.recipe.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        row = run.train_step()
        assert row["loss"] + row.get("nsp_loss", 0.0) == pytest.approx(loss.item(), abs=1e-8)
        worst = max((parameters[n] - w).abs().max().item() for n, w in run.weights.items())
        assert worst < 1e-8, f"step {step}"


@pytest.mark.parametrize("kind", OBJECTIVES)
def test_hidden_states_at_chosen_positions_equal_the_whole_pass(kind):
    run = trainer(kind, torch.float64)
    batch = run.objective.collate([run.objective.sample(run.packed[i]) for i in range(7)])
    _, hidden = core.encode(run.model, batch.inputs)
    whole = hidden.gather(1, batch.positions[..., None].expand(-1, -1, hidden.shape[-1]))
    assert (hidden_at(run.model, batch.inputs, batch.positions) - whole).abs().max() < 1e-12
    assert (block.encode(run.model, batch.inputs) - hidden).abs().max() < 1e-12


@pytest.mark.parametrize(("dtype", "near"), [(torch.float64, 1e-12), (torch.bfloat16, 4e-3)])
def test_the_summed_loss_is_the_cross_entropy(dtype, near):
    draw = torch.Generator().manual_seed(5)
    logits = (torch.randn(13, 29, generator=draw, dtype=torch.float64) * 60).to(dtype).requires_grad_()
    targets = torch.randint(29, (13,), generator=draw)  # some of them e^-150 likely
    loss, right = SummedLoss.apply(logits, targets)
    (3 * loss).backward()
    peer = logits.detach().double().requires_grad_()
    expected = F.cross_entropy(peer, targets, reduction="sum")
    (3 * expected).backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6 if dtype is torch.bfloat16 else 1e-14)
    assert (logits.grad.double() - peer.grad).abs().max() < 3 * near
    assert right.tolist() == (peer.argmax(-1) == targets).tolist()


def test_micro_batches_pad_little_and_lose_nothing():
    lengths = [512, 128, 127, 126, 125, 124, 123, 122, 121, 120, 40, 38, 13, 12, 12]
    samples = [Sample(np.zeros(n), np.zeros(n), np.zeros(0), np.zeros(0), 0) for n in lengths]
    batches = list(pretrain.micro_batches(samples, 1024))
    assert sorted((len(s.input_ids) for b in batches for s in b), reverse=True) == lengths
    padded = [len(b) * max(len(s.input_ids) for s in b) for b in batches]
    assert max(padded) <= 1024
    assert sum(padded) < 1.06 * sum(lengths)  # taking what fits, longest first, pads by 1.29
    assert [len(b) for b in pretrain.micro_batches(samples[:1], 100)] == [1]  # longer than a batch: alone
    assert list(pretrain.micro_batches([], 100)) == []


def test_micro_batches_change_nothing():
    one, many = trainer(dtype=torch.float64, micro_tokens=10_000), trainer(dtype=torch.float64, micro_tokens=40)
    for _ in range(3):
        one.train_step()
        many.train_step()
    assert all((one.weights[n] - many.weights[n]).abs().max() < 1e-8 for n in one.weights)


def curve(folder):
    rows = [json.loads(line) for line in (folder / "curve.jsonl").read_text().splitlines()]
    return [{k: v for k, v in row.items() if k != "seconds"} for row in rows]


@pytest.mark.parametrize("kind", ["mlm", "rtl"])
def test_steps_prepared_by_other_processes_are_the_same(tmp_path, kind):
    alone, helped = trainer(kind), trainer(kind)
    helped.workers = 2
    for _ in range(3):
        first, second = alone.train_step(), helped.train_step()
        assert {**first, "seconds": 0} == {**second, "seconds": 0}
    alone.save(tmp_path)
    assert helped.train_step()["step"] == 4
    assert helped.restore(tmp_path)  # what was on its way is of no use any more
    first, second = alone.train_step(), helped.train_step()
    assert {**first, "seconds": 0} == {**second, "seconds": 0}


@pytest.mark.parametrize(("kind", "optimizer"), [*((kind, "adamw") for kind in OBJECTIVES), ("mlm", "muon")])
def test_a_killed_run_goes_on_as_if_unbroken(tmp_path, kind, optimizer):
    unbroken, broken = tmp_path / "unbroken", tmp_path / "broken"
    unbroken.mkdir(), broken.mkdir()
    whole = trainer(kind, optimizer=optimizer)
    assert pretrain.run(whole, unbroken)

    killed = trainer(kind, optimizer=optimizer)
    with (broken / "curve.jsonl").open("w") as file:
        for step in range(9):
            file.write(json.dumps(killed.train_step()) + "\n")
            if step == 5:
                killed.save(broken)
        file.write('{"step": 10, "lo')  # the kill fell into a line
    (broken / "state.safetensors.part").write_bytes(b"half a checkpoint")
    del killed

    resumed = trainer(kind, optimizer=optimizer)
    assert pretrain.run(resumed, broken)
    assert curve(broken) == curve(unbroken)
    assert all(torch.equal(resumed.weights[n], whole.weights[n]) for n in whole.weights)


@pytest.fixture
def second(monkeypatch):
    """second() -> the second of two processes, whose first one says to stop at once."""
    monkeypatch.setattr(pretrain.dist, "all_reduce", lambda tensor, **_: None)
    monkeypatch.setattr(pretrain.dist, "broadcast", lambda tensor, src: tensor.fill_(1))

    def make():
        run = trainer()
        run.rank, run.processes = 1, 2
        return run

    return make


def test_all_processes_stop_when_the_first_one_does(tmp_path, second):
    run = second()
    assert not pretrain.run(run, tmp_path, stop_after=1e9)
    assert run.step == 1


def test_only_the_first_process_writes_the_curve(tmp_path, second):
    (tmp_path / "curve.jsonl").write_text('{"step": 1}\n{"step": 2}\n')  # the first one has not cut it yet
    pretrain.run(second(), tmp_path, stop_after=0)
    assert (tmp_path / "curve.jsonl").read_text() == '{"step": 1}\n{"step": 2}\n'
    assert [path.name for path in tmp_path.iterdir()] == ["curve.jsonl"]


def test_muon_takes_every_matrix_of_the_layers_and_moves_it_as_far_as_adamw_would():
    run = trainer(optimizer="muon")
    first, rest = run.optimizer.parts
    matrices = [w for n, w in run.weights.items() if n.startswith("bert.encoder.") and w.dim() == 2]
    assert [id(w) for w in first.param_groups[0]["params"]] == [id(w) for w in matrices]
    assert sum(len(g["params"]) for part in (first, rest) for g in part.param_groups) == len(run.weights)
    before = [w.detach().clone() for w in matrices]
    rate = run.train_step()["lr"]
    for old, new in zip(before, matrices, strict=True):
        moved = (new - old).square().mean().sqrt().item()
        assert 0.1 * rate < moved < 0.3 * rate  # 0.2 for an exactly orthogonal update


def test_muon_with_matrices_of_one_shape_together_is_torch_s():
    draw = torch.Generator().manual_seed(4)
    shapes = [(24, 24), (24, 60), (24, 24), (60, 24), (24, 60), (24, 24)]
    ours, theirs = ([torch.randn(s, generator=g).requires_grad_() for s in shapes]
                    for g in (torch.Generator().manual_seed(6) for _ in range(2)))
    flags = {"lr": 0.02, "weight_decay": 0.1}
    stacked, alone = StackedMuon(ours, **flags), torch.optim.Muon(theirs, **flags, adjust_lr_fn="match_rms_adamw")
    before = [w.detach().clone() for w in ours]
    for _ in range(4):
        for one, other in zip(ours, theirs, strict=True):
            one.grad = torch.randn(one.shape, generator=draw)
            other.grad = one.grad.clone()
        ours[2].grad = theirs[2].grad = None  # nobody asked for it
        stacked.step()
        alone.step()
    assert torch.equal(ours[2], before[2])
    for one, other, old in zip(ours, theirs, before, strict=True):
        assert (one - other).norm() <= 0.02 * (other - old).norm()  # rounding of bf16, in another order
    assert all(stacked.state[w].keys() == {"momentum_buffer"} for n, w in enumerate(ours) if n != 2)


def test_training_learns():
    run = trainer("clm", tokens=2500)
    rows = [run.train_step() for _ in range(run.steps)]
    first, last = (sum(row["loss"] for row in part) / len(part) for part in (rows[:4], rows[-4:]))
    assert last < first - 0.5
    assert rows[-1]["step"] == run.steps


def test_frozen_words_stay_bit_for_bit_and_all_else_learns(tmp_path):
    run = trainer(freeze_words=True)
    before = {name: weight.detach().clone() for name, weight in run.weights.items()}
    for _ in range(3):
        run.train_step()
    stayed = {name for name, weight in run.weights.items() if torch.equal(weight, before[name])}
    assert stayed == {pretrain.WORDS}
    run.save(tmp_path)
    resumed = trainer(freeze_words=True)
    assert resumed.restore(tmp_path)
    assert run.train_step()["loss"] == resumed.train_step()["loss"]


def test_fewer_tokens_are_a_prefix_of_the_same_plan():
    data = packed()
    whole, part = pretrain.steps_of(data, 120), pretrain.steps_of(data, 120, 1000)
    assert part == whole[: len(part)]
    assert data.offsets[part[-1].stop] >= 1000 > data.offsets[part[-2].stop]


def test_learning_rate_rises_stays_and_falls():
    rates = [learning_rate_factor(step, 100, 10, 40) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert set(rates[10:60]) == {1.0}
    assert rates[-1] == pytest.approx(1 / 40)
    assert rates[60:] == sorted(rates[60:], reverse=True)


def test_divergence_is_said():
    weight = torch.ones(3, requires_grad=True)
    (weight * float("nan")).sum().backward()
    with pytest.raises(ValueError, match="lower the learning rate"):
        clip_gradients({"w": weight}, 1.0)


def test_loss_counts_only_the_chosen():
    run = trainer()
    samples = [objective().sample(run.packed[i]) for i in range(4)]
    batch = objective().collate(samples)
    found = losses(run.model, batch)
    assert found.tokens == sum(len(s.targets) for s in samples) == int(batch.chosen.sum())
    assert found.pairs == sum(s.label >= 0 for s in samples)


def test_a_weight_that_no_process_reached_gets_no_gradient(second):
    trainer = second()
    trainer._share([0.0] * 6)
    assert all(weight.grad is None for weight in trainer.weights.values())  # with zeros AdamW would shrink it
