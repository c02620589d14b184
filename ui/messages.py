"""What a browser may send over its socket: runs of its own page, and nothing that reaches the others.

Streamlit clears everybody's caches for whoever asks for that, and there the
rooms, the training runs and the visitors of this server are kept. It takes a
text of 25 MB for a field, and reads a component's message without a bound.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamlit.proto.BackMsg_pb2 import BackMsg
    from streamlit.proto.WidgetStates_pb2 import WidgetState

#: Kinds of messages that are answered, and of operations beside the script.
ANSWERED = frozenset({"rerun_script", "stop_script", "app_heartbeat", "file_urls_request", "backend_operation_request"})
OPERATIONS = frozenset({"deferred_file", "dataframe_chunk"})
#: Most characters of a field, more than any page takes, and of a component's message; most bytes of all together.
MOST, MOST_OF_A_MESSAGE, MOST_BYTES = 400_000, 100_000, 4 * 2**20


def bound() -> None:
    """Have every session leave other messages unanswered; where Streamlit's insides are others they are not."""
    with contextlib.suppress(ImportError, AttributeError):
        from streamlit.runtime.app_session import AppSession

        now = AppSession.handle_backmsg

        def handle_backmsg(self: Any, message: BackMsg) -> None:
            if is_answered(message):
                now(self, message)

        AppSession.handle_backmsg = handle_backmsg


def is_answered(message: BackMsg) -> bool:
    """Whether it may be handled; a field's text that is too long is cut in it, as it would be by its page."""
    kind = message.WhichOneof("type")
    if kind == "backend_operation_request":
        return message.backend_operation_request.WhichOneof("payload") in OPERATIONS
    bounded = all(_is_bounded(widget) for widget in message.rerun_script.widget_states.widgets)
    return kind in ANSWERED and bounded and message.ByteSize() <= MOST_BYTES


def _is_bounded(widget: WidgetState) -> bool:
    kind = widget.WhichOneof("value")
    if kind == "string_value" and len(widget.string_value) > MOST:
        widget.string_value = widget.string_value[:MOST]
    return kind not in ("json_value", "json_trigger_value") or _can_be_read(getattr(widget, kind))


def _can_be_read(text: str) -> bool:
    """Whether a component's message is JSON at all; too many brackets or digits are more than Python reads."""
    try:
        json.loads(text[:MOST_OF_A_MESSAGE])
    except (ValueError, RecursionError):
        return False
    return True
