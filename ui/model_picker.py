"""Models by name: known good ids by task and language, fetched with progress and a way to stop."""

from __future__ import annotations

import functools
import threading
import tomllib
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from bert_core import LoadError, hub
from bert_core.load import HUB_ID
from ui import settings

FACTS = Path(__file__).resolve().parent.parent / "assets" / "facts"
#: Downloads that run at the same moment, over all visitors.
MAX_AT_ONCE = 2
_running = threading.BoundedSemaphore(MAX_AT_ONCE)
_JOB = "_hub_download"


@dataclass(frozen=True)
class Known:
    """One row of assets/facts/known_models.toml.

    Attributes:
        licence: as its publisher states it in `licence_source`; None where that was not found.
        parameters: of the encoder, from sizes.toml; None is counted once loaded.
        safetensors: whether its weights are known to be there as safetensors.
    """

    id: str
    task: str
    language: str
    note: str
    licence: str | None = None
    licence_source: str | None = None
    parameters: int | None = None
    safetensors: bool = True

    @property
    def line(self) -> str:
        """Size, licence and what is special, for the picker."""
        size = f"{self.parameters / 1e6:.0f} million parameters" if self.parameters else "size counted once loaded"
        files = "" if self.safetensors else "; may exist as a pickle only, which is refused"
        licence = self.licence or "licence: see the model's page"
        return f"{size} · {licence} · {self.note}{files}"


@functools.cache
def known() -> tuple[Known, ...]:
    """The models that the picker offers, with their sizes looked up."""
    rows = tomllib.loads((FACTS / "known_models.toml").read_text(encoding="utf-8"))["model"]
    sizes: dict[str, int] = {}
    for row in tomllib.loads((FACTS / "sizes.toml").read_text(encoding="utf-8"))["model"]:
        sizes.setdefault(row["name"], row["parameters"])
    return tuple(Known(**{k: v for k, v in row.items() if k != "size_of"},
                       parameters=sizes[row["size_of"]] if "size_of" in row else None) for row in rows)


class Download:
    """One visitor's download in the background; lives in their session.

    Attributes:
        name: hub id.
        done, total: bytes; total is 0 until the hub has answered.
        problem: one line, '' while there is none.
        finished: whether the files are all here.
    """

    def __init__(self, name: str):
        self.name, self.done, self.total = name, 0, 0
        self.problem, self.finished = "", False
        self._stop = threading.Event()

    @property
    def running(self) -> bool:
        return not (self.problem or self.finished)

    def start(self) -> None:
        """Begin, unless as many as may are already running."""
        if not _running.acquire(blocking=False):
            self.problem = f"{MAX_AT_ONCE} downloads are running already; try again when they are done"
            return
        threading.Thread(target=self._work, name="hub-download", daemon=True).start()

    def stop(self) -> None:
        self._stop.set()

    def _work(self) -> None:
        try:
            hub.download(self.name, self._watch)
            self.finished = True
        except hub.Cancelled:
            self.problem = "stopped; what was fetched is kept for the next try"
        except LoadError as problem:
            self.problem = str(problem)
        except Exception as error:  # a thread has nobody else to tell
            self.problem = f"{self.name}: the download failed ({type(error).__name__})"
        finally:
            _running.release()

    def _watch(self, done: int, total: int) -> None:
        self.done, self.total = done, total
        if self._stop.is_set():
            raise hub.Cancelled(self.name)


# --- the sidebar -------------------------------------------------------------


def draw() -> None:
    """The picker: one closed line until one opens it, so that it costs other runs nothing."""
    box = st.sidebar.expander("Models from the hub", key="_hub_open", on_change="rerun")
    if box.open:
        with box:
            _choices()
            if _JOB in st.session_state:
                _progress()


def _choices() -> None:
    """Task, language, id; or why there is nothing to choose."""
    if not settings.hub_is_on():
        st.caption("Downloads are switched off here. The shipped models need none.")
        return
    task = st.selectbox("Task", list(dict.fromkeys(model.task for model in known())), key="_hub_task")
    languages = list(dict.fromkeys(model.language for model in known() if model.task == task))
    language = st.selectbox("Language", languages, key="_hub_language")
    some = {model.id: model for model in known() if (model.task, model.language) == (task, language)}
    name = st.selectbox("Model id", list(some), key="_hub_id", accept_new_options=True,
                        help="Choose one, or type another id, owner/model.") or ""
    is_id = bool(HUB_ID.fullmatch(name))
    if is_id:
        st.caption(some[name].line if name in some else "An id of your own: its size is counted once loaded.")
    else:
        st.caption(f"“{name[:60]}” is no hub id; it has the form owner/model.")
    st.button("Fetch", key="_hub_fetch", on_click=_fetch, args=(name,), disabled=not is_id)


def _fetch(name: str) -> None:
    old: Download | None = st.session_state.get(_JOB)
    if old is not None:
        old.stop()
    st.session_state[_JOB] = Download(name)
    st.session_state[_JOB].start()


@st.fragment(run_every=1.0)
def _progress() -> None:
    """How far the download is; the way to stop it, and to use what came."""
    job: Download | None = st.session_state.get(_JOB)
    if job is None:
        return
    if job.running:
        share = min(job.done / job.total, 1.0) if job.total else 0.0
        st.progress(share, f"{job.name}: {job.done / 2**20:,.0f} of {job.total / 2**20:,.0f} MiB" if job.total
                    else f"{job.name}: asking the hub")
        st.button("Stop", key="_hub_stop", on_click=job.stop)
    elif job.problem:
        st.caption(f"⚠ {job.problem}")
        if st.button("Close", key="_hub_close", on_click=_forget):
            st.rerun()
    else:
        st.caption(f"{job.name} is here.")
        if st.button("Use it", key="_hub_use", type="primary", on_click=_use, args=(job.name,)):
            st.rerun()


def _forget() -> None:
    st.session_state.pop(_JOB, None)


def _use(name: str) -> None:
    """Make it the visitor's model; the load itself checks everything."""
    _forget()
    st.session_state["model"] = name
