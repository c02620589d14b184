"""The commands as a user types them: resume after a real kill, two processes as one, from scratch and from a folder."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from bert_core import precision
from bert_core.cli import main
from bert_core.load import load_model
from bert_core.training import runs
from tests.training.tiny import corpus

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "TOKENIZERS_PARALLELISM": "false"}


def arguments(folder: Path, out: str, *more: str) -> list[str]:
    return ["pretrain", "--corpus", str(corpus(folder / "corpus")), "--objective", "mlm", "--init", "scratch",
            "--out", str(folder / out), "--tokens", "6000", "--step-tokens", "200", "--vocab-size", "150",
            "--layers", "2", "--hidden", "12", "--heads", "3", "--device", "cpu", "--precision", "fp32", *more]


def curve(folder: Path) -> list[dict]:
    rows = [json.loads(line) for line in (folder / "curve.jsonl").read_text().splitlines()]
    return [{k: v for k, v in row.items() if k != "seconds"} for row in rows]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory) -> Path:
    """A finished run from random weights, its own vocabulary included."""
    folder = tmp_path_factory.mktemp("scratch")
    assert main(arguments(folder, "run")) == 0
    return folder


def same_vocabulary(scratch: Path, out: str, source: str = "run") -> None:
    """Give a new run the vocabulary of a finished one: the library breaks ties differently each time."""
    (scratch / out).mkdir()
    shutil.copyfile(scratch / source / "tokenizer.json", scratch / out / "tokenizer.json")


def test_from_scratch_to_a_model_that_loads(scratch, capsys):
    loaded = load_model(str(scratch / "run" / "model"))
    assert loaded.model.heads == {"mlm", "pooler", "nsp"}
    assert loaded.tokenizer.encode("The dog barked").tokens == ("[CLS]", "the", "dog", "barked", "[SEP]")
    assert loaded.config.hidden_size == 12
    rows = curve(scratch / "run")
    assert [row["step"] for row in rows] == list(range(1, len(rows) + 1))
    assert {"loss", "accuracy", "tokens", "lr", "grad_norm"} <= rows[0].keys()


def test_training_goes_on_from_a_finished_model_and_says_what_it_read_before(scratch):
    model = scratch / "run" / "model"
    (model / "card.json").write_text(json.dumps({"sittings": [{"tokens": 6000}]}))
    assert main([*arguments(scratch, "further"), "--objective", "clm", "--init", str(model), "--tokens", "1000"]) == 0
    loaded = load_model(str(scratch / "further" / "model"))
    assert loaded.config.is_decoder
    assert loaded.model.heads == {"lm"}
    record = json.loads((scratch / "further" / "run.json").read_text())
    assert record["random_start"] == []
    assert record["before"] == [{"tokens": 6000}]
    assert "before" not in json.loads((scratch / "run" / "run.json").read_text())


def test_a_run_killed_at_any_moment_goes_on(scratch):
    same_vocabulary(scratch, "killed")
    command = [sys.executable, "-m", "bert_core", *arguments(scratch, "killed", "--save-seconds", "0.3")]
    process = subprocess.Popen(command, env=ENVIRONMENT, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    state = scratch / "killed" / "state.safetensors"
    deadline = time.monotonic() + 240
    while not state.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert state.exists()
    assert main(arguments(scratch, "killed")) == 0
    assert curve(scratch / "killed") == curve(scratch / "run")


def run_pair(scratch: Path) -> str:
    """What two processes side by side print.

    Once more where gloo aborts on a connection that closes early (pytorch/gloo#514).
    """
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
               "-m", "bert_core", *arguments(scratch, "two", "--json")]
    for _ in range(3):
        shutil.rmtree(scratch / "two", ignore_errors=True)
        done = subprocess.run(command, env=ENVIRONMENT, cwd=ROOT, capture_output=True, text=True, timeout=240)
        if "exitcode: -6" not in done.stderr:
            break
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_two_processes_from_scratch_equal_one(scratch):
    assert json.loads(run_pair(scratch))["done"]  # said once, not by each
    assert not list((scratch / "two").glob("*.part"))
    same_vocabulary(scratch, "one", "two")
    assert main(arguments(scratch, "one")) == 0
    for one, two in zip(curve(scratch / "one"), curve(scratch / "two"), strict=True):
        assert two["loss"] == pytest.approx(one["loss"], abs=2e-4)
        assert two["predictions"] == one["predictions"]
    first, second = (load_file(scratch / run / "state.safetensors") for run in ("one", "two"))
    assert max((first[n] - second[n]).abs().max() for n in first if n.startswith("weight/")) < 2e-3


def test_only_the_first_process_learns_the_vocabulary(scratch, tmp_path, monkeypatch):
    """The others wait for its file: each learning its own would write over the one that packed the corpus."""
    others = argparse.Namespace(init="scratch", corpus=str(scratch / "corpus"), vocab_size=150, hidden=12, layers=2,
                                heads=3)
    monkeypatch.setattr(runs, "_is_first", lambda: False)
    monkeypatch.setattr(runs.corpus, "train_wordpiece", None)
    monkeypatch.setattr(runs, "wait_for_all", lambda: shutil.copy(scratch / "run" / "tokenizer.json", tmp_path))
    config, found, tokenizer = runs._start(others, tmp_path)
    assert config.vocab_size == tokenizer.get_vocab_size()
    assert found == {}


def test_errors_are_one_line(scratch, tmp_path, capsys):
    (tmp_path / "empty.txt").touch()
    latin = tmp_path / "latin"
    latin.mkdir()
    (latin / "old.txt").write_bytes("caf\u00e9\n".encode("latin-1"))
    for number, (wrong, message) in enumerate((
        (["--init", str(tmp_path / "none")], "none"),
        (["--corpus", str(tmp_path / "none")], "is no folder"),
        (["--corpus", str(tmp_path)], "no documents in the corpus"),
        (["--corpus", str(latin)], "old.txt is not UTF-8 text (byte 3)"),
        (["--out", str(tmp_path / "empty.txt")], "a file stands there"),
        (["--mix", "poems=1"], "'poems' is not in the corpus"),
        (["--objective", "poetry"], "invalid choice"),
    )):
        capsys.readouterr()
        assert main([*arguments(scratch, f"wrong{number}"), *wrong]) == 2
        out, error = capsys.readouterr()
        assert (out, error.count("\n")) == ("", 1)
        assert message in error


def test_precision_is_bf16_only_where_the_hardware_has_it_and_gains_by_it(monkeypatch):
    from bert_core.training import pretrain

    for has, faster, chosen in ((False, True, "fp32"), (True, False, "fp32"), (True, True, "bf16")):
        monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda has=has: has)
        monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
        monkeypatch.setattr(pretrain, "bf16_is_faster", lambda faster=faster: faster)
        assert pretrain.pick_precision("auto", "cpu") == chosen
    assert pretrain.pick_precision("bf16", "cpu") == "bf16"


@pytest.mark.parametrize(("slow", "faster"), [(torch.float32, True), (torch.bfloat16, False)])
def test_which_precision_is_faster_is_measured(monkeypatch, slow, faster):
    plain = precision.F.linear

    def linear(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        if x.dtype == slow:
            time.sleep(0.2)
        return plain(x, weight)

    monkeypatch.setattr(precision.F, "linear", linear)
    precision.bf16_is_faster.cache_clear()
    try:
        assert precision.bf16_is_faster() is faster
    finally:
        precision.bf16_is_faster.cache_clear()
