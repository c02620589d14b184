"""From a Trace to what the attention component draws: a header and a few small arrays.

Dimensions: L layers, H heads, T tokens, S cells of a thumbnail's side.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_core.measures.attention import head_numbers, special_names, thumbnails, word_groups
from bert_core.measures.head_places import KINDS, HeadPlaces
from bert_core.trace import Array, Trace

#: Cells of a thumbnail's side.
THUMBNAIL = 40
#: If all layers take no more bytes than this they are all sent exactly.
ALL_EXACT_BYTES = 320 * 1024


def heads_payload(
    trace: Trace, layer: int, head: int = 0, mode: str = "look", roles: Sequence[str] | None = None,
    every_layer: bool = False,
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Every head as a thumbnail, the open layer exactly.

    Args:
        trace: with attention_probs (L, H, Tq, Tk).
        layer: 0-based, sent exactly; all layers are where they are small.
        mode: 'look', or 'act' where a click switches off and cuts.
        roles: a line for each head, layer by layer; shown on its card.
        every_layer: send all layers exactly whatever their size.

    Returns:
        Header, and arrays: `thumbs` (L, H, S, S) uint8 of round(255 sqrt(p)),
        the largest weight of each cell; `exact` (layers sent, H, T, T) uint16 of
        round(65535 sqrt(p)), off by at most 0.00002; `numbers` (7, L, H)
        float32, the fields of HeadNumbers.
    """
    probs = trace.attention_probs
    layers, heads, length = probs.shape[:3]
    small = 2 * probs.size <= ALL_EXACT_BYTES
    exact = list(range(layers)) if small or every_layer else [layer]
    thumbs = thumbnails(probs, THUMBNAIL)
    header = describe(trace) | {
        "mode": mode, "layers": layers, "heads": heads, "layer": layer, "head": head, "exact": exact,
        "size": thumbs.shape[-1], "off": sorted(a * heads + b for a, b in trace.request.heads_off),
        "cut": sorted(q * length + k for q, k in trace.request.cut),
    }
    if roles is not None:
        header["roles"] = list(roles)
    arrays = {"thumbs": thumbs, "exact": quantise16(probs[exact]),
              "numbers": np.stack(head_numbers(trace)).astype(np.float32)}
    return header, arrays


def places_payload(found: HeadPlaces) -> tuple[dict[str, Any], dict[str, Array]]:
    """What the component needs to say of any head where in the shipped sentences it looks most.

    Returns:
        Header `places`: how many sentences were read, the words of those that are shown, and `kinds`, the names of the
        F kinds of words; arrays `place_sentence` (K, L, H) int16, places in that list, `place_query`,
        `place_key` int16, `place_weight` float32, `means` (7, L, H) float32, the fields of HeadNumbers, and
        `kind_share` (F, L, H) and `kind_often` (F,) float32 as in LooksByKind.
    """
    used, sentence = np.unique(found.sentence, return_inverse=True)
    header = {"places": {"read": len(found.sentences), "sentences": [found.sentences[n] for n in used],
                         "kinds": list(KINDS)}}
    return header, {
        "place_sentence": sentence.reshape(found.sentence.shape).astype(np.int16), "place_query": found.query,
        "place_key": found.key, "place_weight": found.weight, "means": np.stack(found.means).astype(np.float32),
        "kind_share": found.kinds.share, "kind_often": found.kinds.often}


def quantise16(probs: Array) -> Array:
    """round(65535 sqrt(p)) as uint16: p comes back within 0.000016, so that a fourth decimal may be off by one."""
    roots = np.sqrt(np.clip(probs, 0.0, 1.0), dtype=np.float32)
    return np.rint(roots * 65535.0).astype(np.uint16)


def map_csv(labels: Sequence[str], weights: Array) -> str:
    """A map as CSV: from in rows, to in columns; labels carry their place, so none can be taken for a formula."""
    names = [f"{n} {label}" for n, label in enumerate(labels)]
    out = io.StringIO()
    rows = csv.writer(out)
    rows.writerow(["from \\ to", *names])
    for name, row in zip(names, weights, strict=True):
        rows.writerow([name, *(f"{p:.6g}" for p in row)])
    return out.getvalue()


def describe(trace: Trace) -> dict[str, Any]:
    """The tokens and what is known of each, as plain JSON."""
    encoding = trace.encoding
    words = [0] * len(encoding)
    for number, group in enumerate(word_groups(encoding)):
        for position in group:
            words[position] = number
    return {
        "id": fingerprint(trace), "tokens": list(encoding.tokens), "special": [int(s) for s in encoding.special],
        "segments": list(encoding.token_type_ids), "words": words, "model": trace.model,
        "kind": trace.attention_kind, "called": special_names(encoding),
    }


def fingerprint(trace: Trace) -> str:
    """The same for the same model, input and masked positions, whatever else was done to the run."""
    request = trace.request
    parts = (trace.model, request.text, request.pair, request.attention, trace.encoding.input_ids)
    return hashlib.sha256(repr(parts).encode("utf-8", "replace")).hexdigest()[:16]
