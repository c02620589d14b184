"""This visitor's fine-tuning runs: their examples and their classifiers at any epoch."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from bert_core.load import Loaded
from bert_core.training.live import classifier
from bert_core.training.live.folder import RunFolder
from bert_core.training.live.specs import FinetuneSpec
from bert_core.training.live.tables import Dataset, dataset, read_rows, shipped_task
from ui import state, training, visitors
from ui.training import RunView

#: Runs of this visitor that are drawn together.
SHOWN_RUNS = 4


def runs_of(task: str, run: RunView | None) -> list[RunView]:
    """This visitor's latest run of each way on a task, the present one last; of own tables only the last."""
    ids = [*training.desk().runs(visitors.current(), FinetuneSpec.kind), *([run.id] if run else [])]
    found: dict[str, RunView] = {}
    for run_id in dict.fromkeys(ids):
        one = training.look(run_id, FinetuneSpec.kind)
        if one is not None and one.spec.task == task and (task != "own" or run is None or one.id == run.id):
            found.pop(one.spec.way, None)
            found[one.spec.way] = one
    shown = SHOWN_RUNS if task != "own" else 1  # own tables differ, and so do their scores
    return list(found.values())[-shown:]


def epochs_of(run: RunView) -> int:
    """Passes over the training set that a run will make."""
    planned = run.folder.values("task")
    return planned["epochs"] if planned else 1


@st.cache_resource(show_spinner=False, max_entries=24)
def _data(path: str, task: str, _folder: RunFolder) -> Dataset:
    if task != "own":
        return shipped_task(task)
    return dataset("own", *(read_rows(_folder.read_text(f"{part}.tsv") or "") for part in ("train", "test")))


def data_of(run: RunView) -> Dataset:
    """The examples of a run."""
    return _data(str(run.folder.path), run.spec.task, run.folder)


@st.cache_resource(show_spinner=False, max_entries=4)
def _model(path: str, epoch: int, name: str, _folder: RunFolder, _base: Loaded) -> Loaded:
    return classifier.epoch_model(_folder, epoch, _base, name)


def model_of(run: RunView, epoch: int, name: str = "") -> Loaded:
    """The classifier of a run after `epoch` passes."""
    return _model(str(run.folder.path), epoch, name or f"epoch {epoch}", run.folder, state.loaded(run.spec.base))


def zip_later(run: RunView, epoch: int, name: str) -> Callable[[], bytes]:
    """What makes the classifier's .zip at the click; until then it keeps no model of its own, for as many as wait."""
    folder, base = run.folder, state.loaded(run.spec.base)
    return lambda: classifier.to_zip(classifier.epoch_model(folder, epoch, base, name))
