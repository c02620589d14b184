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
    for name in ("captions", "enwiki2015"):
        (tmp_path / "runs" / "pieces" / f"{name}.pieces").write_text(f"pieces of {name}", encoding="utf-8")
    for path, _ in lent.TASKS.values():
        file = tmp_path / "data" / "tasks" / path
        file.parent.mkdir(parents=True)
        file.write_text(_rows_of(path), encoding="utf-8")
    return tmp_path


def _rows_of(path: str) -> str:
    if path.endswith(".json"):
        article = {"title": "a", "paragraphs": [{"context": f"paragraph {n}", "qas": []} for n in range(30)]}
        return json.dumps({"version": "1.1", "data": [article, article]})
    if path.startswith("ner"):
        return "Paris\tB-LOC\n.\tO\n\n" * 4_000
    return "".join(f"row {n}\t1\n" for n in range(9_000))


def test_all_that_is_needed_there_travels_in_the_four_calls(lent, tree):
    lent.prepare(tree / "data")
    assert not list(tree.glob("assets/models/*/model.safetensors"))
    shutil.rmtree(tree / "runs" / "pieces")
    for number in "1234":
        lent.keep(tree / "runs" / "lent" / number)
    for name in lent.WAYS:
        kept = tree / "runs" / "start" / name / "model.safetensors"
        assert kept.read_text(encoding="utf-8") == f"weights of {name}"
    for name in ("captions", "enwiki2015"):
        kept = tree / "runs" / "pieces" / f"{name}.pieces"
        assert kept.read_text(encoding="utf-8") == f"pieces of {name}"
    for path, _ in lent.TASKS.values():
        assert (tree / "runs" / "tasks" / path).read_text(encoding="utf-8") == _rows_of(path)


def test_what_the_first_call_tries_is_there_with_it(lent, tree):
    lent.prepare(tree / "data")
    lent.keep(tree / "runs" / "lent" / "1")
    assert {part.split("=")[0] for part in lent.SMALL_MIX.split(",")} <= set(lent.FIRST)
    assert {part.split("=")[0] for part in lent.MIX.split(",")} >= set(lent.FIRST)
    for path, _ in lent.TASKS.values():
        sample = (tree / "runs" / "samples" / path).read_text(encoding="utf-8")
        if path.endswith(".json"):
            (article,) = json.loads(sample)["data"]
            assert len(article["paragraphs"]) == 20
        else:
            assert lent.SAMPLE - 100 < len(sample) <= lent.SAMPLE
            assert _rows_of(path).startswith(sample)
            assert sample.endswith("O\n\n" if path.startswith("ner") else "\t1\n")


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
    assert lent.tokens_for(100, {"mlm": 2e6, "clm": 1e6}) == 40_000_000  # 20 s, and twice 40


class Done:
    """A process that has ended well."""

    def wait(self) -> int:
        return 0


def test_the_way_is_the_first_that_gives_the_padded_loss(lent, tmp_path, monkeypatch):
    first_losses = {"padded": 3.0, "both-0": None, "both-1": 3.2, "one-1": 5.0, "both-2": 3.001, "one-2": 5.0}

    def trial(label, way, flags, environment, workers):
        if first_losses[label] is None:
            raise subprocess.CalledProcessError(1, label)
        speed = 1e6 if way == "clm" else 2e6
        return [{"loss": first_losses[label], "tokens": speed * n, "seconds": float(n)} for n in range(1, 5)]

    (tmp_path / "runs").mkdir()
    monkeypatch.setattr(lent, "_trial", trial)
    monkeypatch.setattr(lent, "_take_start", lambda name: None)
    monkeypatch.setattr(lent, "_start_tasks", lambda data, prefix: {"sst2": Done()})
    lent.measure(6)
    way = json.loads((tmp_path / "runs" / "lent-way.json").read_text(encoding="utf-8"))
    assert way == {"flags": lent.PADDED, "environment": {}, "speeds": {"mlm": 2e6, "clm": 1e6}}


def test_all_three_read_what_the_first_one_reckoned(lent, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(lent, "_pretrain", lambda name, way, out, flags, *rest: asked.append((name, way, flags)))
    monkeypatch.setattr(lent, "_take_start", lambda name: None)
    monkeypatch.setattr(lent, "_send", lambda *args: None)
    (tmp_path / "runs").mkdir()
    way = {"flags": lent.PADDED, "environment": {}, "speeds": {"mlm": 2e6, "clm": 1e6}}
    (tmp_path / "runs" / "lent-way.json").write_text(json.dumps(way), encoding="utf-8")
    for name, seconds in (("twin-bert", 100), ("twin-gpt", 9), ("twin-rtl", 9)):
        lent.train(name, seconds, 2, tmp_path)
    assert [(name, way) for name, way, _ in asked] == list(lent.WAYS.items())
    for _, _, flags in asked:
        assert flags == asked[0][2]
        assert flags[flags.index("--tokens") + 1] == flags[flags.index("--pack-tokens") + 1] == "40000000"


def test_the_commands_have_no_flag_that_training_does_not_know(lent):
    known = {f"--{name.replace('_', '-')}" for name in defaults("pretrain")}
    flags = [*lent.RECIPE, *lent.UNPADDED, *lent.PADDED, *lent._asked({"flags": [], "tokens": 1})]
    assert {word for word in flags if word.startswith("--")} <= known
    known = {f"--{name.replace('_', '-')}" for name in defaults("finetune")}
    assert {word for _, flags in lent.TASKS.values() for word in flags if word.startswith("--")} <= known
