"""Finished runs arrive whole where the shipped models stand, and are scored by the commands on their cards."""

from __future__ import annotations

import json
import subprocess

import numpy as np
import pytest

from tests.training.scripts import load


@pytest.fixture
def ship(tmp_path, monkeypatch):
    module = load("ship")
    (tmp_path / "shipped").mkdir()
    monkeypatch.setattr(module, "SHIPPED", tmp_path / "shipped")
    return module


@pytest.mark.parametrize("inner", ["model", "."])
def test_take_copies_weights_settings_and_curve(ship, tmp_path, inner):
    folder = tmp_path / "run" / inner
    folder.mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        (folder / name).write_text(f"{name} of the run", encoding="utf-8")
    (tmp_path / "run" / "run.json").write_text("run.json of the run", encoding="utf-8")
    (tmp_path / "run" / "curve.jsonl").write_text('{"step": 1, "loss": 2.3456789}\n', encoding="utf-8")
    ship.take(tmp_path / "run", "twin")
    arrived = {path.name: path.read_text(encoding="utf-8") for path in (ship.SHIPPED / "twin").iterdir()}
    assert arrived.pop("curve.jsonl") == '{"step": 1, "loss": 2.3457}\n'
    assert arrived == {name: f"{name} of the run" for name in ("config.json", "model.safetensors", "run.json")}


@pytest.mark.parametrize(("steps", "kept"), [(1, 1), (999, 999), (1000, 1000), (1001, 501), (3974, 994)])
def test_a_long_curve_keeps_every_so_many_steps_and_its_end(ship, steps, kept):
    lines = [json.dumps({"step": n, "lr": 1.2345678e-05}) for n in range(1, steps + 1)]
    rows = [json.loads(line) for line in ship.shortened(lines)]
    assert (len(rows), rows[-1]) == (kept, {"step": steps, "lr": 1.2346e-05})
    assert len({after["step"] - before["step"] for before, after in zip(rows, rows[1:])}) <= 1


def test_an_unfinished_run_is_not_taken(ship, tmp_path):
    (tmp_path / "run").mkdir()
    with pytest.raises(FileNotFoundError):
        ship.take(tmp_path / "run", "twin")


def test_scores_come_from_the_command_on_the_card(ship, capsys):
    card = {"scores": [{"command": "python -m bert_core nsp 'one day' 'the next' --json"}] * 2}
    (ship.SHIPPED / "twin-bert").mkdir()
    (ship.SHIPPED / "twin-bert" / "card.json").write_text(json.dumps(card), encoding="utf-8")
    ship.score(["twin-bert"])
    (line,) = capsys.readouterr().out.splitlines()
    found = json.loads(line)
    assert found["model"] == "twin-bert"
    assert found["command"] == card["scores"][0]["command"]
    assert 0 <= found["is_next"] <= 1


def test_weigh_counts_what_goes_and_what_comes(ship, tmp_path, monkeypatch):
    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=tmp_path, check=True)

    weights = tmp_path / "assets" / "models" / "twin-bert" / "model.safetensors"
    weights.parent.mkdir(parents=True)
    kept, rng = np.random.default_rng(1).bytes(200_000), np.random.default_rng(2)
    weights.write_bytes(kept + rng.bytes(100_000))
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "weights")
    monkeypatch.setattr(ship, "ROOT", tmp_path)
    assert ship.weigh() == 0
    weights.write_bytes(kept + rng.bytes(100_000))
    assert 2.5 * 100_000 < ship.weigh() < 2.7 * 100_000  # 5 characters for 4 bytes, there and back
