"""Models by name: known good ids by task and language, and the offer of one that a link names."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from bert_core import hub
from bert_core.load import HUB_ID
from ui import controls, downloads, notices, settings, state
from ui.downloads import Download

FACTS = Path(__file__).resolve().parent.parent / "assets" / "facts"
#: Places in the session for the download of this picker, and for the one of a link or a typed name.
_PICKED, _OFFERED = "_hub_download", "_hub_offer"


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
        size = (f"{self.parameters / 1e6:.0f} million parameters" if self.parameters
                else "size not known here, counted once loaded")
        files = "" if self.safetensors else "; may exist as a pickle only, which is refused"
        licence = self.licence or "licence not known here: see the model's page"
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


# --- the sidebar -------------------------------------------------------------


def draw() -> None:
    """The picker: one closed line until one opens it, so that it costs other runs nothing."""
    box = st.sidebar.expander("Models from the hub", key="_hub_open", on_change="rerun")
    if box.open:
        with box:
            _choices()
            downloads.show(_PICKED, state.choose_model)


def _choices() -> None:
    """Task, language, id; or why there is nothing to choose."""
    if not hub.is_on():
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
        st.caption(f"“{controls.literal(name[:60])}” is not a hub id, which has the form owner/model.")
    st.button("Fetch", key="_hub_fetch", on_click=_fetch, args=(name,), disabled=not is_id)


def _fetch(name: str) -> None:
    downloads.put(_PICKED, Download(name)).start()


# --- the page ----------------------------------------------------------------


def offer() -> None:
    """Above the page: the model of a link or of a typed name that is not here yet, its size and a way to get it."""
    name = state.chosen_model()
    if not state.waits_for(name):
        downloads.drop(_OFFERED)
        return
    job: Download | None = st.session_state.get(_OFFERED)
    if job is None or job.name != name:
        downloads.put(_OFFERED, Download(name)).ask()
    notices.note(f"{name} is not on this server: until it is, the page shows {settings.default_model()}.")
    for model in known():
        if model.id == name:
            st.caption(model.line)
    downloads.show(_OFFERED)
