r"""Train the twins and the tasks on a GPU that is lent for minutes, by a tool that takes 64 MiB a call.

Here, before a machine is asked for:

    python -m bert_core pieces --corpus ../shared/data/pretrain --out runs/pieces \
        --limit enwiki2015=51000000,imdb_reviews_half=4900000,english_novels=4500000
    python scripts/lent_gpu.py prepare --data ../shared/data

Then four calls of the tool, each with the folder that it names in `carry`, `--seconds` by what is left for
the three runs together:

    python3 scripts/lent_gpu.py keep runs/lent/1 && python3 scripts/lent_gpu.py measure
    python3 scripts/lent_gpu.py keep runs/lent/2 && python3 scripts/lent_gpu.py train twin-bert --seconds 430 --to $OUT
    python3 scripts/lent_gpu.py keep runs/lent/3 && python3 scripts/lent_gpu.py begin-tasks &&
        python3 scripts/lent_gpu.py train twin-gpt --to $OUT
    python3 scripts/lent_gpu.py keep runs/lent/4 && python3 scripts/lent_gpu.py train twin-rtl --to $OUT &&
        python3 scripts/lent_gpu.py end-tasks --to $OUT

and here, after each of the last three, with the folder in which the files came back:

    python scripts/lent_gpu.py gather FILES_AT

`measure` finds out whether rows without padding give the loss of padded
batches there, compiled or not, how fast the twins read them, and whether the
tasks run; so a second attempt is cheap where they don't. What `train twin-bert`
reckons from it, all three train with. The tasks are tuned beside the other two
twins where there is time for it, else here by `finetune` with the same flags.
`git checkout assets/models` brings the weights back that `prepare` takes out of
what travels. Time that is left at the end of the last call is for `python3 -m
bench trace`.
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
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RUNS, SHIPPED = ROOT / "runs", ROOT / "assets" / "models"
WAYS = {"twin-bert": "mlm", "twin-gpt": "clm", "twin-rtl": "rtl"}
#: Of 300 million pieces: everyday text is read eight to 21 times, an article of Wikipedia four.
MIX = ("enwiki2015=0.74,captions=0.055,tatoeba_english=0.015,storybooks=0.015,onestop_english=0.02,"
       "fairy_tales_grimm=0.01,wikinews=0.04,imdb_reviews_half=0.06,english_novels=0.045")
#: What `measure` reads, as it travels with the first call.
FIRST = ("captions", "fairy_tales_grimm", "imdb_reviews_half", "onestop_english", "storybooks", "tatoeba_english",
         "wikinews")
SMALL_MIX = "wikinews=0.5,imdb_reviews_half=0.4,captions=0.1"
RECIPE = ["--corpus", "runs/pieces", "--seed", "16", "--loss-fraction", "0.3333", "--optimizer", "muon", "--decay",
          "0.9", "--warmup", "0.02", "--lr", "0.001", "--head-lr", "0.0015", "--nsp-weight", "2", "--learn-words",
          "10000", "--precision", "bf16", "--save-seconds", "100000"]
STEP = 65536
#: What is tried in turn: flags, and what the environment is told.
UNPADDED = ["--step-tokens", str(STEP), "--micro-tokens", str(STEP), "--unpadded"]
PADDED = ["--step-tokens", str(STEP), "--micro-tokens", str(STEP // 2)]
ATTEMPTS: Sequence[tuple[Sequence[str], Mapping[str, str]]] = (
    (UNPADDED, {}), (UNPADDED, {"TORCHDYNAMO_DISABLE": "1"}), (PADDED, {}))
#: Nats by which the first step's loss may differ between two ways of computing it in half precision.
ALIKE = 0.02
#: Steps of a trial: more than are made ahead while it compiles.
SPEED_STEPS = 200
TASKS = {
    "sst2": ("sst2/train.tsv", ["--epochs", "3", "--rank", "16", "--batch", "64"]),
    "ner": ("ner/train.tsv", ["--epochs", "8", "--rank", "16", "--batch", "32", "--word-dropout", "0.3"]),
    "squad": ("squad/train-v1.1.json", ["--epochs", "2", "--rank", "64", "--batch", "32"]),
    "stsb": ("stsb/sts-train.tsv", ["--epochs", "4", "--rank", "16", "--batch", "32"]),
    "cola": ("cola/train.tsv", ["--epochs", "4", "--rank", "16", "--batch", "32"]),
}
#: Letters of a task's file that are tried.
SAMPLE = 40_000
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
        part = RUNS / "lent" / str(number)
        part.mkdir(parents=True)
        with tarfile.open(part / "start.tar.xz", "w:xz") as archive:
            archive.add(SHIPPED / name / "model.safetensors", f"start/{name}/model.safetensors")
    for path in (RUNS / "pieces").glob("*.pieces"):
        target = RUNS / "lent" / ("1" if path.stem in FIRST else "2") / "pieces" / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    for path, _ in TASKS.values():
        target = RUNS / "lent" / "1" / "samples" / path
        target.parent.mkdir(parents=True)
        target.write_text(_sample(_unpacked(data / "tasks" / path)), encoding="utf-8")
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


def _sample(path: Path) -> str:
    """The first rows of a training file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        whole = json.loads(text)
        first = whole["data"][0]
        return json.dumps({**whole, "data": [{**first, "paragraphs": first["paragraphs"][:20]}]})
    end = "\n\n" if "\n\n" in text else "\n"
    return text[: text.rfind(end, 0, SAMPLE) + len(end)]


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


def measure(workers: int) -> None:
    """Which way of computing a step works there, and how fast the twins read with it: runs/lent-way.json."""
    _take_start("twin-bert")
    more = ["--mix", SMALL_MIX, "--packed", "runs/try.npz", "--pack-tokens", str(SPEED_STEPS * STEP)]
    tasks = _start_tasks("samples", "try-")
    padded = _trial("padded", "mlm", [*more, *PADDED, "--tokens", str(2 * STEP)], {}, workers)
    for number, (flags, environment) in enumerate(ATTEMPTS):
        asked = [*more, *flags, "--tokens", str(SPEED_STEPS * STEP)]
        try:
            both = _trial(f"both-{number}", "mlm", asked, environment, workers)
            one = _trial(f"one-{number}", "clm", asked, environment, workers)
        except subprocess.CalledProcessError as error:
            print(f"{flags[-1]} {environment}: {error}", flush=True)
            continue
        apart = abs(both[0]["loss"] - padded[0]["loss"])
        speeds = {"mlm": speed_of(both), "clm": speed_of(one)}
        print(f"{flags[-1]} {environment}: {speeds} pieces/s, first loss {apart:.4f} from padded", flush=True)
        if apart < ALIKE:
            break
    else:
        sys.exit("no way of computing a step gives what padded batches give")
    way = {"flags": flags, "environment": environment, "speeds": speeds}
    (RUNS / "lent-way.json").write_text(json.dumps(way), encoding="utf-8")
    print(f"tasks that failed: {[name for name, process in tasks.items() if process.wait()] or 'none'}", flush=True)


def train(name: str, seconds: float, workers: int, to: Path) -> None:
    """Train a twin and write what comes back to `to`.

    Args:
        seconds: what all three may take together; the first one's counts.
    """
    _take_start(name)
    choice = RUNS / "lent-choice.json"
    if name == "twin-bert":
        way = json.loads((RUNS / "lent-way.json").read_text(encoding="utf-8"))
        choice.write_text(json.dumps({**way, "tokens": tokens_for(seconds, way["speeds"])}), encoding="utf-8")
    chosen = json.loads(choice.read_text(encoding="utf-8"))
    print(f"{name}: {chosen}", flush=True)
    _pretrain(name, WAYS[name], RUNS / f"lent-{name}", _asked(chosen), chosen["environment"], workers)
    _send(f"{name}.tar", RUNS / f"lent-{name}", ("model/config.json", "model/model.safetensors", "run.json",
                                                 "curve.jsonl"), name, to)


def tokens_for(seconds: float, speeds: Mapping[str, float]) -> int:
    """Pieces that each of the three reads in so many seconds of all, in whole millions."""
    return max(1, int(seconds / (1 / speeds["mlm"] + 2 / speeds["clm"]) / 1e6)) * 1_000_000


def speed_of(rows: Sequence[Mapping[str, float]]) -> float:
    """Pieces a second in the last half of a curve: the first steps compile."""
    first, last = rows[len(rows) // 2 - 1], rows[-1]
    return (last["tokens"] - first["tokens"]) / (last["seconds"] - first["seconds"])


def begin_tasks() -> None:
    """Fine-tune the five tasks on the trained twin-bert, in a session of their own that outlives the call."""
    weights = "model.safetensors"
    shutil.copyfile(RUNS / "lent-twin-bert" / "model" / weights, SHIPPED / "twin-bert" / weights)
    with (RUNS / "lent-tasks.log").open("w") as log:
        subprocess.Popen([sys.executable, __file__, "tasks"], cwd=ROOT, stdout=log, stderr=log, start_new_session=True)
    time.sleep(15)  # they read the weights, which the next call may take away


def tasks() -> None:
    """The five side by side, to their end."""
    failed = [name for name, process in _start_tasks("tasks", "").items() if process.wait()]
    (RUNS / "lent-tasks.json").write_text(json.dumps([name for name in TASKS if name not in failed]), encoding="utf-8")


def end_tasks(to: Path, seconds: float) -> None:
    """Wait for the tasks, so many seconds at most, and write what comes back to `to`."""
    done, until = RUNS / "lent-tasks.json", time.monotonic() + seconds
    while not done.exists() and time.monotonic() < until:
        time.sleep(0.5)
    log = (RUNS / "lent-tasks.log").read_text(encoding="utf-8")
    print(log[-2000:], flush=True)
    ready = [name for name in TASKS if (RUNS / f"twin-bert-{name}" / "run.json").exists()]
    print(f"tasks that are ready: {ready}", flush=True)
    _send("tasks.tar", RUNS, [f"twin-bert-{name}/{file}" for name in ready
                              for file in ("config.json", "model.safetensors", "run.json", "curve.jsonl")], "", to)


def _start_tasks(data: str, prefix: str) -> dict[str, subprocess.Popen]:
    return {name: subprocess.Popen([
        sys.executable, "-m", "bert_core", "finetune", "--task", name, "--data", f"runs/{data}/{path}",
        "--out", f"runs/{prefix}twin-bert-{name}", *flags], cwd=ROOT) for name, (path, flags) in TASKS.items()}


def _take_start(name: str) -> None:
    """The weights that a run starts from, where a shipped model's stand."""
    shutil.copyfile(RUNS / "start" / name / "model.safetensors", SHIPPED / name / "model.safetensors")


def _asked(chosen: Mapping[str, Any]) -> list[str]:
    """Flags of every run on the whole mix."""
    return [*chosen["flags"], "--mix", MIX, "--packed", "runs/lent.npz", "--pack-tokens", str(chosen["tokens"]),
            "--tokens", str(chosen["tokens"])]


def _pretrain(
    name: str, way: str, out: Path, flags: Sequence[str], environment: Mapping[str, str], workers: int
) -> None:
    """Run `pretrain`; its progress goes to standard error.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    command = [sys.executable, "-m", "bert_core", "pretrain", "--init", name, "--objective", way, "--out",
               str(out.relative_to(ROOT)), "--workers", str(workers), *RECIPE, *flags]
    subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, check=True)


def _trial(
    label: str, way: str, flags: Sequence[str], environment: Mapping[str, str], workers: int
) -> list[dict[str, float]]:
    """The curve of a short run from twin-bert."""
    out = RUNS / f"lent-trial-{label}"
    _pretrain("twin-bert", way, out, flags, environment, workers)
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
    actions.add_parser("measure").add_argument("--workers", type=int, default=10)
    training = actions.add_parser("train")
    training.add_argument("name", choices=WAYS)
    training.add_argument("--seconds", type=float, default=430.0)
    training.add_argument("--workers", type=int, default=10)
    training.add_argument("--to", type=Path, required=True)
    actions.add_parser("begin-tasks")
    actions.add_parser("tasks")
    ending = actions.add_parser("end-tasks")
    ending.add_argument("--seconds", type=float, default=60.0)
    ending.add_argument("--to", type=Path, required=True)
    actions.add_parser("gather").add_argument("folder", type=Path)
    args = vars(parser.parse_args())
    {"prepare": prepare, "keep": keep, "measure": measure, "train": train, "begin-tasks": begin_tasks, "tasks": tasks,
     "end-tasks": end_tasks, "gather": gather}[args.pop("action")](**args)


if __name__ == "__main__":
    main()
