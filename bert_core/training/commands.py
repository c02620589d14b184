"""The command line of training: pretrain, finetune, evaluate, export."""

from __future__ import annotations

import argparse

from bert_core.arguments import COUNT, path
from bert_core.training import flags
from bert_core.training.flags import LABELLED
from bert_core.training.memory import keep_freed_memory

LANGUAGE = ("mlm", "clm", "nsp", "blimp", "cloze")


def add_parsers(subparsers: argparse._SubParsersAction) -> None:
    """Add this module's commands; each sets `run`, which takes the parsed arguments and returns plain data."""
    _add_pretrain(subparsers)
    _add_pieces(subparsers)
    _add_finetune(subparsers)
    _add_evaluate(subparsers)
    _add_export(subparsers)


def _add_pretrain(subparsers: argparse._SubParsersAction) -> None:
    parser = subparsers.add_parser("pretrain", help="train an encoder on a folder of text")
    flags.add_pretrain(parser)
    parser.add_argument("--json", action="store_true", help="JSON on standard output")
    parser.set_defaults(run=_pretrain)


def _pretrain(args: argparse.Namespace) -> dict | None:
    keep_freed_memory()
    from bert_core.training.runs import pretrain

    return pretrain(args)


def _add_pieces(subparsers: argparse._SubParsersAction) -> None:
    parser = subparsers.add_parser("pieces", help="tokenise a corpus once, for pretrain to read where there is no time")
    parser.add_argument("--corpus", required=True, help="folder of .txt or .txt.zst, blank line between documents")
    parser.add_argument("--out", required=True, type=path,
                        help="folder for the word pieces; pretrain takes it as its --corpus")
    parser.add_argument("--model", default="twin-bert", help="whose tokenizer is used (default %(default)s)")
    parser.add_argument("--limit", help="NAME=PIECES,NAME=PIECES: pieces after which a source ends, at the end of a "
                                        "document (default: all)")
    parser.add_argument("--json", action="store_true", help="JSON on standard output")
    parser.set_defaults(run=_pieces)


def _pieces(args: argparse.Namespace) -> list:
    from bert_core.training.runs import tokenise

    return tokenise(args)


def _add_finetune(subparsers: argparse._SubParsersAction) -> None:
    parser = subparsers.add_parser("finetune", help="train a task on top of a model")
    flags.add_finetune(parser)
    parser.add_argument("--json", action="store_true", help="JSON on standard output")
    parser.set_defaults(run=_finetune)


def _add_evaluate(subparsers: argparse._SubParsersAction) -> None:
    parser = subparsers.add_parser("evaluate", help="measure a model on held-out data")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--task", choices=(*LANGUAGE, *LABELLED), help="what to measure")
    which.add_argument("--all", action="store_true", help="every task on its shipped model")
    parser.add_argument("--data", help="data folder, or the task's file (cloze: the shipped items by default)")
    parser.add_argument("--model", help="name, folder or hub id (default: the shipped model of the task); "
                                        "the language tasks take none that runs through transformers")
    parser.add_argument("--seeds", type=COUNT, default=5,
                        help="draws to average over, where something is drawn (default %(default)s)")
    parser.add_argument("--limit", type=COUNT, help="rows to use, evenly spaced; for blimp, pairs of each rule")
    parser.add_argument("--json", action="store_true", help="JSON on standard output")
    parser.set_defaults(run=_evaluate)


def _add_export(subparsers: argparse._SubParsersAction) -> None:
    parser = subparsers.add_parser("export", help="write a model as a folder that transformers opens")
    parser.add_argument("name", help="name, folder or hub id")
    parser.add_argument("folder", type=path, help="a new folder")
    parser.add_argument("--json", action="store_true", help="JSON on standard output")
    parser.set_defaults(run=_export)


def _finetune(args: argparse.Namespace) -> dict:
    keep_freed_memory()
    from bert_core.training.jobs import run_finetune

    return run_finetune(args)


def _evaluate(args: argparse.Namespace) -> dict | list:
    if args.all and args.model:
        raise ValueError("evaluate --all scores each task on its shipped model; leave out --model, or name a --task")
    from bert_core.training.jobs import run_evaluate

    return run_evaluate(args)


def _export(args: argparse.Namespace) -> dict:
    from bert_core.training.jobs import run_export

    return run_export(args)
