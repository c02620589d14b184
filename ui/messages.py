"""What a browser may send over its socket: runs of its own page, and nothing that reaches the others.

Streamlit clears everybody's caches for whoever asks for that, and there the
rooms, the training runs and the visitors of this server are kept. It takes a
text of 25 MB for a field, and reads a component's message without a bound. A
value of another kind than its widget's it keeps, and every later run of that
session fails by it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import json
import math
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from ui import uploads

if TYPE_CHECKING:
    from streamlit.proto.BackMsg_pb2 import BackendOperationRequest, BackMsg
    from streamlit.proto.WidgetStates_pb2 import WidgetState

#: Kinds of messages that are answered, and of operations beside the script.
ANSWERED = frozenset({"rerun_script", "stop_script", "app_heartbeat", "file_urls_request", "backend_operation_request"})
OPERATIONS = frozenset({"deferred_file", "dataframe_chunk"})
#: Most characters of a field, more than any page takes, and of a component's message; most bytes of all together.
MOST, MOST_OF_A_MESSAGE, MOST_BYTES = 400_000, 100_000, 4 * 2**20
#: Most widgets that a message speaks of; pages have some dozens, and a browser that comes back names its old ones.
MOST_WIDGETS = 1000
#: What Streamlit calls a part of a page that runs alone, a request, a session and a file; the log repeats the name.
NAME = re.compile(r"[\w.-]{0,64}", re.ASCII)
#: How the ids of its widgets begin, and most characters of one: the key that a page gives it is a part of it.
WIDGET, MOST_OF_AN_ID = "$$", 1000
#: Files that a session may wait for: they are made one after the other.
MOST_WAITING = 8


def bound() -> None:
    """Have every session leave other messages unanswered; where Streamlit's insides are others they are not."""
    with contextlib.suppress(ImportError, AttributeError):
        from streamlit.runtime.app_session import AppSession

        now, operate = AppSession.handle_backmsg, inspect.unwrap(AppSession._handle_backend_operation_request)

        def handle_backmsg(self: Any, message: BackMsg) -> None:
            if is_answered(message, lambda widget: _kind_of(self, widget)):
                now(self, message)

        @functools.wraps(operate)
        async def in_turn(self: Any, request: Any) -> None:
            turn = vars(self).setdefault("_bw_turn", Turn())
            await turn.take(lambda: operate(self, request))

        AppSession.handle_backmsg, AppSession._handle_backend_operation_request = handle_backmsg, in_turn


class Turn:
    """What a session asks for one after the other: what it waits for holds one of the server's threads, not all."""

    def __init__(self) -> None:
        self._free, self._count = asyncio.Lock(), 0

    async def take(self, make: Callable[[], Awaitable[None]]) -> None:
        """Do it when those before are done; nothing where MOST_WAITING wait already."""
        if self._count > MOST_WAITING:
            return
        self._count += 1
        try:
            async with self._free:
                await make()
        finally:
            self._count -= 1


def _kind_of(session: Any, widget: str) -> str | None:
    """Kind of value that a widget of this session has, None where it isn't known: its page has yet to draw it."""
    with contextlib.suppress(AttributeError, KeyError):
        return session._session_state._new_widget_state.widget_metadata[widget].value_type
    return None


def is_answered(message: BackMsg, kind_of: Callable[[str], str | None] = lambda _: None) -> bool:
    """Whether it may be handled; a field's text that is too long is cut in it, as it would be by its page.

    Args:
        kind_of: id of a widget -> the kind of its value, None where it isn't known.
    """
    kind = message.WhichOneof("type")
    if kind == "backend_operation_request":
        return _is_asked_for(message.backend_operation_request)
    if kind == "file_urls_request":  # Streamlit answers while everybody waits
        asked = message.file_urls_request
        return len(asked.file_names) <= uploads.FILES and message.ByteSize() <= MOST_OF_A_MESSAGE
    widgets = message.rerun_script.widget_states.widgets
    return (kind in ANSWERED and len(widgets) <= MOST_WIDGETS
            and _are_names(message.rerun_script.fragment_id)
            and all(_is_bounded(widget, kind_of(widget.id)) for widget in widgets)
            and message.ByteSize() <= MOST_BYTES)


def _is_asked_for(request: BackendOperationRequest) -> bool:
    """Whether it is one of OPERATIONS, with ids that may stand in the log."""
    operation = request.WhichOneof("payload")
    return (operation in OPERATIONS and request.ByteSize() <= MOST_OF_A_MESSAGE
            and _are_names(request.request_id, request.session_id, getattr(request, operation).file_id
                           if operation == "deferred_file" else ""))


def _are_names(*names: str) -> bool:
    return all(NAME.fullmatch(name) is not None for name in names)


def _is_bounded(widget: WidgetState, wanted: str | None) -> bool:
    """Whether its value can be read, and is of the kind `wanted`, if any is."""
    if not widget.id.startswith(WIDGET) or len(widget.id) > MOST_OF_AN_ID:
        return False
    kind = widget.WhichOneof("value")
    is_its_kind = wanted in (None, kind) or (wanted, kind) == ("double_value", "int_value")  # a field of whole numbers
    if kind is not None and not is_its_kind:  # none at all: the field is empty
        return False
    if kind == "string_value" and len(widget.string_value) > MOST:
        widget.string_value = widget.string_value[:MOST]
    if not all(map(math.isfinite, (widget.double_value, *widget.double_array_value.data))):
        return False
    return kind not in ("json_value", "json_trigger_value") or _can_be_read(getattr(widget, kind))


def _can_be_read(text: str) -> bool:
    """Whether a component's message is JSON at all; too many brackets or digits are more than Python reads."""
    if len(text) > MOST_OF_A_MESSAGE:
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
