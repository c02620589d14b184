"""The training desk as the pages see it: one for all visitors, runs by their id in the address."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from bert_core.training.live.desk import TrainingDesk
from bert_core.training.live.folder import RUN_ID, RunFolder, Status
from bert_core.training.live.specs import Spec, from_json
from ui import going, notices, rooms, settings, state, visitors
from ui.turns import TURNS

#: Seconds between two looks at an own run that goes on, at another's, which a whole class may be watching, and at one
#: that is paused: another tab, or its owner, may play it.
TICK, WATCHED_TICK, SLOW_TICK = 1.5, 3.0, 5.0
#: The room for which this session's own runs rest.
_RESTED = "_rested_for"
#: What `close` has to close.
_DESKS: list[TrainingDesk] = []


@dataclass(frozen=True)
class RunView:
    """A run as its page shows it.

    Attributes:
        own: whether this visitor steers it.
    """

    id: str
    folder: RunFolder
    spec: Spec
    status: Status
    own: bool


@st.cache_resource(show_spinner=False, max_entries=1)
def desk() -> TrainingDesk:
    """The training desk of this server; its trainer process starts where somebody may soon start a run."""
    made = TrainingDesk(visitors.registry().is_here, keep=settings.run_keep())
    _DESKS.append(made)
    return made


def close() -> None:
    """End the trainer and remove the files of all runs: a server that is told to stop runs no exit handlers."""
    while _DESKS:
        _DESKS.pop().close()


def run_id_of(raw: str) -> str:
    """A run's id out of the address; ValueError if it is none."""
    if not RUN_ID.fullmatch(raw):
        raise ValueError(f"{raw!r} is no run")
    return raw


def current(param: str, kind: str) -> RunView | None:
    """The run that the address names, or that this session began, or that is found again; if it is kept."""
    run_id = chosen(param) or _found_again(param, kind)
    if not run_id:
        if rooms.following() is None:
            desk().make_ready()
        return None
    found = look(run_id, kind)
    if found is None:
        _forget_id(param)
        notices.note("That run is over and its files are gone; start a new one.")
        return None
    remember(param, run_id)
    return found


def _found_again(param: str, kind: str) -> str | None:
    """This visitor's run that still wants the trainer, else, for who comes anew by a plain link, the newest not left.

    Who follows a room finds none of their own in its teacher's picture.
    """
    if rooms.following() is not None:
        return None
    unfinished = desk().unfinished(visitors.current(), kind)
    if unfinished or going.kept(param) is not None:
        return unfinished
    going.keep(param, "")  # it is looked for once, and does not come up later between two clicks
    if not going.is_plain():
        return None
    return next(reversed(desk().runs(visitors.current(), kind)), None)


def chosen(param: str) -> str:
    """Id of the run that the address names, or that this session had here; '' for none."""
    named = state.param(param, run_id_of, "")
    if going.is_by_history():  # the address of then says all, also that there was none
        going.keep(param, named)
    return named or going.kept(param) or ""


def look(run_id: str, kind: str) -> RunView | None:
    """A run by its id; None if it is gone or of another kind."""
    folder = desk().watch(visitors.current(), run_id, may_steer=rooms.following() is None)
    text, status = folder.read_text("spec.json") if folder is not None else None, desk().status(run_id)
    if folder is None or text is None or status is None:
        return None
    spec = from_json(text)
    if spec.kind != kind:
        return None
    return RunView(run_id, folder, spec, status, desk().owns(visitors.current(), run_id))


def begin(key: str, spec: Spec, files: Mapping[str, str], play: bool = True) -> bool:
    """Start this visitor's run and keep it as `key`; where it can't be kept, say so and return False."""
    try:
        run_id = desk().start(visitors.current(), spec, files, play)
    except ValueError as problem:
        st.toast(f"The run was not begun: {problem}.", icon=":material/error:")
        return False
    remember(key, run_id)
    return True


def remember(param: str, run_id: str) -> None:
    """Keep the run in the address, for a reload, and in the session, for a change of page."""
    going.keep(param, run_id)
    if st.query_params.get(param) != run_id:
        state.set_param(param, run_id)


def forget(param: str, kind: str) -> None:
    """Look at no run any more, and let none be found again."""
    desk().leave(visitors.current(), kind)
    _forget_id(param)


def _forget_id(param: str) -> None:
    going.keep(param, "")
    state.set_param(param, None)


def steer(run: RunView, what: str) -> None:
    """Play, pause, step or stop a run; says so if it belongs to somebody else."""
    if not desk().command(visitors.current(), run.id, what):
        notices.note("This run belongs to another visitor: you can watch it. Reset starts one of your own.")


def rest_while_following() -> None:
    """Pause this visitor's own runs once when they begin to follow a room: its teacher's would wait behind them.

    A teacher who looks at their class's page in another tab stops no run of theirs.
    """
    room = rooms.following()
    if room is None or st.session_state.get(_RESTED) == room:
        return
    st.session_state[_RESTED] = room
    if not rooms.registry().is_of(room[0], visitors.current()):
        for one in _DESKS:  # none before anybody trains
            one.rest(visitors.current())


def pace(run: RunView | None) -> float | None:
    """Seconds until a page must look at the run again; None for one that has ended, or none."""
    if run is None or run.status.ended:
        return None
    if run.status.state == "paused":
        return SLOW_TICK
    return TICK if run.own else WATCHED_TICK


def above() -> DeltaGenerator:
    """Room for what stands above `ticking` and may grow by a line: `with above(): ...`

    Streamlit knows a fragment by its place. A click into one that has moved meanwhile is obeyed, but nothing is drawn.
    """
    return st.container()


def ticking(draw: Callable[[], None], seconds: float | None) -> None:
    """Draw once, or again at the pace of a run; what stands before it on the page is `above`.

    A fragment keeps the pace it was made with: when that changes inside it,
    `draw` must rerun the page. What is chosen inside it goes to a teacher's class from here.
    """
    def draw_and_show() -> None:
        with TURNS.one(follows=True, patience=SLOW_TICK):
            draw()
            rooms.publish(st.session_state.get("_page", ""))

    st.fragment(draw_and_show, run_every=seconds)()


def _left(seconds: float | None) -> str:
    """What a run still takes, in the unit that one thinks in."""
    if seconds is None:
        return ""
    return f", about {seconds / 60:.0f} min left" if seconds >= 90 else f", about {max(1, round(seconds))} s left"


def status_text(status: Status) -> str:
    """One line on where a run is."""
    if status.state == "waiting" and not status.place:
        return "Starting …"
    if status.state == "waiting":
        return f"Waiting: place {status.place} in the queue for the trainer."
    if status.state == "running" and not status.step:
        return "Getting ready …"
    done = f"Step {status.step:,} of {status.steps:,}"
    if status.state == "running":
        return f"{done}{_left(status.left)}."
    if status.state == "done":
        return f"Done: {status.steps:,} steps in {status.seconds:.0f} s."
    how = {"paused": "Paused", "failed": "Failed"}.get(status.state, "Stopped")
    reason = f": {status.message}" if status.message else ""
    return f"{how}{reason}. {done}." if status.step else f"{how} before it began{reason}."
