"""Below the film: the curves of a run, or the batch that a step sees."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import streamlit as st

from bert_core.figures import pretrain as figures
from bert_core.figures.pretrain import Level, RunCurves
from bert_core.training.corruption import OUTCOMES
from bert_core.training.live import pairs
from bert_core.training.live.folder import RunFolder
from bert_core.training.live.specs import PretrainSpec
from bert_core.training.packing import IS_NEXT, NO_PAIR
from ui import components, controls, notices, tables
from ui.training import RunView
from ui.views import pretrain_runs

#: Pairs of a batch that are shown.
SHOWN_PAIRS = 5
EMPTY = {name: np.zeros(0, dtype=np.float32) for name in (
    "loss", "accuracy", "nsp_loss", "lr", "gradient", "held_step", "held_loss", "held_accuracy", "held_nsp")}


def draw(run: RunView | None, spec: PretrainSpec, under: RunView | None) -> None:
    """What stands below the film."""
    if controls.view(["Curves", "What a step sees"]) == "Curves":
        curves(run, spec, under)
    else:
        batch(run, spec)


# --- curves ------------------------------------------------------------------


def right_now(run: RunView | None) -> str:
    """The curves' main number, for a line above the film; '' before it was measured."""
    found = (run.folder.arrays("curves") or EMPTY)["held_accuracy"] if run else ()
    return f" Held-out words guessed right: {100 * found[-1]:.0f} %." if len(found) else ""


def curves(run: RunView | None, spec: PretrainSpec, under: RunView | None) -> None:
    """Accuracy over its levels, then losses, rate and gradient; nothing empty before the first run."""
    if run is not None and under is not None and text_of(run) != text_of(under):
        notices.note("The run before learned from another text: its numbers can't be compared with these, so it is "
                     "not drawn.")
        under = None
    runs = [one for one in (run, under) if one is not None]
    shown = [RunCurves(pretrain_runs.name_of(one.spec), one.folder.arrays("curves") or EMPTY, one.spec.causal,
                       before=one is under) for one in runs]
    if not any(len(one.curves["loss"]) for one in shown):  # no run, or one that still waits for the trainer
        notices.note("The curves begin with the first steps: words guessed right, losses, learning rate, gradient.")
        return
    levels = runs[0].folder.values("levels")
    steps = max(spec.steps, *(one.spec.steps for one in runs))
    looks = tuple((str(one.folder.path), one is under, len(seen.curves["loss"]), len(seen.curves["held_step"]))
                  for one, seen in zip(runs, shown))
    drawn_of = (looks, steps, *(levels or {}).items())
    left, right = st.columns([1.15, 1])
    with left:
        components.shared_chart(
            lambda: figures.with_whole_names(figures.accuracy_figure(shown, accuracy_levels(levels), steps)),
            drawn_of, "accuracy", "Held-out words guessed right by step")
        counts = runs[0].folder.values("scored")
        if counts:
            st.html(f'<p class="bw-small">{what_is_scored(**counts)}</p>')
    with right:
        components.shared_chart(
            lambda: figures.with_whole_names(figures.loss_figure(shown, loss_levels(levels), steps)),
            drawn_of, "loss", "Loss by step")
    kinds = (("nsp_loss", "NSP loss (nats)", False), ("lr", "learning rate", False),
             ("gradient", "gradient norm", True))
    for column, (curve, title, log) in zip(st.columns(3), kinds):
        with column:
            if curve == "nsp_loss" and not any(one.spec.nsp for one in runs):
                notices.note("No NSP loss to draw: this run leaves it out.")
            else:
                components.shared_chart(functools.partial(figures.small_figure, shown, curve, title, steps, log),
                                        drawn_of, curve, f"{title} by step")
    numbers(shown)


def text_of(run: RunView) -> str | None:
    """What a run learns from; None for the shipped text."""
    return run.folder.read_text("text.txt") if run.spec.text == "own" else None


def accuracy_levels(levels: Mapping[str, float] | None) -> list[Level]:
    """What one can reach without understanding."""
    if levels is None:
        return []
    return [Level(f"commonest word {100 * levels['commonest']:.0f} %", levels["commonest"]),
            Level(f"lookup by the two neighbours {100 * levels['lookup']:.0f} %", levels["lookup"])]


def what_is_scored(lines: int, known: int) -> str:
    """How many lines the held-out numbers rest on, and whether the run has learned from some of them."""
    rest = f"training has {known:,} of them too: the text repeats itself" if known else "none of them is in training"
    return f"Different lines scored: {lines:,}; {rest}."


def loss_levels(levels: Mapping[str, float] | None) -> list[Level]:
    """The plateau: word frequencies and nothing else."""
    if levels is None:
        return []
    return [Level(f"word frequencies alone {levels['unigram_loss']:.2f}", levels["unigram_loss"])]


def numbers(shown: list[RunCurves]) -> None:
    """The held-out numbers of the curves as a table."""
    found = []
    for run in shown:
        columns = (run.curves[f"held_{kind}"] for kind in ("step", "loss", "accuracy", "nsp"))
        rows = [(int(step), float(loss), float(right), float(nsp)) for step, loss, right, nsp in zip(*columns)]
        found.append(tables.Numbers(run.called(), ("step", "held-out loss (nats)", "guessed right", "NSP right"), rows))
    tables.show_growing(*found)


# --- a batch -----------------------------------------------------------------


@st.cache_resource(show_spinner="Reading the text …", max_entries=4)
def lesson(path: str, _folder: RunFolder | None, own: bool) -> pairs.Lesson:
    """The text of a run as piece ids, to show what its steps saw."""
    return pairs.lesson_of(_folder.read_text("text.txt") if own and _folder else None)


def batch(run: RunView | None, spec: PretrainSpec) -> None:
    """Some pairs of one step: what was chosen, what became of it, where the loss counts."""
    own = spec.text == "own" and run is not None
    found = lesson(str(run.folder.path) if own else "shipped", run.folder if own else None, own)
    step = int(controls.number("Step", 1, spec.steps, "batch", max(1, run.status.step if run else 1)))
    seen = pairs.seen_at(found, spec, step - 1)
    chosen = sum(len(pair.corrupted.positions) for pair in seen)
    total = sum(len(pair.example.ids) for pair in seen)
    notices.note(f"Step {step:,}: {len(seen)} pairs, {total:,} pieces, the loss counts {chosen} of them. "
                 f"The first {min(SHOWN_PAIRS, len(seen))} pairs:")
    data = components.pack({"pairs": [pair_card(pair, found, spec) for pair in seen[:SHOWN_PAIRS]]})
    components.mount("live_batch", "batch_view", data)


def pair_card(pair: pairs.Seen, found: pairs.Lesson, spec: PretrainSpec) -> dict[str, Any]:
    """One pair for the component: tokens with outcome and label, and the NSP label."""
    name = found.tokenizer.id_to_token
    label = "" if pair.example.label == NO_PAIR or not spec.nsp else (
        "IsNext" if pair.example.label == IS_NEXT else "NotNext")
    labels = dict(zip(pair.corrupted.positions.tolist(), pair.corrupted.labels.tolist()))
    tokens = [{"t": name(int(i)), "o": OUTCOMES[int(o)], "y": name(labels[n]) if n in labels else "",
               "b": n >= pair.example.first}
              for n, (i, o) in enumerate(zip(pair.corrupted.input_ids, pair.corrupted.outcome))]
    return {"tokens": tokens, "label": label}

