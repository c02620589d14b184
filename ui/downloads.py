"""A hub model on its way to this server: its size asked first, then fetched with progress and a way to stop.

Everything that waits for the network is a thread of its own, so that no page does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import streamlit as st

from bert_core import LoadError, hub
from ui import visitors

#: Downloads that run at the same moment, over all visitors.
MAX_AT_ONCE = 2
#: Sizes that are asked at the same moment, over all visitors.
MAX_ASKED = 8
#: Seconds without its tab after which a download ends: it takes one of few places, and nobody could stop it.
LEFT_AFTER = 30.0
_fetching = threading.BoundedSemaphore(MAX_AT_ONCE)
_asking = threading.BoundedSemaphore(MAX_ASKED)


class Download:
    """One visitor's download in the background; lives in their session.

    Attributes:
        name: hub id.
        state: 'asking', 'offered' (its size is known, nothing is fetched), 'fetching', 'finished' or 'failed'.
        done, total: bytes; total is 0 until the hub has answered.
        problem: one line, '' unless it failed.
    """

    def __init__(self, name: str):
        self.name, self.done, self.total = name, 0, 0
        self.state, self.problem = "asking", ""
        self._begun, self._stop = False, threading.Event()
        self._session, self._seen = visitors.session(), time.monotonic()

    @property
    def running(self) -> bool:
        return self.state in ("asking", "fetching")

    def ask(self) -> None:
        """Ask the hub for the size; fetches nothing."""
        self._begin("asking", self._ask, _asking)

    def start(self) -> None:
        """Begin to fetch, unless as many as may are already running."""
        self._begin("fetching", self._fetch, _fetching)

    def stop(self) -> None:
        self._stop.set()

    def _begin(self, state: str, work: Callable[[], str], room: threading.BoundedSemaphore) -> None:
        if self._begun and self.running:  # a second click, before the button was gone
            return
        if not room.acquire(blocking=False):
            self._fail("as many downloads as may are running already; try again when they are done")
            return
        self._begun, self._seen = True, time.monotonic()
        self._stop.clear()
        self.state, self.problem, self.done = state, "", 0
        threading.Thread(target=self._work, args=(work, room), name="hub-download", daemon=True).start()

    def _work(self, work: Callable[[], str], room: threading.BoundedSemaphore) -> None:
        try:
            self.state = work()
        except hub.Cancelled:
            self._fail("stopped; what was fetched is kept for the next try")
        except LoadError as problem:
            self._fail(str(problem))
        except Exception as error:  # a thread has nobody else to tell
            self._fail(f"{self.name}: the download failed ({type(error).__name__})")
        finally:
            room.release()

    def _fail(self, problem: str) -> None:
        self.problem, self.state = problem, "failed"

    def _ask(self) -> str:
        self.total = hub.size(self.name)
        return "offered"

    def _fetch(self) -> str:
        hub.download(self.name, self._watch)
        return "finished"

    def _watch(self, done: int, total: int) -> None:
        self.done, self.total = done, total
        if visitors.is_connected(self._session):
            self._seen = time.monotonic()
        if self._stop.is_set() or time.monotonic() - self._seen > LEFT_AFTER:
            raise hub.Cancelled(self.name)


# --- in a session ------------------------------------------------------------


def put(slot: str, job: Download) -> Download:
    """Make it the session's download in this place; the one before stops."""
    drop(slot)
    st.session_state[slot] = job
    return job


def drop(slot: str) -> None:
    """Stop and forget the download in this place, if there is one."""
    old: Download | None = st.session_state.pop(slot, None)
    if old is not None:
        old.stop()


def show(slot: str, use: Callable[[str], None] | None = None) -> None:
    """Where the download in this place stands, and what can be done about it; looks again each second.

    Args:
        use: called with the name once the visitor says so; None shows the model as soon as it is here.
    """
    if slot in st.session_state:
        _stand(slot, use)


@st.fragment(run_every=1.0)
def _stand(slot: str, use: Callable[[str], None] | None) -> None:
    job: Download | None = st.session_state.get(slot)
    if job is None:
        return
    if job.running:
        _progress(slot, job)
    elif job.state == "offered":
        st.button(f"Download {job.name}, {hub.in_words(job.total)}", key=f"{slot}_start", on_click=job.start)
    elif job.state == "failed":
        st.caption(f"⚠ {job.problem}")
        _again_or_close(slot, job, use is None)
    else:
        _arrived(slot, job, use)


def _progress(slot: str, job: Download) -> None:
    if job.state == "asking" or not job.total:
        st.progress(0.0, f"{job.name}: asking the hub for its size")
    else:
        st.progress(min(job.done / job.total, 1.0),
                    f"{job.name}: {hub.in_words(job.done)} of {hub.in_words(job.total)}")
    if job.state == "fetching":
        st.button("Stop", key=f"{slot}_stop", on_click=job.stop)


def _again_or_close(slot: str, job: Download, is_offer: bool) -> None:
    """After a failure: an offer stays as long as its model is chosen, so it is asked again; another is closed."""
    if is_offer:
        st.button("Try again", key=f"{slot}_again", on_click=job.ask)
    elif st.button("Close", key=f"{slot}_close", on_click=drop, args=(slot,)):
        st.rerun()


def _arrived(slot: str, job: Download, use: Callable[[str], None] | None) -> None:
    if use is None:
        drop(slot)
        st.rerun()
    st.caption(f"{job.name} is here.")
    if st.button("Use it", key=f"{slot}_use", type="primary", on_click=_take, args=(slot, job.name, use)):
        st.rerun()


def _take(slot: str, name: str, use: Callable[[str], None]) -> None:
    """The visitor's model from now on; a second click, sent before the first was answered, changes nothing more."""
    drop(slot)
    use(name)
