"""Put finished runs where the shipped models stand, and score what is there.

    python scripts/ship.py take runs/twin-bert-3 twin-bert
    python scripts/ship.py score twin-bert twin-gpt >> scores.jsonl
    python scripts/ship.py weigh
    python scripts/make_cards.py scores.jsonl --hardware "2 cores of an AMD EPYC" --models twin-bert twin-gpt

`take` copies weights, config, settings and curve of a run of `pretrain` or
`finetune`. `score` runs each command that stands on a model's card and prints
its JSON with the command, as make_cards.py reads it. `weigh` says how large a
commit of the weights would be as a diff, which has a bound (docs/training-log.md).
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = ROOT / "assets" / "models"
#: Most bytes of all diffs of a session's commits that are taken, and what other commits of it may need.
MOST_BYTES, OTHERS = 256 * 2**20, 4 * 2**20
#: Steps of a curve that are kept.
MOST_STEPS = 1000


def take(run: Path, name: str) -> None:
    """Copy a finished run's model folder, settings and curve to assets/models/NAME, the curve shortened."""
    folder = run / "model" if (run / "model").is_dir() else run  # finetune writes the model into the run itself
    target = SHIPPED / name
    target.mkdir(exist_ok=True)
    for source in (folder / "config.json", folder / "model.safetensors", run / "run.json"):
        shutil.copyfile(source, target / source.name)
    lines = (run / "curve.jsonl").read_text(encoding="utf-8").splitlines()
    (target / "curve.jsonl").write_text("".join(f"{line}\n" for line in shortened(lines)), encoding="utf-8")


def shortened(lines: list[str]) -> list[str]:
    """A curve for shipping: every so many steps, the last one included, numbers of five digits.

    Args:
        lines: one JSON object a step.
    """
    step = -(-len(lines) // MOST_STEPS)
    rows = [json.loads(line) for line in lines[::-1][::step][::-1]]
    return [json.dumps({name: float(f"{value:.5g}") if isinstance(value, float) else value
                        for name, value in row.items()}) for row in rows]


def commands(name: str) -> list[str]:
    """The commands on a model's card, each once, in its order."""
    card = json.loads((SHIPPED / name / "card.json").read_text(encoding="utf-8"))
    return list(dict.fromkeys(score["command"] for score in card["scores"]))


def score(names: list[str]) -> None:
    """Print one line of JSON a command."""
    for name in names:
        for command in commands(name):
            _python, *rest = shlex.split(command)
            done = subprocess.run([sys.executable, *rest], cwd=ROOT, capture_output=True, text=True, check=True)
            found = json.loads(done.stdout.splitlines()[-1])
            print(json.dumps({**found, "model": name, "command": command}), flush=True)


def weigh() -> int:
    """Bytes of the diff that a commit of the models would be, binary files spelled out."""
    command = ["git", "diff", "--binary", "HEAD", "--", "assets/models"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        return sum(len(block) for block in iter(lambda: process.stdout.read(2**20), b""))


def main() -> None:
    parser = argparse.ArgumentParser(description="ship finished runs and score them")
    actions = parser.add_subparsers(dest="action", required=True)
    taking = actions.add_parser("take")
    taking.add_argument("run", type=Path)
    taking.add_argument("name")
    actions.add_parser("score").add_argument("names", nargs="+")
    actions.add_parser("weigh")
    args = parser.parse_args()
    if args.action == "take":
        take(args.run, args.name)
    elif args.action == "score":
        score(args.names)
    else:
        found = weigh()
        print(f"{found:,} bytes of diff; {MOST_BYTES - OTHERS:,} may be committed")
        sys.exit(int(found > MOST_BYTES - OTHERS))


if __name__ == "__main__":
    main()
