"""What the Embeddings page draws, as plain data for its components."""

from __future__ import annotations

from typing import Any

import numpy as np

from bert_core.trace import Trace

#: Trace part -> name in the component.
ADDENDS = {"token_embeddings": "token", "segment_embeddings": "segment", "position_embeddings": "position"}
STRIPS = {**ADDENDS, "embedding_sum": "sum", "embedding_output": "output"}


def strip_arrays(trace: Trace) -> dict[str, np.ndarray]:
    """Name -> (T, E) values of each strip that the model has."""
    return {name: getattr(trace, part).astype(np.float32) for part, name in STRIPS.items() if trace.has(part)}


def sent_arrays(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the component needs to have every strip, exactly and in few bytes.

    Of an addend each different row (N, E) once, and under its name with `_at` which of them stands at each token,
    (T,) uint16. The sum is left out: added up in this order, in float32, the addends give it to the last bit.
    """
    sent = {"output": arrays["output"]}
    for name in ADDENDS.values():
        if name in arrays:
            sent[name], sent[f"{name}_at"] = _distinct(arrays[name])
    return sent


def _distinct(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each different row once, in the order they come, and the number of the one at each place."""
    first: dict[bytes, int] = {}
    places = [first.setdefault(row.tobytes(), len(first)) for row in rows]
    return rows[np.unique(places, return_index=True)[1]], np.array(places, dtype=np.uint16)


def strip_limits(arrays: dict[str, np.ndarray]) -> dict[str, float]:
    """Ends of the two signed scales: the 99.9th percentile of the absolute values."""
    addends = np.concatenate([np.abs(array).ravel() for name, array in arrays.items() if name != "output"])
    return {"limit": _end(addends), "output_limit": _end(np.abs(arrays["output"]))}


def _end(values: np.ndarray) -> float:
    return max(float(np.percentile(values.astype(np.float64), 99.9)), 1e-6)


def settings_name(off: tuple[str, ...], kind: str) -> str:
    """What was changed, in words: 'without position, order reversed'."""
    parts = [f"without {' and '.join(off)}"] if off else []
    if kind != "as written":
        parts.append("every position 0" if kind == "all the same" else f"positions {kind}")
    return ", ".join(parts) or "nothing changed"


def similarity_data(cosines: np.ndarray, first: int = 0) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and array of the component `maps`: (P, P) cosines of position embeddings, the lower triangle by rows.

    Args:
        first: the first position that a token gets.
    """
    names = [str(n) for n in range(first, first + len(cosines))]
    header = {"rows": names, "columns": names, "row_word": "position", "column_word": "position", "size": 640,
              "caption": "Cosine of position embeddings", "at": [5, 6],  # with itself a position says nothing
              "panels": [{"title": "Cosine", "name": "cosine", "signed": True, "limit": 1.0, "triangle": True}]}
    return header, {"cosine": cosines[np.tril_indices(len(cosines))].astype(np.float32)}
