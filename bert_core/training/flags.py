"""What `pretrain` and `finetune` are told, without what they do: their flags, types, bounds and defaults.

A card writes a run's command from them and a run that goes on is held to them, so they stand below both.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

from bert_core.arguments import COUNT, number, path

#: Tasks of fine-tuning.
LABELLED = ("sst2", "ner", "squad", "stsb", "cola")
#: Flags of one sitting of a run: what comes of the run does not depend on them.
OF_A_SITTING = ("device", "save_seconds", "stop_after", "workers")

_LENGTH = number("a whole number from 16 to 512", int, lambda n: 16 <= n <= 512)
_WHOLE = number("a whole number, at least 0", int, lambda n: 0 <= n < 2**63)
_FEW = number("a whole number from 0 to 256", int, lambda n: 0 <= n <= 256)
_EPOCHS = number("above 0 and at most 1,000", float, lambda n: 0 < n <= 1000)
_VOCABULARY = number("a whole number from 100 to 1,000,000", int, lambda n: 100 <= n <= 1_000_000)
_ABOVE_0 = number("a number above 0", float, lambda x: 0 < x < math.inf)
_FROM_0 = number("a number, at least 0", float, lambda x: 0 <= x < math.inf)
_SHARE = number("a share from 0 to 1", float, lambda x: 0 <= x <= 1)
_SOME = number("a share above 0, at most 1", float, lambda x: 0 < x <= 1)

_SEED = "of everything that is drawn (default %(default)s)"
_PRECISION = "bf16: autocast over float32 weights; auto: where the hardware is faster with it (default %(default)s)"


def defaults(command: str) -> dict[str, Any]:
    """Name -> default of every flag of `pretrain` or `finetune`, None where there is none, in the order of its help."""
    parser = argparse.ArgumentParser(add_help=False)
    {"pretrain": add_pretrain, "finetune": add_finetune}[command](parser)
    return {flag.dest: flag.default for flag in parser._actions}


def add_pretrain(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `pretrain`."""
    parser.add_argument("--corpus", required=True, help="folder of .txt or .txt.zst, blank line between documents")
    parser.add_argument("--objective", required=True, choices=("mlm", "clm", "rtl"),
                        help="mlm: masked pieces and next sentence; clm: next piece; rtl: next piece of reversed text")
    parser.add_argument("--init", required=True, help="a model folder to start from, or 'scratch'")
    parser.add_argument("--out", required=True, type=path,
                        help="the run's folder; an unfinished run there goes on; OUT/model is the model in the end")
    _add_text(parser.add_argument_group("text"))
    _add_steps(parser.add_argument_group("steps and rates"))
    _add_losses(parser.add_argument_group("losses"))
    _add_sitting(parser.add_argument_group("the run"))
    _add_sizes(parser.add_argument_group("from scratch"))


def _add_text(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--tokens", type=COUNT, help="word pieces to read (default: all that is packed)")
    group.add_argument("--end-at", type=COUNT, help="word pieces after which to end, the rate as for all of --tokens")
    group.add_argument("--pack-tokens", type=COUNT, help="word pieces to pack (default: --tokens, else 2,000,000)")
    group.add_argument("--packed", help="file of packed pairs, made if missing; share it between the twins")
    group.add_argument("--mix", help="NAME=SHARE,NAME=SHARE over the corpus's files (default: equal shares)")
    group.add_argument("--excerpt", type=COUNT, default=1200,
                       help="most pieces taken from a document at a time (default %(default)s)")
    group.add_argument("--length", type=_LENGTH, default=128,
                       help="pieces of most packed sequences, specials included; 2 %% have 512, 15 %% fewer "
                            "(default %(default)s)")


def _add_steps(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--step-tokens", type=COUNT, default=1024,
                       help="least word pieces of a step, over all processes (default %(default)s)")
    group.add_argument("--micro-tokens", type=COUNT, default=1024,
                       help="most pieces of one forward pass, padding included (default %(default)s)")
    group.add_argument("--unpadded", action="store_true",
                       help="for a GPU: one row a pass, whole sequences until it has --micro-tokens, none padded")
    group.add_argument("--optimizer", choices=("adamw", "muon"), default="adamw",
                       help="muon: for the matrices of the layers, AdamW for the rest (default %(default)s)")
    group.add_argument("--lr", type=_ABOVE_0, default=5e-4,
                       help="peak learning rate of the encoder (default %(default)s)")
    group.add_argument("--head-lr", type=_ABOVE_0, default=2e-3,
                       help="peak learning rate of the heads (default %(default)s)")
    group.add_argument("--warmup", type=_SHARE, default=0.03,
                       help="share of the steps with a rising rate (default %(default)s)")
    group.add_argument("--decay", type=_SHARE, default=0.4,
                       help="share of the steps with a falling rate (default %(default)s)")


def _add_losses(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--mask-rate", type=_SOME, default=0.15,
                       help="share of the pieces that mlm predicts (default %(default)s)")
    group.add_argument("--loss-fraction", type=_SOME, default=1.0,
                       help="share of positions in the causal loss (default %(default)s)")
    group.add_argument("--nsp-weight", type=_FROM_0, default=1.0,
                       help="factor on the next-sentence loss (default %(default)s)")
    group.add_argument("--no-nsp", action="store_true", help="leave next-sentence prediction out of mlm")
    group.add_argument("--freeze-words", action="store_true",
                       help="keep the word embeddings, and with them the decoder's matrix")
    group.add_argument("--learn-words", type=COUNT,
                       help="let the embeddings learn of so many pieces, those packed most often; keep the others")


def _add_sitting(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--seed", type=_WHOLE, default=0, help=_SEED)
    group.add_argument("--precision", choices=("auto", "fp32", "bf16"), default="auto", help=_PRECISION)
    group.add_argument("--device", help="cpu or cuda (default: cuda where there is one)")
    group.add_argument("--workers", type=_FEW, default=0,
                       help="processes that pack and corrupt ahead of the steps (default %(default)s: none)")
    group.add_argument("--save-seconds", type=_FROM_0, default=300.0,
                       help="seconds between two checkpoints (default %(default)s)")
    group.add_argument("--stop-after", type=_FROM_0, help="seconds after which to save and stop")


def _add_sizes(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--vocab-size", type=_VOCABULARY, default=30522,
                       help="most pieces of the vocabulary that is learnt from the corpus (default %(default)s)")
    group.add_argument("--layers", type=COUNT, default=6, help="of the encoder (default %(default)s)")
    group.add_argument("--hidden", type=COUNT, default=384,
                       help="hidden size, a multiple of --heads (default %(default)s)")
    group.add_argument("--heads", type=COUNT, default=6, help="attention heads of each layer (default %(default)s)")


def add_finetune(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `finetune`."""
    parser.add_argument("--task", required=True, choices=LABELLED, help="what to learn")
    parser.add_argument("--data", required=True, help="data folder, or the task's training file")
    parser.add_argument("--model", default="twin-bert", help="the model to start from (default %(default)s)")
    parser.add_argument("--warm-start", help="a model of this task and rank on the same base, to go on from")
    parser.add_argument("--out", required=True, type=path, help="folder of the new model")
    parser.add_argument("--limit", type=COUNT, help="training rows to draw (default: all)")
    parser.add_argument("--epochs", type=_EPOCHS, default=2.0,
                        help="passes over the training rows (default %(default)s)")
    parser.add_argument("--rank", type=_WHOLE, default=16,
                        help="of the low-rank updates; 0 trains every weight (default %(default)s)")
    parser.add_argument("--batch", type=COUNT, default=32, help="rows of a step (default %(default)s)")
    parser.add_argument("--lr", type=_ABOVE_0, default=1e-3,
                        help="peak learning rate of the encoder (default %(default)s)")
    parser.add_argument("--head-lr", type=_ABOVE_0, default=1e-3,
                        help="peak learning rate of the head (default %(default)s)")
    parser.add_argument("--word-dropout", type=_SHARE, default=0.0,
                        help="share of the pieces hidden behind [MASK] (default %(default)s)")
    parser.add_argument("--seed", type=_WHOLE, default=0, help=_SEED)
    parser.add_argument("--precision", choices=("auto", "fp32", "bf16"), default="auto", help=_PRECISION)
    parser.add_argument("--device", help="cpu or cuda (default: cuda where there is one)")
