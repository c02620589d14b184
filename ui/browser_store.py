"""What a visitor's browser keeps for them and this server does not: texts by a key, such as the lessons that are done.

What the browser has counts, as another tab may have changed it. A session tells it what was changed in it, until the
browser says that it has it; a browser that keeps nothing leaves a session with its own changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from ui import components


@dataclass(frozen=True)
class BrowserStore:
    """One thing that is kept, the same in all tabs of a browser.

    Attributes:
        name: of it, in the browser and among the components of a page.
        most: entries of it, and changes that wait for the browser; what was changed first goes first.
        takes: whether a key and its text are an entry. What a browser sends is anybody's.
    """

    name: str
    most: int
    takes: Callable[[str, str], bool]

    def entries(self) -> dict[str, str]:
        """Key -> text, the last changed first."""
        known, changes = self._known(), self._changes()
        of_here = {key: text for key, text in reversed(changes.items()) if text}
        of_before = {key: text for key, text in known if key not in changes}
        return dict(list({**of_here, **of_before}.items())[:self.most])

    def put(self, key: str, text: str) -> None:
        """Keep it; for use in a callback."""
        changes = self._changes()
        changes.pop(key, None)  # what was changed last stands last
        changes[key] = text
        while len(changes) > self.most:
            del changes[next(iter(changes))]

    def forget(self, key: str) -> None:
        """Keep it no longer; for use in a callback."""
        self.put(key, "")

    def ask(self) -> None:
        """Have this page's browser say what it keeps, and take on what was changed here."""
        data = components.pack({"name": f"both-ways.{self.name}", "known": self._known(), "most": self.most,
                                "changes": list(map(list, self._changes().items()))})
        components.mount("store", f"store_{self.name}", data, on_event=self._receive)

    def is_refused(self) -> bool:
        """Whether the browser said that it keeps nothing: it is forbidden to, or full."""
        return st.session_state.get(f"_store_refused_{self.name}", False)

    def _receive(self, message: dict[str, Any]) -> None:
        st.session_state[f"_store_refused_{self.name}"] = message.get("refused") is True
        said, taken = message.get("kept"), message.get("changes")
        if not isinstance(said, list) or not isinstance(taken, list):
            return
        changes = self._changes()
        for key in [key for key, text in changes.items() if [key, text] in taken]:
            del changes[key]
        self._known()[:] = [pair for pair in said[:self.most] if _is_pair(pair) and self.takes(*pair)]

    def _known(self) -> list[list[str]]:
        """What the browser said last: [key, text], the newest first."""
        return st.session_state.setdefault(f"_store_{self.name}", [])

    def _changes(self) -> dict[str, str]:
        """Key -> text, '' for one to forget, of what was changed here and is not in the browser yet."""
        return st.session_state.setdefault(f"_store_changed_{self.name}", {})


def _is_pair(pair: Any) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) for part in pair)
