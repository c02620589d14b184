"""Fine-tuning runs on screen: which are compared, their examples, and their classifiers at any epoch."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence

import streamlit as st

from bert_core.load import Loaded
from bert_core.training.live import classifier
from bert_core.training.live.folder import RunFolder
from bert_core.training.live.specs import WAYS, FinetuneSpec
from bert_core.training.live.tables import Dataset, dataset, read_rows, shipped_task, task_words
from ui import rooms, state, training, visitors
from ui.training import RunView

#: Parameter of the address: ids of the runs that are drawn together with the present one.
BESIDE = "beside"


def runs_of(task: str, run: RunView | None) -> list[RunView]:
    """The latest run of each way on a task, the present one last; of own tables only one.

    They are this visitor's, or those of a link or a room, which brings what it compares (BESIDE). Runs that have
    not begun are left out while there is one to look at, and those that ended so for good.
    """
    given = _on(task, [*state.param(BESIDE, _ids_of, ()), *([run.id] if run else [])])
    are_mine = all(one.own for one in given) if given else rooms.following() is None
    mine = training.desk().runs(visitors.current(), FinetuneSpec.kind) if are_mine else []
    earlier = _on(task, [run_id for run_id in mine if run_id not in {one.id for one in given}])
    found = [*earlier, *given]
    found = ([one for one in found if len(one.folder.arrays("curves"))]
             or [one for one in found if not one.status.ended])
    if task == "own":  # own tables differ, and so do their scores
        return [one for one in found if run is not None and one.id == run.id] or found[-1:]
    latest: dict[str, RunView] = {}
    for one in found:
        latest.pop(one.spec.way, None)
        latest[one.spec.way] = one
    return list(latest.values())


def _on(task: str, ids: Sequence[str]) -> list[RunView]:
    """Those of the runs that are kept and were made on the task."""
    views = [training.look(run_id, FinetuneSpec.kind) for run_id in dict.fromkeys(ids)]
    return [one for one in views if one is not None and one.spec.task == task]


def _ids_of(raw: str) -> tuple[str, ...]:
    """Ids of runs out of the address, at most one for each way; ValueError if one is none."""
    ids = tuple(map(training.run_id_of, raw.split(",")))
    if len(ids) > len(WAYS):
        raise ValueError(f"{len(ids)} runs are compared with none; at most {len(WAYS)} are")
    return ids


def keep_beside(together: Sequence[RunView], run: RunView | None) -> None:
    """Put the runs that the present one is compared with into the address: a link or a room shows them too."""
    ids = ",".join(one.id for one in together if run is None or one.id != run.id)
    if st.query_params.get(BESIDE, "") != ids:
        state.set_param(BESIDE, ids)


def example(run: RunView) -> str:
    """The sentence that is tried first."""
    words = task_words().get(run.spec.task)
    return words["example"] if words else data_of(run).test[0].text


def sentence_key(run: RunView) -> str:
    """Name of the tried sentence in the address: each task has its own, and so has each table of one's own."""
    table = f"_{zlib.crc32((run.folder.read_text('test.tsv') or '').encode()):08x}" if run.spec.task == "own" else ""
    return f"try_{run.spec.task}{table}"


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
