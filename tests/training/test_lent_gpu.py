"""What travels to a lent GPU and back arrives whole, and what is chosen there follows from what was measured."""

from __future__ import annotations

import json
import shutil
import subprocess

import numpy as np
import pytest

from bert_core.training.flags import defaults
from tests.training.scripts import load


@pytest.fixture
def lent(tmp_path, monkeypatch):
    module = load("lent_gpu")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(module, "SHIPPED", tmp_path / "assets" / "models")
    return module


@pytest.fixture
def tree(lent, tmp_path):
    """A committed tree with weights, word pieces, and training files beside it."""
    for name in lent.WAYS:
        folder = tmp_path / "assets" / "models" / name
        folder.mkdir(parents=True)
        (folder / "model.safetensors").write_text(f"weights of {name}", encoding="utf-8")
    (tmp_path / ".gitignore").write_text("/runs/\n", encoding="utf-8")
    for words in (("init", "-q"), ("add", "."), ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    (tmp_path / "runs" / "pieces").mkdir(parents=True)
    (tmp_path / "runs" / "pieces" / "stories.pieces").write_text("pieces", encoding="utf-8")
    for path, _ in lent.TASKS.values():
        file = tmp_path / "data" / "tasks" / path
        file.parent.mkdir(parents=True)
        file.write_text(f"rows of {path}", encoding="utf-8")
    return tmp_path


def test_all_that_is_needed_there_travels_in_the_four_calls(lent, tree):
    lent.prepare(tree / "data")
    assert not list(tree.glob("assets/models/*/model.safetensors"))
    shutil.rmtree(tree / "runs" / "pieces")
    for number in "1234":
        lent.keep(tree / "runs" / "lent" / number)
    for name in lent.WAYS:
        kept = tree / "runs" / "start" / name / "model.safetensors"
        assert kept.read_text(encoding="utf-8") == f"weights of {name}"
    assert (tree / "runs" / "pieces" / "stories.pieces").read_text(encoding="utf-8") == "pieces"
    for path, _ in lent.TASKS.values():
        assert (tree / "runs" / "tasks" / path).read_text(encoding="utf-8") == f"rows of {path}"


def test_weights_that_are_not_committed_stay(lent, tree):
    new = tree / "assets" / "models" / "twin-gpt" / "model.safetensors"
    new.write_text("new ones", encoding="utf-8")
    with pytest.raises(SystemExit, match="differs from the last commit"):
        lent.prepare(tree / "data")
    assert new.read_text(encoding="utf-8") == "new ones"


def test_what_is_sent_in_pieces_is_put_together(lent, tmp_path, monkeypatch):
    monkeypatch.setattr(lent, "SHARD", 10_000)
    run, out = tmp_path / "run", tmp_path / "out"
    (run / "model").mkdir(parents=True)
    out.mkdir()
    (tmp_path / "runs").mkdir()
    weights = np.random.default_rng(3).bytes(35_000)
    (run / "model" / "model.safetensors").write_bytes(weights)
    lent._send("twin-bert.tar", run, ["model/model.safetensors"], "twin-bert", out)
    sent = sorted(path.name for path in out.iterdir())
    assert sent == [f"twin-bert.tar.{number:02d}" for number in range(len(sent))]
    assert len(sent) > 3
    lent.gather(out)
    assert (tmp_path / "runs" / "back" / "twin-bert" / "model" / "model.safetensors").read_bytes() == weights


def test_speed_is_that_of_the_later_steps_and_tokens_follow_from_it(lent):
    slow_start = [{"tokens": 100.0 * n, "seconds": 60.0 + 0.5 * n} for n in range(1, 9)]
    assert lent.speed_of(slow_start) == pytest.approx(200)
    assert lent.tokens_for(100, 1_000_000) == 80_000_000
    assert lent.tokens_for(1e6, 1_000_000) == 400_000_000  # no more than is packed
    assert lent.end_of([{"loss": 9.0}] * 18 + [{"loss": 1.0}, {"loss": 2.0}]) == 1.5


def test_the_choice_takes_the_first_way_that_gives_the_padded_loss_and_the_best_rate(lent, tmp_path, monkeypatch):
    first_losses = {"padded": 3.0, "speed-0": None, "speed-1": 3.2, "speed-2": 3.001}

    def trial(label, flags, environment, workers):
        if first_losses[label] is None:
            raise subprocess.CalledProcessError(1, label)
        return [{"loss": first_losses[label], "tokens": 1e6 * n, "seconds": float(n)} for n in range(1, 5)]

    class Done:
        def wait(self) -> int:
            return 0

    monkeypatch.setattr(lent, "_trial", trial)
    monkeypatch.setattr(lent, "_pretrain", lambda *args, **more: Done())
    ends = {f"lent-rate-{rate}": loss for rate, loss in zip(lent.RATES, (2.6, 2.4, 2.5), strict=True)}
    monkeypatch.setattr(lent, "_curve", lambda run: [{"loss": ends[run.name]}])
    chosen = lent.choose(100, 6)
    assert chosen["flags"] == lent.PADDED
    assert chosen["rate"] == lent.RATES[1]
    assert chosen["tokens"] == 80_000_000
    assert json.loads(json.dumps(chosen))["environment"] == {}


def test_the_commands_have_no_flag_that_training_does_not_know(lent):
    known = {f"--{name.replace('_', '-')}" for name in defaults("pretrain")}
    flags = [*lent.RECIPE, *lent.UNPADDED, *lent.PADDED]
    assert {word for word in flags if word.startswith("--")} <= known
    known = {f"--{name.replace('_', '-')}" for name in defaults("finetune")}
    assert {word for _, flags in lent.TASKS.values() for word in flags if word.startswith("--")} <= known
