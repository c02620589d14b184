"""A run that is told to stop has saved its last step, and goes on as if it had never stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bert_core.cli import main
from bert_core.training import stopping
from bert_core.training.pretrain import Trainer, open_state
from tests.training.tiny import corpus

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _as_in_a_terminal():
    """Ctrl-C interrupts, also where these tests run in the background of a shell, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def command(tmp_path) -> list[str]:
    """A run of some steps, less where it goes; all of them read one file of pairs."""
    return ["pretrain", "--corpus", str(corpus(tmp_path / "corpus")), "--objective", "clm", "--init", "scratch",
            "--tokens", "2000", "--step-tokens", "200", "--vocab-size", "150", "--layers", "1", "--hidden", "12",
            "--heads", "3", "--device", "cpu", "--seed", "4", "--precision", "fp32",
            "--packed", str(tmp_path / "pairs.npz"), "--out"]


def test_ctrl_c_is_obeyed_behind_the_step_and_costs_nothing(command, tmp_path, monkeypatch, capsys):
    train_step = Trainer.train_step

    def with_a_signal(self) -> dict[str, float]:
        if self.step == 2:
            signal.raise_signal(signal.SIGINT)
        return train_step(self)

    handlers = [signal.getsignal(number) for number in stopping.SIGNALS]
    run, unbroken = tmp_path / "run", tmp_path / "unbroken"
    with monkeypatch.context() as during:
        during.setattr(Trainer, "train_step", with_a_signal)
        assert main([*command, str(run)]) == 130
    assert "stopped after step 3 of" in capsys.readouterr().err
    with open_state(run) as state:
        assert state.metadata()["step"] == "3"
    assert [signal.getsignal(number) for number in stopping.SIGNALS] == handlers
    assert main([*command, str(run)]) == main([*command, str(unbroken)]) == 0
    models = [(folder / "model" / "model.safetensors").read_bytes() for folder in (run, unbroken)]
    assert models[0] == models[1]


def test_a_second_signal_is_obeyed_at_once():
    with pytest.raises(KeyboardInterrupt), stopping.behind_a_step() as is_told:  # noqa: PT012
        signal.raise_signal(signal.SIGINT)
        assert is_told()
        signal.raise_signal(signal.SIGINT)
        pytest.fail("the second was not obeyed")


def test_a_job_that_ignores_ctrl_c_goes_on():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with stopping.behind_a_step() as is_told:
        signal.raise_signal(signal.SIGINT)
        assert not is_told()


def test_a_service_that_is_told_to_end_leaves_a_checkpoint(command, tmp_path):
    run = tmp_path / "run"
    long = [*(value if value != "2000" else "60000" for value in command), str(run)]
    process = subprocess.Popen([sys.executable, "-m", "bert_core", *long], cwd=ROOT, stderr=subprocess.PIPE, text=True,
                               stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
    end = time.monotonic() + 200
    while time.monotonic() < end and not ((run / "curve.jsonl").is_file() and (run / "curve.jsonl").stat().st_size):
        time.sleep(0.05)
    process.terminate()
    _, said = process.communicate(timeout=200)
    assert process.returncode == -signal.SIGTERM, said
    with open_state(run) as state:
        assert f"stopped after step {state.metadata()['step']} of" in said
