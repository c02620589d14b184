"""Rooms on screen: the teacher's page is published, followers' pages go along.

Nothing is drawn, and nothing asked of the server, unless this visitor opened or
joined a room.
"""

from __future__ import annotations

import html
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import streamlit as st

from bert_core.figures.masking import percent
from bert_core.serving.rooms import Poll, RoomError, Rooms, RoomState, View, tidy_code
from ui import going, notices, state, visitors
from ui.bell import BELL
from ui.state import OWN_SENTENCE, Here

#: Seconds between a follower's own looks at the room, whom the bell calls when there is news, and between a teacher's.
PULSE, TEACHERS_PULSE = 10.0, 2.0
#: Parameter of the address that names the room one follows, so that a reload comes back into it.
ADDRESS = "room"
#: Those that name training runs and a moment in them: who follows has the teacher's there.
RUNS = ("run", "over", "frame", "tune", "beside", "epoch")
#: Pages that a teacher visits without taking the class along.
NOT_SHOWN = ("class",)
#: What a follower sees in place of a picture that would answer the poll.
COVERED = "Guess first: what the model answers here appears when your teacher reveals it."
_ASKED = "_asked"
#: The room that this session followed last and let go of.
_LEFT = "_left_room"
#: Seconds for which a problem is said again by every run.
PROBLEM_STANDS = 8.0


@st.cache_resource(show_spinner=False)
def registry() -> Rooms:
    """All rooms of this process."""
    return Rooms(changed=BELL.ring)


def teaching() -> tuple[str, str] | None:
    """(code, key) of the room this visitor controls."""
    return st.session_state.get("_teaching")


def following() -> tuple[str, str] | None:
    """(code, seat) of the room this visitor follows."""
    return st.session_state.get("_following")


# --- coming and going; for use in callbacks ----------------------------------


def open_room() -> None:
    """Open a room and control it; who teaches follows nobody."""
    let_go()
    with _trying():
        st.session_state["_teaching"] = registry().open(visitors.current())


def take_control(code: str, key: str) -> None:
    """Control a room again with its key, after a reload say, and go to what it shows: the class stays where it is."""
    with _trying():
        room = registry().teacher_state(code, key)
        let_go()
        st.session_state["_teaching"] = (room.code, key)
        if room.view.page:
            state.borrow(room.lent)  # a session that a reload began has made nothing
            going.to(room.view)
            going.keep_nothing(room.view.page)


def take_back(code: str) -> None:
    """Control the room again that this browser opened, without its key."""
    with _trying():
        take_control(code, registry().take_back(code, visitors.current()))


def close_room() -> None:
    """End the room for everyone."""
    _control(registry().close)
    st.session_state.pop("_teaching", None)


def ask(text: str) -> None:
    """Start a poll on the gap in `text`."""
    _control(registry().ask, text)


def reveal() -> None:
    """Show everyone the guesses of the poll."""
    _control(registry().reveal)


def end_poll() -> None:
    """Take the poll off everyone's screen."""
    _control(registry().end_poll)


def join(code: str) -> None:
    """Follow a room; not as a teacher, whose class would be taken along."""
    let_go()
    with _trying():
        if teaching() is not None:
            _stay_alone(code)
            return
        seat = registry().join(code, visitors.current())
        st.session_state["_following"] = (tidy_code(code), seat)
        st.session_state.pop(_LEFT, None)
        state.set_param(ADDRESS, tidy_code(code))
        st.session_state.pop("_room_view", None)  # whoever wandered off goes along again at once


def _stay_alone(code: str) -> None:
    """RoomError for another room than the one that is controlled; a teacher who opens the class's link sees its own."""
    own, other = teaching()[0], tidy_code(code)
    if other != own:
        raise RoomError(f"you control room {own}; end it to follow room {other}")


def let_go() -> None:
    """Stop following; the teacher's runs go too, so that one's own are found again."""
    room = st.session_state.pop("_following", None)
    st.session_state.pop(_ASKED, None)
    BELL.wait_no_more()
    if room is not None:
        st.session_state[_LEFT] = room[0]
        registry().leave(*room)
        going.keep_nothing()
        for key in RUNS:
            state.set_param(key, None)
    state.set_param(ADDRESS, None)


def _control(act: Callable[..., None], *about: str) -> None:
    """Do it in the room that this visitor controls; a second click after its end finds none, which is no news."""
    with _trying():
        if teaching() is not None:
            act(*teaching(), *about)


@contextmanager
def _trying() -> Iterator[None]:
    """Something else is tried: what didn't work before is said no more, and what doesn't now is."""
    st.session_state.pop("_room_problem", None)
    try:
        yield
    except RoomError as problem:
        _keep(problem)


def _keep(problem: RoomError) -> None:
    """What didn't work is said by this run and those of the next seconds.

    A click can be followed by another run at once, a field that lost the focus say, and what only one of them
    said nobody has read.
    """
    st.session_state["_room_problem"] = (str(problem), time.monotonic())


def has_problem() -> bool:
    """Whether something didn't work and has yet to be said for long enough."""
    return "_room_problem" in st.session_state


def show_problem() -> None:
    """The last thing that didn't work, until it has stood long enough or something else was tried."""
    problem, since = st.session_state.get("_room_problem", ("", 0.0))
    if problem and time.monotonic() - since < PROBLEM_STANDS:
        notices.problem(problem)
    else:
        st.session_state.pop("_room_problem", None)


# --- on every page -----------------------------------------------------------


def go_along() -> None:
    """Before any widget of a run: who follows draws what the teacher shows now; what is wrong is said by the strip."""
    if following() is not None:
        with suppress(RoomError):
            _take_on(following()[0], registry().follow(*following()))


def _take_on(code: str, room: RoomState) -> bool:
    """Go where the teacher is and cover what a poll asks; whether anything is new since this visitor's last look."""
    is_other_question = _note_asked(room.poll)
    if not room.view.page or st.session_state.get("_room_view") == (code, room.view):
        return is_other_question
    state.borrow(room.lent)
    going.to(room.view)  # first, as this run may end at any line when a newer one begins
    going.keep_nothing(room.view.page)
    st.session_state["_room_view"] = (code, room.view)
    return True


def _note_asked(poll: Poll | None) -> bool:
    """Remember the sentence that the class is asked for now; whether it was another one before.

    Where the picture comes back its controls have forgotten what they held, so that it is gone to anew.
    """
    asked, before = _asked(poll), st.session_state.get(_ASKED, "")
    if asked == before:
        return False
    if is_covered(state.here()):
        st.session_state.pop("_room_view", None)
    st.session_state[_ASKED] = asked
    return True


def _asked(poll: Poll | None) -> str:
    """The sentence whose gap the class is to guess, '' for none."""
    return "" if poll is None or poll.revealed else poll.text


def is_covered(here: Here) -> bool:
    """Whether this page's picture would answer a poll that this visitor is still asked."""
    return _reads(here, st.session_state.get(_ASKED, ""))


def _reads(here: Here, asked: str) -> bool:
    """Whether this page shows what the model makes of the sentence that the class is asked for."""
    return bool(asked) and here.page not in (*NOT_SHOWN, *OWN_SENTENCE) and here.text.split() == asked.split()


def strip(page: str) -> None:
    """Publish or follow, and say so; nothing for a visitor who is in no room."""
    code = state.given(ADDRESS)
    if code is not None and going.is_by_history() and code == st.session_state.get(_LEFT):
        state.set_param(ADDRESS, None)  # Back is no wish to follow again
    elif code is not None and (following() is None or code != following()[0]):
        join(code)
    if has_problem() and page not in NOT_SHOWN:  # the Class page says it itself
        show_problem()
    if teaching() is not None:
        _publish(page)
    elif following() is not None:
        if st.query_params.get(ADDRESS) != following()[0]:
            state.set_param(ADDRESS, following()[0])
        _follow()


def _publish(page: str) -> None:
    """The teacher's line; a view that the room refuses is said, and costs no control."""
    try:
        registry().teacher_state(*teaching())
    except RoomError as problem:
        st.session_state.pop("_teaching", None)
        notices.problem(str(problem))
        return
    refused = publish(page) if page not in NOT_SHOWN else ""
    if refused:
        notices.problem(f"{refused}; the class keeps what it saw before")
    _teachers_line(not refused and page not in NOT_SHOWN)


@st.fragment(run_every=TEACHERS_PULSE)
def _teachers_line(is_shown: bool) -> None:
    """How many follow, counted anew while the page stands, and whether the class sees it, or will after a reveal."""
    if teaching() is None:
        return
    try:
        room = registry().teacher_state(*teaching())
    except RoomError:  # the room has ended, as the run that follows says
        st.rerun()
    when = " after you reveal the answer" if _reads(state.here(), _asked(room.poll)) else ""
    sees = f"sees this page{when}" if is_shown else "does not see this page"
    st.html(f'<p class="bw-room">Room <strong>{html.escape(room.code)}</strong> · {room.followers} following · '
            f"the class {sees}</p>")


def publish(page: str) -> str:
    """Set what the class sees, for who teaches; gives why the room can't carry it, '' if it can."""
    try:
        if teaching() is not None:
            view = going.present_view(page)
            registry().show(*teaching(), view, state.lend(str(value) for _, value in view.widgets))
    except RoomError as problem:
        return str(problem)
    return ""


def waits_for_teacher() -> bool:
    """Whether this visitor follows a room that has shown no page yet."""
    try:
        return following() is not None and not registry().follow(*following()).view.page
    except RoomError:  # the room has ended, as the strip says
        return False


def drawn() -> None:
    """This run's picture is drawn: the class may draw what is new, and who follows is called at a new address."""
    if teaching() is not None:
        BELL.ring_now(teaching()[0])
    elif following() is not None:
        BELL.moved()


@st.fragment(run_every=PULSE)
def _follow() -> None:
    """Look at the room; go along if the teacher moved on, and draw the page anew for who has let go."""
    if following() is None:
        st.rerun()
    code, seat = following()
    BELL.wait_for(code)  # before the look: what is new after it rings
    try:
        room = registry().follow(code, seat)
    except RoomError as problem:
        let_go()
        _keep(problem)
        st.rerun()
    if _take_on(code, room):
        st.rerun()
    _follower_strip(code, seat, room)


def _follower_strip(code: str, seat: str, room: RoomState) -> None:
    own = _is_elsewhere(room.view)
    with st.container(key="bw_room", horizontal=True, vertical_alignment="center"):
        st.html(f'<p class="bw-room">Following room <strong>{html.escape(code)}</strong>'
                f"{' · you are looking at something of your own' * own}</p>")
        if own:
            st.button("Back to the teacher", key="_back", on_click=come_back)
        st.button("Let go", key="_let_go", on_click=let_go)
        if room.poll is not None:
            _vote(code, seat, room.poll, room.guess)


def _is_elsewhere(view: View) -> bool:
    """Whether this visitor has gone to another page than the room's, or reads another sentence or model there."""
    if not view.page:
        return False
    here, shown = state.here(), dict(view.widgets)
    return here.page != view.page or (here.page not in OWN_SENTENCE and any(
        st.session_state.get(key, shown[key]) != shown[key] for key in going.SHARED if key in shown))


def come_back() -> None:
    """For use in a callback: the next look at the room goes to what it shows, also where that is not new."""
    st.session_state.pop("_room_view", None)


def _vote(code: str, seat: str, poll: Poll, guess: str) -> None:
    """The running poll: one word, or the tally and the model's answer once it is revealed."""
    if poll.revealed:
        st.html("".join(f'<p class="bw-room">{html.escape(line)}</p>' for line in _outcome(poll)))
        return
    with st.form(f"_poll{poll.number}", border=False):
        st.html(f'<p class="bw-ask">{html.escape(poll.text)}</p>')
        key = f"_guess{poll.number}"
        st.text_input("Your guess for the gap: one word", key=key, max_chars=30)
        st.form_submit_button("Send", on_click=_take_guess, args=(code, seat, key, poll))
    said, line = st.session_state.get("_guess_said", ("", ""))
    if said == f"{code} {poll.number}":  # it stays, although the room is looked at again and again
        st.html(line)
    elif guess:  # sent before a reload, or from another tab
        st.html(_counted(guess))


def _counted(guess: str) -> str:
    return f'<p class="bw-room" role="status">Counted: {html.escape(guess)}. A new guess replaces it.</p>'


def _outcome(poll: Poll) -> list[str]:
    """What the class said, and the model as soon as it has answered."""
    best = ", ".join(f"{word} ({count})" for word, count in poll.guesses[:5]) or "nobody guessed"
    lines = [f"The class said: {best}"]
    if poll.answer:
        words = ", ".join(f"{word} ({percent(share)})" for word, share in poll.answer)
        lines.append(f"{poll.model} says: {words}")
    return lines


def _take_guess(code: str, seat: str, key: str, poll: Poll) -> None:
    """Send the guess in the field of that key, and keep what there is to say about it for as long as this poll runs."""
    this, (said, _) = f"{code} {poll.number}", st.session_state.get("_guess_said", ("", ""))
    if said == this and not st.session_state[key].strip():
        return  # the second click of two
    try:
        line = _counted(registry().guess(code, seat, poll.number, st.session_state[key]))
        st.session_state[key] = ""  # by the browser it may be empty before the server has read it, as in class_own.py
    except RoomError as problem:
        line = f'<p class="bw-notice bw-problem" role="alert">{html.escape(str(problem))}</p>'
    st.session_state["_guess_said"] = (this, line)
