"""What a page sends to its components, read back in Python, and a page run without a browser."""

from __future__ import annotations

import functools
import html
import json
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parents[1]
#: How the status of a page begins that could not draw (ui/state.py, `stop`).
NO_PICTURE = "No picture"
#: Seconds that a page's run may take; AppTest's own three are too few where other tests share the processor.
PATIENCE = 120

# Each AppTest looks for components in what all installed packages say of themselves, over a megabyte; they stay.
manifest_scanner.scan_component_manifests = functools.cache(manifest_scanner.scan_component_manifests)


def unpack(payload: bytes) -> dict[str, Any]:
    """The header of components.pack, with `arrays`: name -> array."""
    (length,) = struct.unpack_from("<I", payload)
    header = json.loads(payload[4:4 + length])
    arrays = {}
    for name, dtype, shape, offset, size in header["arrays"]:
        start = 4 + length + offset
        arrays[name] = np.frombuffer(payload[start:start + size], dtype=dtype).reshape(shape)
    return {**header, "arrays": arrays}


def page(name: str, /, **parameters: object) -> AppTest:
    """A page behind app.py with parameters of the address, not run yet."""
    at = AppTest.from_file(ROOT / "app.py", default_timeout=PATIENCE)
    for key, value in parameters.items():
        at.query_params[key] = str(value)
    return at.switch_page(f"pages/{name}.py")


def visit(name: str, /, **parameters: object) -> AppTest:
    """Run a page through app.py with parameters of the address."""
    return page(name, **parameters).run()


def said(at: AppTest) -> str:
    """A page's own words as HTML, every blank a plain one, after checking that nothing went wrong."""
    assert not at.exception
    return "\n".join(element.proto.body for element in at.get("html")).replace("\u00a0", " ")


def table_rows(at: AppTest, caption: str) -> list[list[str]]:
    """The rows of the one table on a page whose caption begins so, each a list of its cells' words."""
    (table,) = [element.proto.body for element in at.get("html") if f"<caption>{caption}" in element.proto.body]
    rows = re.findall(r"<tr>(.*?)</tr>", table.split("<tbody>")[1])
    return [[html.unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)] for row in rows]


def all_drawn(at: AppTest, name: str) -> list[dict[str, Any]]:
    """The payload of every component `name` on a page, in its order."""
    return [unpack(element.proto.bytes) for element in at.get("bidi_component")
            if element.proto.component_name == f"bothways.{name}"]


def drawn(at: AppTest, name: str) -> dict[str, Any]:
    """The payload of the component `name` on a page."""
    found = all_drawn(at, name)
    assert found, f"no component {name} on the page"
    return found[0]


def is_ready(at: AppTest) -> dict[str, Any]:
    """The payload of the last element, after checking that nothing went wrong and that the picture was drawn."""
    problems, ready = _problems(at), drawn(at, "ready")
    assert not ready["status"].startswith(NO_PICTURE), problems
    return ready


def plain_line(at: AppTest) -> str:
    """The one line that a page says instead of its picture, after checking that it draws none."""
    (line,) = _problems(at)
    assert drawn(at, "ready")["status"].startswith(NO_PICTURE)
    return line


def _problems(at: AppTest) -> list[str]:
    return [html.unescape(line) for line in re.findall(r'<p class="bw-notice bw-problem".*?>(.+?)</p>', said(at))]
