"""What the commands finetune, evaluate and export do."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import Any

from bert_core.load import load_model, locate
from bert_core.model import Model
from bert_core.training import datasets
from bert_core.training.cards import sittings_of
from bert_core.training.finetune import FineTuneRecipe, finetune, steps_of
from bert_core.training.folder import begun_folder, check_free, write_adapter, write_full
from bert_core.training.packing import Special
from bert_core.training.pretrain import pick_device, pick_precision
from bert_core.training.start import updates_of
from bert_core.training.taskdata import TASKS

#: The model that a task is measured on unless another is named.
DEFAULT_MODEL = {
    "mlm": "twin-bert", "clm": "twin-gpt", "nsp": "twin-bert", "blimp": "twin-bert", "cloze": "twin-bert",
    **{name: f"twin-bert-{name}" for name in TASKS},
}
#: What `evaluate --all` runs: (task, model); BLiMP for both twins.
ALL = (*DEFAULT_MODEL.items(), ("clm", "twin-rtl"), ("blimp", "twin-gpt"))


def run_evaluate(args: argparse.Namespace) -> Any:
    """Scores of one task, or of every task on its shipped model.

    Of several, one whose data are there but can't be used says so in its place; the others keep their scores.
    """
    if not args.all:
        return evaluate(args.task, args.model or DEFAULT_MODEL[args.task], args.data, args.seeds, args.limit)
    from bert_core.training.evaluate_tasks import FEWEST_ROWS

    if args.data and Path(args.data).is_file():
        raise ValueError(f"--data {args.data!r} is a file; evaluate --all needs the folder that holds every task's")
    for task, _ in ALL:  # what is not there is said before the first is scored, not when hours of them are
        _file_of(task, args.data)
    if args.limit is not None and args.limit < FEWEST_ROWS:
        raise ValueError(f"evaluate --all has a correlation (stsb), which needs {FEWEST_ROWS} rows at least; give a "
                         "greater --limit")
    return [_evaluated(task, model, args) for task, model in ALL]


def _evaluated(task: str, model: str, args: argparse.Namespace) -> dict[str, Any]:
    """Scores, or why there are none."""
    try:
        return evaluate(task, model, args.data, args.seeds, args.limit)
    except (ValueError, OSError) as error:
        return {"task": task, "model": model, "error": " ".join(str(error).split())}


def evaluate(task: str, model: str, data: str | None, seeds: int, limit: int | None) -> dict[str, Any]:
    """Scores of one model on one task."""
    from bert_core.training.evaluate import LANGUAGE_TASKS

    path = _file_of(task, data)
    if task in LANGUAGE_TASKS:
        found = LANGUAGE_TASKS[task](load_model(model), path, seeds=seeds, limit=limit)
    else:
        found = _labelled(task, model, path, limit)
    return {"task": task, "model": model, **found}


def _file_of(task: str, data: str | None) -> Path:
    """Where the rows of a task are.

    Raises:
        ValueError: nowhere.
    """
    from bert_core.training.evaluate import CLOZE

    if task == "cloze":
        path = Path(data) if data else CLOZE
        if not path.exists():
            raise ValueError(f"--data {data!r} is not there; without it the shipped items are scored")
        return CLOZE if path.is_dir() else path  # a data folder, which has no such items
    if data is None:
        raise ValueError(f"evaluate --task {task} needs --data: a folder with {datasets.PLACES[task][1]}, or that file")
    return datasets.find(data, task)


def _labelled(task: str, model: str, path: Path, limit: int | None) -> dict[str, Any]:
    """Scores of a shipped head; one model, so that the seeds have nothing to vary."""
    from bert_core.serving.local import LocalEngine
    from bert_core.training.evaluate_tasks import LABELLED_TASKS

    engine = LocalEngine(model, pack=False)
    try:
        found = LABELLED_TASKS[task](engine, path, limit)
    finally:
        engine.close()
    metrics = [name for name, value in found.items() if isinstance(value, float)]
    return {**found, **{f"{name}_std": 0.0 for name in metrics}}


def run_finetune(args: argparse.Namespace) -> dict[str, Any]:
    """Train a task on top of a model and write it as a folder.

    Raises:
        ValueError: OUT holds files already, or model, data or start don't fit the task.
    """
    check_free(Path(args.out), spare=("curve.jsonl",))  # a run that was stopped leaves its curve
    task = TASKS[args.task]
    device = pick_device(args.device)
    base = load_model(args.model, device=device)
    if not isinstance(base.model, Model) or base.config.model_type != "bert" or base.config.is_decoder:
        raise ValueError(f"finetune works on a both-way BERT; {args.model} is not one")
    path = datasets.find(args.data, args.task, training=True)
    rows = task.read(path, base, args.limit, args.seed)
    if not rows:
        raise ValueError(f"no training rows in {str(path)!r}: it is empty, or none of its rows fits the model")
    config = dataclasses.replace(
        base.config, architectures=(task.architecture,), id2label=task.labels, num_labels=max(2, len(task.labels)),
        problem_type="single_label_classification" if task.head == "classification" else None, extra={},
        label_decoding="viterbi" if task.head == "token_classification" else "argmax",
    )
    recipe = FineTuneRecipe(
        epochs=args.epochs, rank=args.rank, batch=args.batch, lr=args.lr, head_lr=args.head_lr, seed=args.seed,
        word_dropout=args.word_dropout,
        precision=pick_precision(args.precision, device),
    )
    earlier = updates_of(args.warm_start, args.model, config) if args.warm_start else None
    before = sittings_of(locate(args.warm_start)) if args.warm_start else None
    special = Special.of(base.tokenizer.backend)
    with begun_folder(args.out) as out:
        learned, seconds = finetune(base.model, config, task, rows, recipe, special, out / "curve.jsonl", earlier)
        if args.rank and base.info.shipped and "shared_from" not in base.config.extra:  # updates don't stand on updates
            write_adapter(out, config, learned, args.model, recipe.scale)
        else:
            write_full(out, config, base, learned, recipe.scale)
        settings = {k: v for k, v in vars(args).items() if k not in ("run", "command", "json")}
        steps = steps_of(len(rows), args.batch, args.epochs)
        summary = {"rows": len(rows), "steps": steps, "seconds": round(seconds)}
        record = {**settings, **summary, **({"before": before} if before else {})}
        (out / "run.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return {"task": args.task, "model": args.model, "out": str(out), **summary}


def run_export(args: argparse.Namespace) -> dict[str, Any]:
    """Write a model as a folder that transformers opens on its own; what it was and can't stay is said."""
    from bert_core.training.folder import export, exported_class

    loaded = load_model(args.name)
    found = {"name": args.name, "folder": args.folder, "files": export(loaded, Path(args.folder))}
    was, now = loaded.config.architectures, exported_class(loaded)
    if was != now:
        found["left_out"] = f"{was[0]} is written as {now[0]}: the rest of its heads is not read here"
    return found
