"""Which head matters, as the component and a sentence say it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_core.figures.masking import percent
from bert_core.measures.head_effects import HeadEffects
from bert_core.trace import Array

#: The colours end at the largest effect, and at no less than this, in nats: little is not to look like much.
LEAST_END = 0.1
#: Nats below which a head is said to move nothing much.
LITTLE = 0.01
#: Nats that the strongest head has to reach to be named.
NOTHING = 0.001


def effects_payload(
    found: HeadEffects, title: str, off: Sequence[tuple[int, int]]
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and arrays of the component `head_effects`.

    Args:
        title: what was asked.
        off: 0-based (layer, head) that are switched off in the view now.

    Returns:
        Header, and arrays `divergence` (nats) and `after` (probability), (L, H) float32.
    """
    layers, heads = found.divergence.shape
    header = {
        "title": title, "layers": layers, "heads": heads, "answer": found.answer, "before": found.before,
        "first": list(found.first), "end": max(LEAST_END, float(found.divergence.max())),
        "off": sorted(layer * heads + head for layer, head in off)}
    return header, {"divergence": found.divergence.astype(np.float32), "after": found.after.astype(np.float32)}


def in_words(found: HeadEffects) -> str:
    """The strongest head and what it does, the next two, and how many do little."""
    heads, values = found.divergence.shape[1], found.divergence.ravel()
    order = [int(n) for n in np.argsort(-values, kind="stable")]
    if values[order[0]] < NOTHING:
        return f"No head alone moves the answer by as much as {NOTHING:g} nats (KL)."
    best, after = order[0], found.after.ravel()[order[0]]
    then = "" if found.first[best] == found.answer else f", and “{found.first[best]}” comes first"
    said = (f"Without {_name(best, heads)} the answer moves most: {_nats(values[best])} nats (KL), "
            f"“{found.answer}” goes from {percent(found.before)} to {percent(float(after))}{then}.")
    if following := " and ".join(f"{_name(n, heads)} ({_nats(values[n])})" for n in order[1:3]):
        said += f" Next: {following}."
    return said + f" Less than {LITTLE:g} nats: {int((values < LITTLE).sum())} of the {len(values)} heads."


def together_in_words(found: HeadEffects, off: Sequence[tuple[int, int]], together: float) -> str:
    """What several heads do that are off at the same time, beside the sum of what each does alone."""
    alone = sum(found.divergence[layer, head] for layer, head in off)
    return (f"The {len(off)} heads that are off move the answer by {_nats(together)} nats together; "
            f"what each does alone adds up to {_nats(float(alone))}.")


def _name(cell: int, heads: int) -> str:
    layer, head = divmod(cell, heads)
    return f"head {head + 1} of layer {layer + 1}"


def _nats(value: float) -> str:
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"
