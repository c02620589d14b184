"""What comes by itself, not by a visitor's hand, waits until the picture before it has reached the browser.

A page's own timer, and the bell of a room, ask for a run like a click does. If
one came just as a script had ended, Streamlit took a new runner and threw away
what the old one's had yet to send: a picture was drawn that nobody got. And a
call for a whole page would stop the one that is being drawn: a class would see
nothing for as long as its teacher types. And a tick that was on its way while
the page changed names the one before: answered as that page's, it empties the
new one in the browser.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

#: Seconds between two looks whether a tab's picture is through.
LOOK_AGAIN = 0.02
_WAITING = "_ticks_that_wait"


def wait_for_pictures() -> None:
    """Have every session's ticks wait; other requests go on at once. Where Streamlit's insides are others they don't.

    Every tick brings the address and the page of the last run, not those that its browser still had.
    """
    with contextlib.suppress(ImportError, AttributeError):
        from streamlit.runtime.app_session import AppSession

        now = AppSession.request_rerun

        def request_rerun(self: Any, client_state: Any) -> None:
            if client_state is None or not client_state.is_auto_rerun:
                now(self, client_state)
                return
            if self._scriptrunner is None:
                now(self, of_the_last_run(self, client_state))
                return
            waiting = vars(self).setdefault(_WAITING, {})
            if not waiting:
                asyncio.get_running_loop().call_later(LOOK_AGAIN, look, self)
            waiting[client_state.fragment_id] = client_state

        def look(session: Any) -> None:
            if session._scriptrunner is not None:
                asyncio.get_running_loop().call_later(LOOK_AGAIN, look, session)
                return
            ticks = vars(session).pop(_WAITING)
            for fragment, tick in ticks.items():
                if fragment and "" in ticks:  # its whole page is drawn anew
                    continue
                now(session, of_the_last_run(session, tick))

        def of_the_last_run(session: Any, tick: Any) -> Any:
            tick.query_string = session._client_state.query_string
            tick.page_script_hash = session._client_state.page_script_hash
            return tick

        AppSession.request_rerun = request_rerun
