"""A pre-training run from its command-line arguments: corpus, start, trainer, model folder."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from filelock import FileLock, Timeout
from tokenizers import Tokenizer

from bert_core.config import BertConfig
from bert_core.load import locate, parse_config
from bert_core.loading.files import in_place_of, read_json
from bert_core.training import corpus, pieces
from bert_core.training.cards import sittings_of
from bert_core.training.folder import begun_folder, check_free, find_tokenizer, make_folder, write_model
from bert_core.training.objectives import Objective
from bert_core.training.packing import Lengths, Packed, Special, pack, unigram_log_frequency, vocabulary_digest
from bert_core.training.pretrain import Recipe, Trainer, pick_device, pick_precision, run, wait_for_all
from bert_core.training.resume import check_settings, check_tokens, earlier_record
from bert_core.training.start import read_start, start_weights, turned_round


def pretrain(args: argparse.Namespace) -> dict | None:
    """Run or resume one pre-training; writes the finished model to OUT/model.

    Returns:
        What came of it; None in all of torchrun's processes but the first, which says it for them.

    Raises:
        ValueError: OUT is a file or holds something else, another process is at work there, or the run that goes on
            there had other settings.
    """
    _check_out(Path(args.out), args.packed)
    with begun_folder(args.out) as out, _alone(out):
        return _pretrain(args, out)


def _check_out(out: Path, packed: str | None) -> None:
    """ValueError if OUT holds something other than a run, or than what one leaves that was killed as it began.

    A vocabulary may lie there for a run from scratch to take, and the pairs that it is to read.
    """
    if (out / "config.json").exists():  # a finished run's has a record too, and is no run to go on with
        raise ValueError(f"{str(out)!r} is a model's folder; give the folder of a run, or a new one")
    if not (out / "run.json").exists():
        pairs = Path(packed).name if packed else "packed.npz"
        check_free(out, ("run.lock", "run.json.part", "tokenizer.json.part", "tokenizer.json", pairs,
                         f"{pairs}.tokenizer.json"))


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Nobody else writes into this run's folder; the lock goes with the process, however it ends.

    Its file goes too where it is all that the run has left: a folder with nothing in it is free for any command.
    """
    lock = FileLock(out / "run.lock")
    try:
        if os.environ.get("RANK", "0") == "0":  # torchrun's others work for the first
            lock.acquire(timeout=0)
    except Timeout:
        raise ValueError(f"{out} is being written by another run; wait for it, or give another --out") from None
    try:
        yield
    finally:
        with suppress(OSError):
            if lock.is_locked and [path.name for path in out.iterdir()] == ["run.lock"]:
                (out / "run.lock").unlink()  # while it is held: who has it open finds it gone, and opens it anew
        lock.release()


def _pretrain(args: argparse.Namespace, out: Path) -> dict | None:
    device = _join_processes(args.device)
    earlier = earlier_record(out)
    settings = _settings(args, earlier, device)
    with _begun(out, settings, fresh=_is_first() and not earlier):
        if "steps" not in earlier:  # before anything is made of it
            _chosen(args)
        config, found, tokenizer = _start(args, out)
        packed = _packed(args, out, tokenizer, begun="steps" in earlier)
        if packed.longest > config.max_position_embeddings:
            raise ValueError(f"--init {args.init!r} knows {config.max_position_embeddings} positions; packed are "
                             f"sequences of up to {packed.longest}")
    bias = torch.from_numpy(unigram_log_frequency(packed, config.vocab_size)).float()
    weights, fresh = start_weights(config, found, args.objective, bias, args.seed)
    recipe = Recipe(**{field.name: settings[field.name] for field in fields(Recipe) if field.name in settings})
    objective = Objective(
        args.objective, Special.of(tokenizer), replacement_ids(tokenizer), args.mask_rate, args.loss_fraction,
        not args.no_nsp, args.seed,
    )
    trainer = Trainer(config, weights, packed, objective, recipe, device, args.workers)
    check_tokens(trainer, out, earlier)
    record = {**settings, "pack_tokens": _recorded_pieces(args, packed), "random_start": fresh, "steps": trainer.last,
              **_before(args.init)}
    if trainer.rank == 0:
        _write_record(out, record)
    done = run(trainer, out, args.stop_after)
    if done and trainer.rank == 0:
        record["seconds"] = round(trainer.seconds)
        _write_record(out, record)
        write_model(out / "model", config, trainer.weights, args.objective, out / "tokenizer.json")
        _write_record(out / "model", record)  # of these weights, when the run itself has gone on
    _leave_processes()
    if trainer.rank:
        return None
    made = {"model": str(out / "model")} if done else {}
    return {"done": done, "step": trainer.step, "steps": trainer.last, "seconds": round(trainer.seconds, 1)} | made


def _settings(args: argparse.Namespace, earlier: dict, device: str) -> dict:
    """What is asked of the run; what is left open is as its record has it, if it goes on.

    Raises:
        ValueError: its record says otherwise, or two flags contradict each other.
    """
    if args.pack_tokens is None:  # its record may say what its pairs' file holds
        args.pack_tokens = earlier.get("pack_tokens")
    asked = earlier.get("precision", "auto") if args.precision == "auto" else args.precision
    settings = {k: v for k, v in vars(args).items() if k not in ("run", "command", "json")}
    settings["precision"] = pick_precision(asked, device)
    check_settings(settings, earlier)
    _check_flags(settings, device)
    return settings


def _before(init: str) -> dict:
    """The sittings that its start has behind it, as an entry of the record; none where they are not known."""
    sittings = None if init == "scratch" else sittings_of(locate(init))
    return {} if sittings is None else {"before": sittings}


@contextmanager
def _begun(out: Path, settings: dict, fresh: bool) -> Iterator[None]:
    """A fresh run's settings lie beside the files it prepares, which a run of others must not take for its own.

    What was prepared goes again if that fails, so that the same --out serves after a slip.
    """
    made = [path for name in ("run.json", "tokenizer.json", "packed.npz") if not (path := out / name).exists()]
    if fresh:
        _write_record(out, settings)
    try:
        yield
    except (ValueError, OSError):
        for path in made if fresh else ():
            path.unlink(missing_ok=True)
        raise


def _check_flags(settings: dict, device: str) -> None:
    """ValueError where two flags contradict each other."""
    if settings["freeze_words"] and settings["learn_words"] is not None:
        raise ValueError("--freeze-words and --learn-words contradict each other; give one of them")
    if settings["unpadded"] and device != "cpu" and settings["precision"] != "bf16":
        raise ValueError("--unpadded needs --precision bf16 on a GPU: its attention takes half precision only")


def _write_record(out: Path, record: dict) -> None:
    """run.json, whole or not at all: the settings of the run, and what came of it."""
    with in_place_of(out / "run.json") as part:
        part.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _join_processes(device: str | None) -> str:
    """Join the other processes where torchrun started several; the device of this one."""
    chosen = pick_device(device)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and not dist.is_initialized():
        backend = "nccl" if chosen == "cuda" else "gloo"
        if chosen == "cuda":
            chosen = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
            torch.cuda.set_device(chosen)  # NCCL's own buffers and barriers go where this points
        dist.init_process_group(backend)
    return chosen


def _is_first() -> bool:
    """Whether this process writes what all read."""
    return not dist.is_initialized() or dist.get_rank() == 0


def _leave_processes() -> None:
    """Wait for the other processes: one that ends while another still listens to it takes that one down."""
    wait_for_all()
    if dist.is_initialized():
        dist.destroy_process_group()


def _start(args: argparse.Namespace, out: Path) -> tuple[BertConfig, dict[str, torch.Tensor], Tokenizer]:
    """Config, weights found (none from scratch) and tokenizer."""
    path = out / "tokenizer.json"
    if args.init != "scratch":
        config, found, folder = read_start(args.init)
        if _is_first() and (turned := turned_round(config, args.objective)):
            sys.stderr.write(f"{args.init} {turned}\n")
        if _is_first():
            _take_vocabulary(find_tokenizer(folder, config), path)
        wait_for_all()
        return config, found, corpus.plain_tokenizer(path)
    if _is_first() and not path.is_file() and args.packed and Path(args.packed).is_file():
        with suppress(FileNotFoundError):
            shutil.copyfile(_kept_tokenizer(args), path)  # the other twin's: one file of pairs, one vocabulary
    if _is_first() and not path.is_file():
        texts = {name: corpus.documents(p) for name, p in corpus.sources(args.corpus).items()
                 if not p.name.endswith(corpus.TOKENISED)}
        with in_place_of(path) as part:
            corpus.train_wordpiece(texts, args.vocab_size).save(str(part))
    wait_for_all()
    tokenizer = corpus.plain_tokenizer(path)
    config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=args.hidden, num_hidden_layers=args.layers,
        num_attention_heads=args.heads, intermediate_size=4 * args.hidden,
    )
    return config, {}, tokenizer


def _take_vocabulary(source: Path, path: Path) -> None:
    """Copy the start's tokenizer into the run's folder.

    Raises:
        ValueError: another one lies there, which a model of its own may stand on.
    """
    if not path.exists():
        with in_place_of(path) as part:
            shutil.copyfile(source, part)
    elif path.read_bytes() != source.read_bytes():
        raise ValueError(f"{path} is another than {source}, where the run starts; give another --out")


def _kept_tokenizer(args: argparse.Namespace) -> Path:
    """Where the vocabulary stands that the pairs of --packed are in."""
    return Path(f"{args.packed}.tokenizer.json")


def _packed(args: argparse.Namespace, out: Path, tokenizer: Tokenizer, begun: bool) -> Packed:
    """The packed corpus, made once by the first process.

    Args:
        begun: the run goes on, with the pairs that it has: what became of the corpus since is all the same.

    Raises:
        ValueError: it was packed from or with something else, or holds fewer pieces than are to be read.
    """
    path = Path(args.packed) if args.packed else out / "packed.npz"
    origin = {"seed": args.seed, "mix": args.mix, "excerpt": args.excerpt, "length": args.length,
              **({"vocab-size": args.vocab_size} if args.init == "scratch" else {}),
              "vocabulary": vocabulary_digest(tokenizer)}
    if path.exists() and not path.is_file():
        raise ValueError(f"--packed {args.packed!r} is no file; give one, or a name that is free")
    if _is_first() and not path.is_file():
        _pack(args, path, tokenizer, origin)
    wait_for_all()
    if not begun:
        origin["corpus"] = _contents(_chosen(args))
    if args.pack_tokens:
        origin["pack-tokens"] = args.pack_tokens
    packed = Packed.load(path, origin)
    held = int(packed.offsets[-1])
    if args.tokens and args.tokens > held:
        raise ValueError(f"{path} holds {held:,} word pieces, --tokens asks for {args.tokens:,}; "
                         "ask for fewer, or pack more (--pack-tokens) into another file")
    return packed


def _pack(args: argparse.Namespace, path: Path, tokenizer: Tokenizer, origin: Mapping[str, Any]) -> None:
    """Write the pairs with their origin; before them a vocabulary of their own, without which no twin can read them."""
    make_folder(path.parent)
    files = _chosen(args)
    texts = {name: _documents(file, origin["vocabulary"]) for name, file in files.items()}
    mix, wanted = corpus.parse_mix(args.mix, list(files)), _pieces_to_pack(args)
    made = pack(texts, mix, tokenizer, wanted, Lengths(args.length), args.excerpt, args.seed, args.workers)
    if args.init == "scratch" and args.packed:
        tokenizer.save(str(_kept_tokenizer(args)))
    made.save(path, {**origin, "corpus": _contents(files), "pack-tokens": wanted})


def _pieces_to_pack(args: argparse.Namespace) -> int:
    return args.pack_tokens or args.tokens or 2_000_000


def _chosen(args: argparse.Namespace) -> dict[str, Path]:
    """The sources of the corpus that the mix reads, and their files."""
    files = corpus.sources(args.corpus)
    return {name: files[name] for name in sorted(corpus.parse_mix(args.mix, list(files)))}


def _contents(files: Mapping[str, Path]) -> str:
    """What tells one corpus from another wherever it lies: its files' names and sizes."""
    return ", ".join(f"{file.name} ({file.stat().st_size:,} bytes)" for file in files.values())


def _recorded_pieces(args: argparse.Namespace, packed: Packed) -> int | None:
    """--pack-tokens for the record: also where it was left out, and the file holds what others asked for."""
    held = packed.origin.get("pack-tokens", _pieces_to_pack(args))
    return args.pack_tokens if held == _pieces_to_pack(args) else held


def _documents(file: Path, vocabulary: str) -> list[str] | pieces.Pieces:
    """What a source holds.

    Raises:
        ValueError: it was tokenised before, with another vocabulary than the run's.
    """
    if not file.name.endswith(corpus.TOKENISED):
        return corpus.documents(file)
    found = pieces.read(file)
    if found.vocabulary != vocabulary:
        raise ValueError(f"{file} was tokenised with another vocabulary than the start's; make it again (pieces)")
    return found


def tokenise(args: argparse.Namespace) -> list[dict]:
    """Write every source of a corpus as word pieces; what was written, source by source.

    Raises:
        ValueError: the corpus is no folder of text or has word pieces only, a limit names no source, or the model has
            no tokenizer.json.
    """
    folder = locate(args.model)
    tokenizer = corpus.plain_tokenizer(find_tokenizer(folder, parse_config(read_json(folder / "config.json"))))
    texts = {name: file for name, file in corpus.sources(args.corpus).items()
             if not file.name.endswith(corpus.TOKENISED)}
    if not texts:
        raise ValueError(f"corpus {args.corpus!r} holds word pieces only, no .txt or .txt.zst file to make them of")
    limits = _limits(args.limit, list(texts))
    out, vocabulary, written = make_folder(args.out), vocabulary_digest(tokenizer), []
    for name, file in texts.items():
        made = pieces.tokenised(corpus.documents(file), tokenizer, vocabulary, limits.get(name))
        path = out / f"{name}{corpus.TOKENISED}"
        made.save(path)
        written.append({"source": name, "documents": len(made), "pieces": made.tokens, "bytes": path.stat().st_size})
    return written


def _limits(text: str | None, names: list[str]) -> dict[str, int]:
    """'enwiki=1000000' as pieces by source."""
    found = {}
    for item in text.split(",") if text else ():
        name, value = (part.strip() for part in item.partition("=")[::2])
        if name not in names or not value.isdecimal() or int(value) < 1:
            raise ValueError(f"--limit {item!r}: write NAME=PIECES; the corpus has {', '.join(names)}")
        found[name] = int(value)
    return found


def replacement_ids(tokenizer: Tokenizer) -> np.ndarray:
    """(R,) ids that a masked-LM replacement is drawn from: the vocabulary without specials and unused entries."""
    vocabulary = tokenizer.get_vocab()
    return np.array(sorted(i for token, i in vocabulary.items() if not (token.startswith("[") and len(token) > 1)))
