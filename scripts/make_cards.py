"""Write the cards of the shipped models from their runs and from their scores, a line each.

    python scripts/ship.py score twin-bert >> scores.jsonl
    python scripts/make_cards.py scores.jsonl --hardware "2 cores of an AMD EPYC, shared"
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bert_core.load import SHIPPED, shipped_names  # noqa: E402
from bert_core.training.cards import card, write_card  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description="write card.json and CARD.md beside every shipped model")
    parser.add_argument("scores", help="file of evaluate's JSON lines, each with the `command` that gave it")
    parser.add_argument("--hardware", required=True)
    parser.add_argument("--models", nargs="+", choices=shipped_names(), default=shipped_names(),
                        help="whose cards to write (default: all)")
    args = parser.parse_args()
    scores = [json.loads(line) for line in Path(args.scores).read_text(encoding="utf-8").splitlines() if line.strip()]
    for name in args.models:
        run = json.loads((SHIPPED / name / "run.json").read_text(encoding="utf-8"))
        write_card(SHIPPED / name, card(name, run, [s for s in scores if s["model"] == name], args.hardware))


if __name__ == "__main__":
    main()
