r"""Train the twins and the tasks on a GPU that is lent for minutes, by a tool that takes 64 MiB a call.

Here, before a machine is asked for:

    python -m bert_core pieces --corpus ../shared/data/pretrain --out runs/pieces \
        --limit enwiki2015=42000000,imdb_reviews_half=4000000,english_novels=3000000
    python scripts/lent_gpu.py prepare --data ../shared/data

Then four calls of the tool, `--seconds` by what is left, each with the folder that it names in `carry`:

    python3 scripts/lent_gpu.py keep runs/lent/1
    python3 scripts/lent_gpu.py keep runs/lent/2 && python3 scripts/lent_gpu.py train twin-bert --seconds 140 --to $OUT
    python3 scripts/lent_gpu.py keep runs/lent/3 && python3 scripts/lent_gpu.py train twin-gpt --to $OUT
    python3 scripts/lent_gpu.py keep runs/lent/4 && python3 scripts/lent_gpu.py train twin-rtl --to $OUT &&
        python3 scripts/lent_gpu.py tune --to $OUT

and here, after each of the last three, with the folder in which the files came back:

    python scripts/lent_gpu.py gather FILES_AT

`train twin-bert` tries first: whether rows without padding give the loss of
padded batches there, compiled or not, how fast they are, and which rate is
best. What it chooses, all three train with. `git checkout assets/models`
brings the weights back that `prepare` takes out of what travels. Time that is
left at the end of the last call is for `python3 -m bench trace`.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RUNS, SHIPPED = ROOT / "runs", ROOT / "assets" / "models"
WAYS = {"twin-bert": "mlm", "twin-gpt": "clm", "twin-rtl": "rtl"}
MIX = ("enwiki2015=0.70,captions=0.06,tatoeba_english=0.09,storybooks=0.035,onestop_english=0.035,"
       "fairy_tales_grimm=0.01,wikinews=0.03,imdb_reviews_half=0.025,english_novels=0.015")
RECIPE = ["--corpus", "runs/pieces", "--packed", "runs/lent.npz", "--pack-tokens", "400000000", "--mix", MIX,
          "--seed", "16", "--loss-fraction", "0.3333", "--optimizer", "muon", "--warmup", "0.02", "--decay", "0.9",
          "--nsp-weight", "1", "--learn-words", "10000", "--precision", "bf16", "--save-seconds", "100000"]
STEP = 65536
#: What is tried in turn: flags, and what the environment is told.
UNPADDED = ["--step-tokens", str(STEP), "--micro-tokens", str(STEP), "--unpadded"]
PADDED = ["--step-tokens", str(STEP), "--micro-tokens", str(STEP // 2)]
ATTEMPTS: Sequence[tuple[Sequence[str], Mapping[str, str]]] = (
    (UNPADDED, {}), (UNPADDED, {"TORCHDYNAMO_DISABLE": "1"}), (PADDED, {}))
#: Nats by which the first step's loss may differ between two ways of computing it in half precision.
ALIKE = 0.02
RATES = (5e-4, 1e-3, 2e-3)
#: A head's rate by the encoder's.
HEAD = 1.5
#: Pieces of a trial of a rate, and steps of a trial of speed.
TRIAL, SPEED_STEPS = 12_000_000, 30
#: How fast the slowest of the three reads by the speed of twin-bert: the causal ones predict twice as often.
SLOWEST = 0.8
TASKS = {
    "sst2": ("sst2/train.tsv", ["--epochs", "3", "--rank", "16", "--batch", "64"]),
    "ner": ("ner/train.tsv", ["--epochs", "8", "--rank", "16", "--batch", "32", "--word-dropout", "0.3"]),
    "squad": ("squad/train-v1.1.json", ["--epochs", "2", "--rank", "64", "--batch", "32"]),
    "stsb": ("stsb/sts-train.tsv", ["--epochs", "4", "--rank", "16", "--batch", "32"]),
    "cola": ("cola/train.tsv", ["--epochs", "4", "--rank", "16", "--batch", "32"]),
}
#: Bytes of a file that comes back.
SHARD = 16_000_000


# --- here, before ------------------------------------------------------------


def prepare(data: Path) -> None:
    """Lay out what travels with each call, and take the shipped weights out of the working tree.

    Raises:
        SystemExit: they are not as committed, and would be lost.
    """
    weights = sorted(SHIPPED.glob("*/model.safetensors"))
    if subprocess.run(["git", "diff", "--quiet", "HEAD", "--", "assets/models"], cwd=ROOT, check=False).returncode:
        sys.exit("assets/models differs from the last commit; commit it, or `git checkout assets/models`, first")
    if not any((RUNS / "pieces").glob("*.pieces")):
        sys.exit("runs/pieces is empty; make it first (the command is at the head of this file)")
    shutil.rmtree(RUNS / "lent", ignore_errors=True)
    for number, name in ((1, "twin-bert"), (3, "twin-gpt"), (4, "twin-rtl")):
        target = RUNS / "lent" / str(number) / "start" / name
        target.mkdir(parents=True)
        shutil.copyfile(SHIPPED / name / "model.safetensors", target / "model.safetensors")
    shutil.copytree(RUNS / "pieces", RUNS / "lent" / "2" / "pieces")
    with tarfile.open(RUNS / "lent" / "3" / "tasks.tar.xz", "w:xz") as archive:
        for path, _ in TASKS.values():
            archive.add(_unpacked(data / "tasks" / path), f"tasks/{path}")
    for path in (*weights, *(RUNS / "lent").glob("*.json")):
        path.unlink()
    for part in sorted((RUNS / "lent").iterdir()):
        print(f"{part.relative_to(ROOT)}: {sum(p.stat().st_size for p in part.rglob('*') if p.is_file()):,} bytes")


def _unpacked(path: Path) -> Path:
    """A training file as text: what unpacks .zst may not be there."""
    if path.is_file():
        return path
    import zstandard

    target = RUNS / "lent" / path.name
    with zstandard.open(path.with_name(f"{path.name}.zst"), "rb") as packed, target.open("wb") as out:
        shutil.copyfileobj(packed, out)
    return target


# --- there -------------------------------------------------------------------


def keep(part: Path) -> None:
    """Put what came with a call where the next ones look for it."""
    for path in (p for p in part.rglob("*") if p.is_file()):
        target = RUNS / path.relative_to(part)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(path, target)
        if target.name.endswith(".tar.xz"):
            with lzma.open(target) as packed, tarfile.open(fileobj=packed) as archive:
                archive.extractall(RUNS, filter="data")


def train(name: str, seconds: float, workers: int, to: Path) -> None:
    """Train a twin for about so many seconds, twin-bert after the trials, and write what comes back to `to`."""
    shutil.copyfile(RUNS / "start" / name / "model.safetensors", SHIPPED / name / "model.safetensors")
    choice = RUNS / "lent-choice.json"
    if name == "twin-bert":
        choice.write_text(json.dumps(choose(seconds, workers)), encoding="utf-8")
    chosen = json.loads(choice.read_text(encoding="utf-8"))
    print(f"{name}: {chosen}", flush=True)
    flags = [*chosen["flags"], "--lr", str(chosen["rate"]), "--head-lr", str(HEAD * chosen["rate"]),
             "--tokens", str(chosen["tokens"])]
    _pretrain(name, RUNS / f"lent-{name}", flags, chosen["environment"], workers)
    _send(f"{name}.tar", RUNS / f"lent-{name}", ("model/config.json", "model/model.safetensors", "run.json",
                                                 "curve.jsonl"), name, to)


def choose(seconds: float, workers: int) -> dict[str, Any]:
    """Flags, environment, rate and tokens that all three train with."""
    padded = _trial("padded", [*PADDED, "--tokens", str(2 * STEP)], {}, workers)
    for number, (flags, environment) in enumerate(ATTEMPTS):
        try:
            rows = _trial(f"speed-{number}", [*flags, "--tokens", str(SPEED_STEPS * STEP)], environment, workers)
        except subprocess.CalledProcessError as error:
            print(f"{flags[-1]} {environment}: {error}", flush=True)
            continue
        apart = abs(rows[0]["loss"] - padded[0]["loss"])
        print(f"{flags[-1]} {environment}: {speed_of(rows):,.0f} pieces/s, first loss {apart:.4f} from padded",
              flush=True)
        if apart < ALIKE:
            break
    else:
        sys.exit("no way of computing a step gives what padded batches give")
    asked = [*flags, "--tokens", str(TRIAL)]
    started = [(rate, _pretrain("twin-bert", RUNS / f"lent-rate-{rate}", [
        *asked, "--lr", str(rate), "--head-lr", str(HEAD * rate)], environment, max(1, workers // len(RATES)),
        wait=False)) for rate in RATES]
    losses = {rate: end_of(_curve(RUNS / f"lent-rate-{rate}")) for rate, process in started if process.wait() == 0}
    print(f"losses by rate: {losses}", flush=True)
    best = min(losses, key=losses.__getitem__, default=RATES[0])  # no trial ended: the careful one
    return {"flags": flags, "environment": environment, "rate": best,
            "tokens": tokens_for(seconds, speed_of(rows)), "losses": losses, "speed": speed_of(rows)}


def tokens_for(seconds: float, speed: float) -> int:
    """Pieces that the slowest twin reads in so many seconds, in whole millions, at most what is packed."""
    packed = int(RECIPE[RECIPE.index("--pack-tokens") + 1])
    return min(packed, max(1, int(seconds * speed * SLOWEST / 1e6)) * 1_000_000)


def speed_of(rows: Sequence[Mapping[str, float]]) -> float:
    """Pieces a second in the last half of a curve: the first steps compile."""
    first, last = rows[len(rows) // 2 - 1], rows[-1]
    return (last["tokens"] - first["tokens"]) / (last["seconds"] - first["seconds"])


def end_of(rows: Sequence[Mapping[str, float]]) -> float:
    """Mean loss over the last tenth of a curve, nats."""
    last = rows[-max(1, len(rows) // 10):]
    return sum(row["loss"] for row in last) / len(last)


def tune(to: Path) -> None:
    """Fine-tune the five tasks on the trained twin-bert, side by side, and write what comes back to `to`."""
    weights = "model.safetensors"
    shutil.copyfile(RUNS / "lent-twin-bert" / "model" / weights, SHIPPED / "twin-bert" / weights)
    started = {name: subprocess.Popen([
        sys.executable, "-m", "bert_core", "finetune", "--task", name, "--data", f"runs/tasks/{path}",
        "--out", f"runs/twin-bert-{name}", *flags], cwd=ROOT) for name, (path, flags) in TASKS.items()}
    failed = [name for name, process in started.items() if process.wait()]
    print(f"tasks that failed: {failed or 'none'}", flush=True)
    names = [f"twin-bert-{name}/{file}" for name in TASKS if name not in failed
             for file in ("config.json", "model.safetensors", "run.json", "curve.jsonl")]
    _send("tasks.tar", RUNS, names, "", to)


def _pretrain(
    name: str, out: Path, flags: Sequence[str], environment: Mapping[str, str], workers: int, wait: bool = True
) -> subprocess.Popen:
    """Run `pretrain`; its progress goes to standard error.

    Raises:
        subprocess.CalledProcessError: it failed, where it is waited for.
    """
    command = [sys.executable, "-m", "bert_core", "pretrain", "--init", name, "--objective", WAYS[name], "--out",
               str(out.relative_to(ROOT)), "--workers", str(workers), *RECIPE, *flags]
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **environment})
    if wait and process.wait():
        raise subprocess.CalledProcessError(process.returncode, command)
    return process


def _trial(label: str, flags: Sequence[str], environment: Mapping[str, str], workers: int) -> list[dict[str, float]]:
    """The curve of a short run from twin-bert."""
    out = RUNS / f"lent-trial-{label}"
    _pretrain("twin-bert", out, flags, environment, workers)
    return _curve(out)


def _curve(run: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run / "curve.jsonl").read_text(encoding="utf-8").splitlines()]


def _send(archive: str, folder: Path, files: Sequence[str], under: str, to: Path) -> None:
    """Write files as one archive, cut into what comes back: ARCHIVE.00, ARCHIVE.01 and so on."""
    whole = RUNS / archive
    with tarfile.open(whole, "w") as out:
        for name in files:
            out.add(folder / name, f"{under}/{name}" if under else name)
    data = whole.read_bytes()
    for number, start in enumerate(range(0, len(data), SHARD)):
        (to / f"{archive}.{number:02d}").write_bytes(data[start : start + SHARD])


# --- here, after -------------------------------------------------------------


def gather(folder: Path) -> None:
    """Put what came back together, in runs/back."""
    for first in sorted(folder.rglob("*.tar.00")):
        parts = sorted(first.parent.glob(f"{first.stem}.[0-9][0-9]"))
        whole = RUNS / first.stem
        whole.write_bytes(b"".join(part.read_bytes() for part in parts))
        with tarfile.open(whole) as archive:
            archive.extractall(RUNS / "back", filter="data")
            print(*archive.getnames(), sep="\n")
        whole.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description="train on a GPU that is lent for minutes")
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("prepare").add_argument("--data", type=Path, required=True)
    actions.add_parser("keep").add_argument("part", type=Path)
    training = actions.add_parser("train")
    training.add_argument("name", choices=WAYS)
    training.add_argument("--seconds", type=float, default=140.0)
    training.add_argument("--workers", type=int, default=14)
    training.add_argument("--to", type=Path, required=True)
    actions.add_parser("tune").add_argument("--to", type=Path, required=True)
    actions.add_parser("gather").add_argument("folder", type=Path)
    args = vars(parser.parse_args())
    {"prepare": prepare, "keep": keep, "train": train, "tune": tune, "gather": gather}[args.pop("action")](**args)


if __name__ == "__main__":
    main()
