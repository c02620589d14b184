"""Streamlit's scripts that every page needs and its own HTML doesn't name: fetched together, not one after another.

Its HTML names those of its frame. Those of a text field, a button or a component
are asked for when the first message has named one, and what they import after
that: forty small files, in turns, each a way there and back.
"""

from __future__ import annotations

import functools
import re
from importlib.util import find_spec
from pathlib import Path

SCRIPTS = Path(find_spec("streamlit").origin).parent / "static" / "static" / "js"
#: What every page of the explorer has on it, by the beginning of its file's name.
NEEDED = ("Html", "TextInput", "Selectbox", "Checkbox", "Button", "ButtonGroup", "BidiComponent")
#: An import that is no call: fetched with the file it stands in.
IMPORT = re.compile(r"""(?:from|import)\s*["'`]\./([\w.-]+\.js)["'`]""")


@functools.cache
def needed() -> tuple[str, ...]:
    """File names, with all that they import, in a fixed order; of another Streamlit what is still there."""
    waiting = [path.name for kind in NEEDED for path in SCRIPTS.glob(f"{kind}.*.js")]
    found: dict[str, None] = {}
    while waiting:
        name = waiting.pop(0)
        path = SCRIPTS / name
        if name not in found and path.is_file():
            found[name] = None
            waiting += IMPORT.findall(path.read_text(encoding="utf-8"))
    return tuple(found)
