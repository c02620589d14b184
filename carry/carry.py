"""Carry the weights of an unfinished run of the twins from one machine to the next.

    python carry/carry.py pack            # runs/TWIN-9/model -> carry/TWIN.npz
    python carry/carry.py unpack FOLDER   # carry/TWIN.npz    -> FOLDER/TWIN, for pretrain --init FOLDER/TWIN

What is kept is the difference to the shipped twin of this commit: matrices in
int8 with one scale a row, vectors in float32. Optimisers start anew.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bert_core.training.cards import card  # noqa: E402

TWINS = ("twin-bert", "twin-gpt", "twin-rtl")
SHIPPED, HERE = ROOT / "assets" / "models", Path(__file__).resolve().parent
HARDWARE = "2 cores of an AMD EPYC (AVX-512, bf16), shared with other work, one thread"


def weights(folder: Path) -> dict[str, np.ndarray]:
    return {n: a.astype(np.float32) for n, a in load_file(folder / "model.safetensors").items()}


def pack(name: str) -> None:
    run = ROOT / "runs" / f"{name}-9"
    before, now, kept = weights(SHIPPED / name), weights(run / "model"), {}
    assert before.keys() == now.keys()
    for key, value in now.items():
        change = value - before[key]
        if not change.any():
            continue
        if change.ndim == 1:
            kept[f"vector/{key}"] = change
            continue
        scale = np.abs(change).max(axis=1, keepdims=True) / 127 + 1e-30
        kept[f"scale/{key}"], kept[f"int8/{key}"] = scale, np.rint(change / scale).astype(np.int8)
    np.savez_compressed(HERE / f"{name}.npz", **kept)
    shutil.copyfile(run / "run.json", HERE / f"{name}.run.json")


def unpack(name: str, folder: Path) -> None:
    found, kept = weights(SHIPPED / name), np.load(HERE / f"{name}.npz")
    for key in kept.files:
        kind, _, tensor = key.partition("/")
        if kind == "vector":
            found[tensor] = found[tensor] + kept[key]
        elif kind == "int8":
            found[tensor] = found[tensor] + kept[key].astype(np.float32) * kept[f"scale/{tensor}"]
    folder.mkdir(parents=True, exist_ok=True)
    save_file({n: np.ascontiguousarray(a) for n, a in found.items()}, folder / "model.safetensors", metadata={"format": "pt"})
    shutil.copyfile(SHIPPED / name / "config.json", folder / "config.json")
    shutil.copyfile(SHIPPED / "tokenizer.json", folder / "tokenizer.json")
    run = json.loads((HERE / f"{name}.run.json").read_text(encoding="utf-8"))
    made = card(name, run, [], HARDWARE)
    (folder / "card.json").write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for twin in TWINS:
        if sys.argv[1] == "pack":
            pack(twin)
        else:
            unpack(twin, Path(sys.argv[2]) / twin)
