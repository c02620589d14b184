"""What the Embeddings page draws, as plain data for its components."""

from __future__ import annotations

from typing import Any

import numpy as np

from bert_core.trace import Trace

#: Trace part -> name in the component.
STRIPS = {"token_embeddings": "token", "segment_embeddings": "segment", "position_embeddings": "position",
          "embedding_sum": "sum", "embedding_output": "output"}
#: Up to so many tokens the values travel as float32, beyond as float16.
EXACT_TOKENS = 128


def strip_arrays(trace: Trace) -> dict[str, np.ndarray]:
    """Name -> (T, E) values of each strip that the model has."""
    exact = np.float32 if len(trace) <= EXACT_TOKENS else np.float16
    return {name: getattr(trace, part).astype(exact) for part, name in STRIPS.items() if trace.has(part)}


def strip_decimals(arrays: dict[str, np.ndarray]) -> int:
    """Decimals that hold in a readout of these values: float16 keeps about three."""
    return 6 if arrays["sum"].dtype == np.float32 else 3


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


def similarity_data(cosines: np.ndarray) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and array of the component `maps`: (P, P) cosines of position embeddings."""
    names = [str(n) for n in range(len(cosines))]
    header = {"rows": names, "columns": names, "row_word": "position", "column_word": "position", "size": 640,
              "caption": "Cosine of position embeddings",
              "panels": [{"title": "Cosine", "name": "cosine", "signed": True, "limit": 1.0}]}
    return header, {"cosine": cosines.astype(np.float16)}
