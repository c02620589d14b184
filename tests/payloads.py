"""What a page sends to its components, read back in Python, and a page run without a browser."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parents[1]


def unpack(payload: bytes) -> dict[str, Any]:
    """The header of components.pack, with `arrays`: name -> array."""
    (length,) = struct.unpack_from("<I", payload)
    header = json.loads(payload[4:4 + length])
    arrays = {}
    for name, dtype, shape, offset, size in header["arrays"]:
        start = 4 + length + offset
        arrays[name] = np.frombuffer(payload[start:start + size], dtype=dtype).reshape(shape)
    return {**header, "arrays": arrays}


def visit(page: str, **parameters: object) -> AppTest:
    """Run a page through app.py with parameters of the address."""
    at = AppTest.from_file(ROOT / "app.py", default_timeout=120)
    for key, value in parameters.items():
        at.query_params[key] = str(value)
    at.switch_page(f"pages/{page}.py")
    return at.run()


def drawn(at: AppTest, name: str) -> dict[str, Any]:
    """The payload of the component `name` on a page."""
    found = [element.proto for element in at.get("bidi_component")
             if element.proto.component_name == f"bothways.{name}"]
    assert found, f"no component {name} on the page"
    return unpack(found[0].bytes)


def is_ready(at: AppTest) -> dict[str, Any]:
    """The payload of the last element, after checking that nothing went wrong."""
    assert not at.exception
    return drawn(at, "ready")
