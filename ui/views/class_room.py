"""The Room and Present views of the Class page: a room's controls, the poll, a teacher's links."""

from __future__ import annotations

import html
import io
import urllib.parse

import qrcode
import qrcode.image.svg
import streamlit as st
from qrcode.exceptions import DataOverflowError

from bert_core.counting import counted
from bert_core.figures.class_poll import poll_figure
from bert_core.figures.masking import percent
from bert_core.measures.poll import compare_guesses
from bert_core.serving import Superseded
from bert_core.serving.rooms import MAX_ANSWER, MAX_VALUE, Poll, RoomError, RoomState
from bert_core.tasks.vocabulary import top_predictions
from ui import components, controls, going, notices, presenter, rooms, shell, state, visitors
from ui.state import Here
from ui.tables import table
from ui.views.family_html import draw, heading, small, words_of


def base_address() -> str:
    """Address of this server as the visitor's browser knows it, with a slash at the end; '' if what it says is none."""
    try:
        return urllib.parse.urljoin(st.context.url, ".") if st.context.url else ""
    except ValueError:
        return ""


def qr_code(text: str, label: str) -> str:
    """A QR code as inline SVG, dark on white in both themes; a line instead for what doesn't fit into one."""
    out = io.BytesIO()
    try:
        qrcode.make(text, image_factory=qrcode.image.svg.SvgPathImage, border=3).save(out)
    except (ValueError, DataOverflowError):
        return small("This link is too long for a QR code.")
    data = urllib.parse.quote(out.getvalue().decode("utf-8"))
    return f'<img class="bw-qr" alt="{html.escape(label, quote=True)}" src="data:image/svg+xml,{data}">'


def say_if_local(address: str) -> None:
    """Nobody else's telephone opens an address of this computer's own."""
    if urllib.parse.urlsplit(address).hostname in ("127.0.0.1", "localhost", "::1", None):
        notices.note("This address works on this computer only. For a class, start with “make run ADDRESS=0.0.0.0” and "
                     "open the page by this computer's address in the network (docs/deploy.md).")


# --- the room ----------------------------------------------------------------


def open_first(room: str) -> None:
    """Whoever is in a room, or could not come into one, finds that on the Class page, if no link names another view.

    Args:
        room: the name of the view.
    """
    is_for_it = (rooms.teaching() or rooms.following() or rooms.has_problem()
                 or rooms.registry().left_open(visitors.current()))
    if is_for_it and "view" not in st.session_state and "view" not in st.query_params:
        st.session_state["view"] = room
    rooms.show_problem()


def show_room(here: Here) -> None:
    """Open, join or control a room."""
    if rooms.teaching() is not None:
        _teach(here)
    elif rooms.waits_for_teacher():
        notices.note("Wait for your teacher: the first page that the class is shown opens here by itself. "
                     "Meanwhile there are the lessons, under “Lessons”.")
    elif rooms.following() is not None:
        notices.note(f"You follow room {rooms.following()[0]}. Your pages go where the teacher goes; "
                     "“Let go” above ends that.")
    else:
        _enter()


def _enter() -> None:
    if code := rooms.registry().left_open(visitors.current()):
        with st.container(horizontal=True, vertical_alignment="center"):
            notices.note(f"Room {code}, which you opened, is still open, and its class is waiting.")
            st.button("Take control again", type="primary", on_click=rooms.take_back, args=(code,))
    teach, follow = st.columns(2, gap="large")
    with follow:
        draw(heading("Follow a room"))
        with st.form("_join", border=False):
            st.text_input("Room code", key="_code", max_chars=12, placeholder="such as K7QPM")
            st.form_submit_button("Join", type="primary", on_click=_join)
    with teach:
        draw(heading("Teach with a room"), small(words_of("class")["room"]["teach"]))
        st.button("Open a room", type="primary", on_click=rooms.open_room)
        with st.expander("I have a room and its key"), st.form("_control", border=False):
            st.text_input("Code", key="_control_code", max_chars=12)
            st.text_input("Teacher's key", key="_control_key", max_chars=80, type="password")
            st.form_submit_button("Take control", on_click=_take_control)


# Callbacks, as what they do stands before a line of the run is drawn: one that a newer run ends early loses no click.
def _join() -> None:
    rooms.join(st.session_state["_code"])


def _take_control() -> None:
    rooms.take_control(st.session_state["_control_code"], st.session_state["_control_key"])


def _teach(here: Here) -> None:
    code, key = rooms.teaching()
    address = f"{base_address()}class?room={code}"
    left, right = st.columns([2, 3], gap="large")
    with left:
        draw(f'<p class="bw-code">{html.escape(code)}</p>', qr_code(address, f"Join room {code}"), small(address))
        say_if_local(address)
        with st.expander("Teacher's key"):
            draw(small("Whoever has it controls the room. Keep it to take control again after a reload."))
            st.code(key, language=None)
        st.button("End the room", on_click=rooms.close_room)
    with right:
        _poll(here, code, key)


@st.fragment(run_every=1.0)
def _poll(here: Here, code: str, key: str) -> None:
    """Followers and the poll, live."""
    try:
        room = rooms.registry().teacher_state(code, key)
        draw(f'<p class="bw-figure-number">{room.followers} following</p>')
        draw(heading("Poll: guess the masked word"))
        if room.poll is None:
            _ask(here)
        else:
            _count(here, code, key, room)
    except RoomError as problem:  # the room has ended
        notices.problem(str(problem))


def _ask(here: Here) -> None:
    if "[MASK]" not in here.text:
        notices.note("Put a [MASK] into the sentence above to ask the class for it.")
        return
    if len(here.text) > MAX_VALUE:
        notices.note(f"A poll's sentence has at most {MAX_VALUE:,} characters; yours has {len(here.text):,}.")
        return
    if "mlm" not in state.loaded(here.model).model.heads:
        notices.note(f"{here.model} can't fill gaps, so it can't answer beside the class: choose another under Model, "
                     f"such as {state.OFFERED}.")
        return
    draw(f'<p class="bw-ask">{html.escape(here.text)}</p>')
    if here.text == state.DEFAULT_TEXT:
        notices.note("The start page shows what fits this gap: a class may have seen it. Type a sentence of your own.")
    st.button("Ask the class", type="primary", on_click=rooms.ask, args=(here.text,))


def _count(here: Here, code: str, key: str, room: RoomState) -> None:
    poll = room.poll
    line = small(f"{counted(poll.count, 'guess', 'guesses')} of {counted(room.followers, 'follower')}")
    draw(f'<p class="bw-ask">{html.escape(poll.text)}</p>', line)
    if poll.revealed:
        _result(here, code, key, poll)
    else:
        st.button("Reveal", type="primary", on_click=rooms.reveal,
                  help="Shows the guesses to everyone, beside the model's")
    st.button("End the poll", on_click=rooms.end_poll)


def _result(here: Here, code: str, key: str, poll: Poll) -> None:
    """The guesses beside the model's; what the model says goes to the class, once."""
    loaded = state.loaded(here.model)
    try:
        (trace,) = state.raw_traces([here.request(text=poll.text, pair=None, parts=("mlm_positions", "mlm_logits"))])
        guesses = compare_guesses(poll.guesses, trace, loaded)
        if not poll.answer:
            best = top_predictions(trace.mlm_logits[0], loaded.tokenizer, MAX_ANSWER)
            words = [(one.token, one.probability) for one in best]
            rooms.registry().answer(code, key, poll.number, shell.short_name(here.model), words)
    except Superseded:  # a newer look at the room answers
        return
    except ValueError as problem:  # the engine is busy, or this model can fill no gap
        notices.problem(str(problem))
        draw(table("The class", ["word", "class"], [(word, f"{100 * count / poll.count:.0f} %")
                                                    for word, count in poll.guesses], (1,)))
        return
    components.chart(poll_figure(guesses, here.model), "poll", "Guesses of the class and of the model")
    rows = [(g.word, f"{100 * g.share:.0f} %",
             "not one piece" if g.probability is None else percent(g.probability)) for g in guesses]
    draw(table("The class and the model", ["word", "class", here.model], rows, (1, 2)))


# --- presenting --------------------------------------------------------------


def show_present(here: Here) -> None:
    """Build a link that opens a page for a class, with parts hidden or fixed."""
    titles = {title: name for pages in shell.PAGES.values() for name, title in pages}
    draw(heading("A link for the class"), small(words_of("class")["present"]["link"]))
    left, right = st.columns(2, gap="large")
    with left:
        last = next((title for title, name in titles.items() if name == presenter.last_view().page), "Masking")
        page = titles[controls.choice("Page", list(titles), "open", default=last, as_list=True)]
        large = controls.toggle("Presenter mode: larger type, pages turned by keyboard", "large")
    with right:
        hidden = controls.many("Hide", list(presenter.PARTS), "without")
        fixed = controls.toggle("Fix the controls", "fixed")
    query = {"text": here.text, "pair": here.pair or "", "model": here.model, "present": "1" if large else "",
             "hide": ",".join(hidden), "fix": "1" if fixed else "", **_own_parameters(page)}
    link = f"{base_address()}{page}?" + urllib.parse.urlencode({k: v for k, v in query.items() if v}, doseq=True)
    st.code(link, language=None, wrap_lines=True)
    say_if_local(link)
    opener = f'<p><a href="{html.escape(link, quote=True)}" target="_self">Open it here</a></p>'
    draw(opener, qr_code(link, "This link"))
    if presenter.presentation() != presenter.PLAIN:
        st.button("Leave presenter mode", key="leave_presenter", on_click=presenter.leave)


def _own_parameters(page: str) -> dict[str, str | tuple[str, ...]]:
    """What the page adds to a link: its view and controls as they were when the visitor left it."""
    view = presenter.last_view()
    if view.page != page:
        return {}
    held = {key: value if isinstance(value, tuple) else str(value) for key, value in view.widgets
            if value is not None and key not in view.usual}
    return {key: value for key, value in {**held, **dict(view.parameters)}.items() if key not in going.SHARED}
