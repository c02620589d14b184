"""A pre-training run from its command-line arguments: corpus, start, trainer, model folder."""

from __future__ import annotations

import argparse
import json
import os
import shutil
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from tokenizers import Tokenizer

from bert_core.config import BertConfig
from bert_core.load import locate
from bert_core.training import corpus
from bert_core.training.cards import read_card
from bert_core.training.folder import find_tokenizer, write_model
from bert_core.training.objectives import Objective
from bert_core.training.packing import Lengths, Packed, Special, pack, unigram_log_frequency
from bert_core.training.pretrain import Recipe, Trainer, pick_precision, run
from bert_core.training.start import read_start, start_weights


def pretrain(args: argparse.Namespace) -> dict:
    """Run or resume one pre-training; writes the finished model to OUT/model."""
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    device = _join_processes(args.device)
    config, found, tokenizer = _start(args, out)
    packed = _packed(args, out, tokenizer)
    bias = torch.from_numpy(unigram_log_frequency(packed, config.vocab_size)).float()
    weights, fresh = start_weights(config, found, args.objective, bias, args.seed)
    recipe = Recipe(
        step_tokens=args.step_tokens, micro_tokens=args.micro_tokens, lr=args.lr, head_lr=args.head_lr,
        tokens=args.tokens, warmup=args.warmup, decay=args.decay, nsp_weight=args.nsp_weight,
        precision=pick_precision(args.precision, device), save_seconds=args.save_seconds,
        freeze_words=args.freeze_words, optimizer=args.optimizer,
    )
    objective = Objective(
        args.objective, Special.of(tokenizer), replacement_ids(tokenizer), args.mask_rate, args.loss_fraction,
        not args.no_nsp, args.seed,
    )
    trainer = Trainer(config, weights, packed, objective, recipe, device)
    settings = {k: v for k, v in vars(args).items() if k not in ("run", "command", "json")}
    record = {**settings, "random_start": fresh, "steps": trainer.steps, "precision": recipe.precision}
    start_card = None if args.init == "scratch" else read_card(locate(args.init))
    if start_card is not None:
        record["before"] = start_card["sittings"]
    if trainer.rank == 0:
        _write_record(out, record)
    done = run(trainer, out, args.stop_after)
    if done and trainer.rank == 0:
        _write_record(out, {**record, "seconds": round(trainer.seconds)})
        write_model(out / "model", config, trainer.weights, args.objective, out / "tokenizer.json")
    _leave_processes()
    return {"done": done, "step": trainer.step, "steps": trainer.steps, "seconds": round(trainer.seconds, 1)}


def _write_record(out: Path, record: dict) -> None:
    """run.json: the settings of the run, and what came of it."""
    (out / "run.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _join_processes(device: str | None) -> str:
    """Join the other processes where torchrun started several; the device of this one."""
    chosen = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and not dist.is_initialized():
        dist.init_process_group("nccl" if chosen == "cuda" else "gloo")
        if chosen == "cuda":
            chosen = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
    return chosen


def _leave_processes() -> None:
    """Wait for the other processes: one that ends while another still listens to it takes that one down."""
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()


def _start(args: argparse.Namespace, out: Path) -> tuple[BertConfig, dict[str, torch.Tensor], Tokenizer]:
    """Config, weights found (none from scratch) and tokenizer."""
    if args.init != "scratch":
        config, found, folder = read_start(args.init)
        shutil.copyfile(find_tokenizer(folder), out / "tokenizer.json")
        return config, found, corpus.plain_tokenizer(out / "tokenizer.json")
    path = out / "tokenizer.json"
    if not path.is_file():
        texts = {name: corpus.documents(p) for name, p in corpus.sources(args.corpus).items()}
        part = path.with_suffix(".part")
        corpus.train_wordpiece(texts, args.vocab_size).save(str(part))
        shutil.move(part, path)
    tokenizer = corpus.plain_tokenizer(path)
    config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=args.hidden, num_hidden_layers=args.layers,
        num_attention_heads=args.heads, intermediate_size=4 * args.hidden,
    )
    return config, {}, tokenizer


def _packed(args: argparse.Namespace, out: Path, tokenizer: Tokenizer) -> Packed:
    """The packed corpus, made once by the first process."""
    path = Path(args.packed) if args.packed else out / "packed.npz"
    if not path.is_file() and int(os.environ.get("RANK", "0")) == 0:
        files = corpus.sources(args.corpus)
        mix = corpus.parse_mix(args.mix, list(files))
        texts = {name: corpus.documents(files[name]) for name in mix}
        wanted = args.pack_tokens or args.tokens or 2_000_000
        pack(texts, mix, tokenizer, wanted, Lengths(), args.excerpt, args.seed).save(path)
    if dist.is_initialized():
        dist.barrier()
    return Packed.load(path)


def replacement_ids(tokenizer: Tokenizer) -> np.ndarray:
    """(R,) ids that a masked-LM replacement is drawn from: the vocabulary without specials and unused entries."""
    vocabulary = tokenizer.get_vocab()
    return np.array(sorted(i for token, i in vocabulary.items() if not (token.startswith("[") and len(token) > 1)))
