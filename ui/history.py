"""Back and Forward open a page as its address says.

Streamlit takes out of an address what the page that is left has a control of,
also where the page that comes has one of that name: Back and Forward opened the
first view instead of the one that was there, and wrote over its entry.
"""

from __future__ import annotations

import contextlib
from typing import Any

_ADDRESS = "_address_of_history"


def keep_addresses() -> None:
    """Have nothing taken out of an address that the browser's history brings; where Streamlit's insides differ it is.

    A later click is no matter of history, although the address may be the same still.
    """
    with contextlib.suppress(ImportError, AttributeError):
        from streamlit.runtime.app_session import AppSession
        from streamlit.runtime.state.query_params import QueryParams

        ask, populate = AppSession.request_rerun, QueryParams.populate_from_query_string

        def request_rerun(self: Any, client_state: Any) -> None:
            if client_state is not None and not client_state.is_auto_rerun:
                address = client_state.query_string if client_state.is_history_navigation else None
                setattr(self._session_state.query_params, _ADDRESS, address)
            ask(self, client_state)

        def populate_from_query_string(self: Any, query_string: str, valid_script_hashes: Any = None) -> None:
            if vars(self).pop(_ADDRESS, None) == query_string:
                for control in list(self._bindings_by_param.values()):  # of the page that is left, which would clear it
                    self.unbind_widget(control.widget_id)
            populate(self, query_string, valid_script_hashes)

        AppSession.request_rerun, QueryParams.populate_from_query_string = request_rerun, populate_from_query_string
