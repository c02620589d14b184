"""Compare page: what each reader may see, and where its heads look."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_core.figures import theme
from bert_core.measures.compare import allowed_pairs, has_windows, row_for
from bert_core.trace import Trace

Array = np.ndarray

#: Colour of each reader: one meaning, one colour; one-way readers differ by dash, as their cards' upper edges do
#: (compare.css, compare_maps.css).
COLOURS = {"both": theme.BOTH_WAYS, "left": theme.ONE_WAY, "hidden": theme.ONE_WAY, "right": theme.ONE_WAY,
           "elmo": theme.NEUTRAL}
DASHES = {"both": "solid", "left": "solid", "hidden": "dot", "right": "dash", "elmo": "solid"}
MARKERS = {"both": "circle", "left": "triangle-left", "hidden": "x", "right": "triangle-right", "elmo": "diamond"}
#: The same marks as text, for the totals beside a chart.
GLYPHS = {"both": "●", "left": "◀", "hidden": "✕", "right": "▶", "elmo": "◆"}
NAMES = {"both": "BERT, both ways", "left": "GPT, left only", "hidden": "BERT, right side hidden",
         "right": "Right to left", "elmo": "ELMo's way: joined at the end"}
#: Tokens drawn in a map; of longer inputs a window around the chosen place.
MAX_DRAWN = 32


def window_around(length: int, place: int, limit: int = MAX_DRAWN) -> tuple[int, int]:
    """[start, end) of at most `limit` tokens around `place`."""
    start = max(0, min(place - limit // 2, length - limit))
    return start, min(length, start + limit)



def asking_row(trace: Trace, places: Sequence[int]) -> int:
    """The row from which the hidden word is guessed: its own under [MASK], for causal models the one next to it."""
    if not trace.has("lm_logits"):
        return places[0]
    order = trace.config.reading_order
    return row_for(order, len(trace), places[-1] if order == "right-to-left" else places[0])


def side_shares(trace: Trace, places: Sequence[int]) -> dict[str, Array]:
    """How each head splits the attention of the row that guesses the hidden word.

    Args:
        places: positions of the word, in reading order.

    Returns:
        'left', 'itself', 'right' of the hidden word, each (L, H), which sum to
        1. [CLS] counts as left, the last [SEP] as right.
    """
    row = trace.attention_probs[:, :, asking_row(trace, places)]  # (L, H, Tk)
    first, last = min(places), max(places)
    return {"left": row[..., :first].sum(-1), "itself": row[..., first:last + 1].sum(-1),
            "right": row[..., last + 1:].sum(-1)}


def drawn_positions(trace: Trace, places: Sequence[int]) -> list[int]:
    """Positions that a map draws: at most MAX_DRAWN around the hidden word, the row that guesses it, and the specials.

    [CLS] and [SEP] stand far off in a long input and may hold most of a row's weight all the same.
    """
    specials = np.flatnonzero(trace.encoding.special).tolist()
    return sorted({*range(*window_around(len(trace), places[0])), asking_row(trace, places), *specials})


def opening_head(traces: Sequence[Trace]) -> tuple[int, int]:
    """The head (layer, head), 0-based, to open first: in it, what a mask cuts off can be seen.

    Most heads rest on [CLS] or [SEP] under any mask. This one looks most at other words in every reader: of the
    readers' shares the smallest counts.
    """
    shares = [_share_of_words(trace) for trace in traces]
    layers, heads = np.min([share.shape for share in shares], axis=0)
    smallest = np.min([share[:layers, :heads] for share in shares], axis=0)
    layer, head = np.unravel_index(smallest.argmax(), smallest.shape)
    return int(layer), int(head)


def _share_of_words(trace: Trace) -> Array:
    """Share of its attention that a word gives other words, mean over the first MAX_DRAWN words, (L, H).

    A reader that looks both ways has to: twice the share of the side that gets less.
    """
    words = list(trace.encoding.content[:MAX_DRAWN])
    weights = trace.attention_probs[:, :, words][..., words]  # (L, H, W, W)
    left, right = (side.sum(axis=(-2, -1)) / max(len(words), 1) for side in (np.tril(weights, -1), np.triu(weights, 1)))
    return left + right if trace.attention_kind == "causal" else 2 * np.minimum(left, right)


def nearest_head(trace: Trace, layer: int, head: int) -> tuple[int, int]:
    """(layer, head), 0-based: the asked one, or the nearest that this model has."""
    return min(layer, trace.config.num_hidden_layers - 1), min(head, trace.config.num_attention_heads - 1)


def panel(trace: Trace, reader: str, places: Sequence[int], layer: int, head: int, only_mask: bool) -> dict[str, Any]:
    """What a reader's panel says in words; all positions count from the start of the input."""
    layer, head = nearest_head(trace, layer, head)
    return {"reader": reader, "title": NAMES[reader], "model": trace.model, "place": places[0],
            "row": asking_row(trace, places), "drawn": drawn_positions(trace, places), "layer": layer, "head": head,
            "what": _what_is_drawn(trace, layer, head, only_mask),
            "accent": "both" if reader == "both" else "oneway", "tokens": list(trace.encoding.tokens)}


def _what_is_drawn(trace: Trace, layer: int, head: int, only_mask: bool) -> str:
    if not only_mask:
        return f"layer {layer + 1}, head {head + 1}"
    return f"mask of layer {layer + 1}" if has_windows(trace) else "mask"


def panel_arrays(trace: Trace, places: Sequence[int], layer: int, head: int, only_mask: bool) -> dict[str, Array]:
    """The numbers of a reader's panel: the N rows that are drawn, each whole.

    Args:
        places: positions of the hidden word.
        layer, head: 0-based; the nearest there are if this model has fewer.
        only_mask: 1 for every allowed pair instead of the attention.

    Returns:
        weights (N, Tk) float32; allowed (N, Tk) uint8; right (L, H) float32,
        the share of the hidden word's attention that goes to its right.
    """
    layer, head = nearest_head(trace, layer, head)
    rows, allowed = drawn_positions(trace, places), allowed_pairs(trace, layer)
    weights = allowed if only_mask else trace.attention_probs[layer, head]
    return {"weights": weights[rows].astype(np.float32), "allowed": allowed[rows].astype(np.uint8),
            "right": side_shares(trace, places)["right"].astype(np.float32)}


def cut_alike(traces: Sequence[Trace]) -> list[bool]:
    """Whether each run's input has the same pieces as the first one's, whatever [MASK] hides."""
    return [trace.encoding.offsets == traces[0].encoding.offsets for trace in traces]
