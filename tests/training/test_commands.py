"""The commands as a user types them: resume after a real kill, two processes as one, from scratch and from a folder."""

from __future__ import annotations

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

from bert_core.load import load_model
from bert_core.training.commands import main
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
    main(arguments(folder, "run"))
    return folder


def same_vocabulary(scratch: Path, out: str) -> None:
    """Give a new run the vocabulary of the finished one: the library breaks ties differently each time."""
    (scratch / out).mkdir()
    shutil.copyfile(scratch / "run" / "tokenizer.json", scratch / out / "tokenizer.json")


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
    main([*arguments(scratch, "further"), "--objective", "clm", "--init", str(model), "--tokens", "1000"])
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
    main(arguments(scratch, "killed"))
    assert curve(scratch / "killed") == curve(scratch / "run")


def run_pair(scratch: Path) -> None:
    """Two processes side by side; once more where gloo aborts on a connection that closes early (pytorch/gloo#514)."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
               "-m", "bert_core", *arguments(scratch, "two")]
    for _ in range(3):
        shutil.rmtree(scratch / "two", ignore_errors=True)
        same_vocabulary(scratch, "two")
        done = subprocess.run(command, env=ENVIRONMENT, cwd=ROOT, capture_output=True, text=True, timeout=240)
        if "exitcode: -6" not in done.stderr:
            break
    assert done.returncode == 0, done.stderr


def test_two_processes_equal_one(scratch):
    run_pair(scratch)
    for one, two in zip(curve(scratch / "run"), curve(scratch / "two"), strict=True):
        assert two["loss"] == pytest.approx(one["loss"], abs=2e-4)
        assert two["predictions"] == one["predictions"]
    first, second = (load_file(scratch / run / "state.safetensors") for run in ("run", "two"))
    assert max((first[n] - second[n]).abs().max() for n in first if n.startswith("weight/")) < 2e-3


def test_errors_are_one_line(scratch, tmp_path):
    for wrong, message in (
        (["--init", str(tmp_path / "none")], "none"),
        (["--corpus", str(tmp_path / "none")], "is no folder"),
        (["--mix", "poems=1"], "'poems' is not in the corpus"),
    ):
        with pytest.raises(ValueError, match=message):
            main([*arguments(scratch, f"wrong{wrong[0]}"), *wrong])
    with pytest.raises(ValueError, match="invalid choice"):
        main([*arguments(scratch, "run"), "--objective", "poetry"])


def test_precision_is_bf16_only_where_the_hardware_has_it(monkeypatch):
    from bert_core.training.pretrain import pick_precision

    for has, chosen in ((False, "fp32"), (True, "bf16")):
        monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda has=has: has)
        monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
        assert pick_precision("auto", "cpu") == chosen
    assert pick_precision("bf16", "cpu") == "bf16"
