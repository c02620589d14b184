"""What the views that lay a computation open share: strips of operands, dimension below dimension."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ui import components

_ACTIVATIONS = {"gelu": "GELU", "gelu_new": "GELU", "gelu_pytorch_tanh": "GELU", "relu": "ReLU", "silu": "SiLU"}


def activation_name(name: str) -> str:
    """What a reader calls an activation of config.json."""
    return _ACTIVATIONS.get(name, name)


def strips(label: str, rows: Sequence[tuple[str, np.ndarray]]) -> bytes:
    """Payload of the component `operands`, open at the dimension that weighs most in the last strip.

    Args:
        rows: name and numbers of each strip, all of one length.
    """
    width = len(rows[-1][1])
    return components.pack({
        "label": f"{label}, {width} dimensions", "size": width, "at": int(np.abs(rows[-1][1]).argmax()),
        "rows": [_row(name, float(np.abs(values).max())) for name, values in rows],
    }, {"values": np.stack([values for _, values in rows]).astype(np.float32)})


def _row(name: str, largest: float) -> dict:
    return {"name": name, "limit": largest or 1.0, "note": f"up to ±{largest:.2f}"}
