"""The command line of training: pretrain, finetune, evaluate, export."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from bert_core.training.memory import keep_freed_memory


def add_parsers(subparsers: argparse._SubParsersAction) -> None:
    """Add this module's commands; each sets `run`, called with the parsed arguments, which returns text or data."""
    _add_pretrain(subparsers)


def _add_pretrain(subparsers: argparse._SubParsersAction) -> None:
    parser = subparsers.add_parser("pretrain", help="train an encoder on a folder of text")
    parser.add_argument("--corpus", required=True, help="folder of .txt or .txt.zst, blank line between documents")
    parser.add_argument("--objective", required=True, choices=("mlm", "clm", "rtl"),
                        help="mlm: masked pieces and next sentence; clm: next piece; rtl: next piece of reversed text")
    parser.add_argument("--init", required=True, help="a model folder to start from, or 'scratch'")
    parser.add_argument("--out", required=True, help="the run's folder; an unfinished run there goes on")
    parser.add_argument("--tokens", type=int, help="word pieces to read (default: all that is packed)")
    parser.add_argument("--pack-tokens", type=int, help="word pieces to pack (default: --tokens, else 2,000,000)")
    parser.add_argument("--packed", help="file of packed pairs, made if missing; share it between the twins")
    parser.add_argument("--mix", help="NAME=SHARE,NAME=SHARE over the corpus's files (default: equal shares)")
    parser.add_argument("--excerpt", type=int, default=1200, help="most pieces taken from a document at a time")
    parser.add_argument("--step-tokens", type=int, default=1024)
    parser.add_argument("--micro-tokens", type=int, default=1024)
    parser.add_argument("--lr", type=float, default=5e-4, help="peak learning rate of the encoder")
    parser.add_argument("--head-lr", type=float, default=2e-3, help="peak learning rate of the heads")
    parser.add_argument("--warmup", type=float, default=0.03, help="share of the steps with a rising rate")
    parser.add_argument("--decay", type=float, default=0.4, help="share of the steps with a falling rate")
    parser.add_argument("--mask-rate", type=float, default=0.15)
    parser.add_argument("--loss-fraction", type=float, default=1.0, help="share of positions in the causal loss")
    parser.add_argument("--no-nsp", action="store_true", help="leave next-sentence prediction out of mlm")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--precision", choices=("auto", "fp32", "bf16"), default="auto")
    parser.add_argument("--device", help="cpu or cuda (default: cuda where there is one)")
    parser.add_argument("--save-seconds", type=float, default=300.0)
    parser.add_argument("--stop-after", type=float, help="seconds after which to save and stop")
    scratch = parser.add_argument_group("from scratch")
    scratch.add_argument("--vocab-size", type=int, default=30522)
    scratch.add_argument("--layers", type=int, default=6)
    scratch.add_argument("--hidden", type=int, default=384)
    scratch.add_argument("--heads", type=int, default=6)
    parser.set_defaults(run=_pretrain)


def _pretrain(args: argparse.Namespace) -> dict:
    keep_freed_memory()
    from bert_core.training.runs import pretrain

    return pretrain(args)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one training command on its own, as `python -m bert_core` does."""
    parser = argparse.ArgumentParser(prog="python -m bert_core.training.commands")
    add_parsers(parser.add_subparsers(dest="command", required=True))
    args = parser.parse_args(argv)
    run: Callable[[argparse.Namespace], dict] = args.run
    try:
        run(args)
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
