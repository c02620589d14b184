"""What the frame does for classes: a lesson's step, going along, presenter mode, rooms, the tour.

A visitor who uses none of it gets no element from it, only their last view noted for a link.
"""

from __future__ import annotations

import streamlit as st

from ui import going, lesson_line, notices, presenter, rooms, state, tour, training
from ui.state import Here


def begin(page: str) -> None:
    """Before any widget of a run: take on what a room, a lesson or the tour asks for."""
    tour.begin()
    rooms.go_along()
    going.arrive(page)


def draw(page: str, pages: tuple[str, ...]) -> None:
    """Below the heading: what this visitor has in use.

    Args:
        page: name of the page on screen.
        pages: names of all pages in their order.
    """
    lesson_line.draw(page)
    presenter.draw(page, pages)
    rooms.strip(page)
    training.rest_while_following()
    tour.draw(page)


def cover(here: Here) -> None:
    """In place of a page's picture: what a class guesses, it does not read off it first."""
    if rooms.is_covered(here):
        notices.note(rooms.COVERED)
        rooms.drawn()
        notices.ready(here.text, "The picture waits for the reveal.", state.dropped())
        st.stop()


def end(page: str) -> None:
    """Below a page's last widget: what its controls hold now goes to the room and into links.

    In the first run of a page `draw` does not know its controls yet.
    """
    if page not in rooms.NOT_SHOWN:
        presenter.keep_view(page)
        rooms.publish(page)
    rooms.drawn()
