"""What the Masking page draws, as plain data for its components."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bert_core.counting import counted
from bert_core.measures.masking import SPLIT, Tally, share_band
from bert_core.measures.predictions import Contrast, Gap, Scatter
from bert_core.tokenizer import Encoding
from bert_core.training.corruption import KEPT, OUTCOMES, UNTOUCHED, Corrupted

#: What is this close to 1 is 1 but for the rounding of float32.
CERTAIN = 1 - 1e-6


def guess_rows(gap: Gap) -> list[dict[str, Any]]:
    """The rows of one list: the best guesses, and the truth with its rank if it is not among them."""
    truth = gap.truth
    rows: list[dict[str, Any]] = [
        {"t": guess.token, "p": guess.probability, "hit": truth is not None and guess.id == truth.id}
        for guess in gap.guesses
    ]
    if truth is not None and not any(row["hit"] for row in rows):
        rows.append({"t": truth.token, "p": truth.probability, "hit": True, "rank": gap.rank, "gap": True})
    return rows


def near_an_end(probability: float) -> str:
    """'<0.1 %' or '>99.9 %' for what would round to nothing or to certain and is neither; '' for any other."""
    if 0 < probability < 0.001:
        return "<0.1 %"
    return ">99.9 %" if 0.9995 <= probability < CERTAIN else ""


def percent(probability: float) -> str:
    """0.0713 -> '7.1 %', as the components write it; what is not certain is not rounded up to 100 %."""
    if end := near_an_end(probability):
        return end
    close = probability < 0.0995 or 0.995 <= probability < 0.9995
    return f"{100 * probability:.{1 if close else 0}f} %"


def card(title: str, lists: Sequence[tuple[str, Gap]]) -> dict[str, Any]:
    """One gap's card: its title and one named list a run."""
    return {"title": title, "lists": [{"name": name, "rows": guess_rows(gap)} for name, gap in lists]}


def gap_title(gap: Gap, number: int, count: int) -> str:
    """Title of one of several gaps, as `place_title` has it."""
    return place_title(gap.position, gap.truth.token if gap.truth else None, number, count)


def place_title(position: int, hidden: str | None, number: int, count: int) -> str:
    """'Gap 2 at position 7: “cup” is hidden'.

    Args:
        hidden: the token that was there, None where [MASK] was typed.
        number, count: which gap of how many, from 1.
    """
    name = f"Gap {number}" if count > 1 else "The gap"
    return f"{name} at position {position}" + ("" if hidden is None else f": “{hidden}” is hidden")


def scatter_data(
    scatter: Scatter, contrast: Contrast, first: np.ndarray, second: np.ndarray, name_of: Callable[[int], str],
    names: tuple[str, str],
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of the component `vocabulary`.

    Args:
        first, second: (V,) probabilities in the two sentences.
        name_of: id to piece.
        names: what the two sentences are called.
    """

    def rows(ids: Sequence[int]) -> list[dict[str, Any]]:
        return [{"t": name_of(i), "a": float(first[i]), "b": float(second[i])} for i in ids]

    header = {"tokens": [name_of(int(i)) for i in scatter.ids], "low": scatter.low, "first_name": names[0],
              "second_name": names[1], "up": rows(contrast.up), "down": rows(contrast.down)}
    arrays = {"first": scatter.first.astype(np.float32), "second": scatter.second.astype(np.float32),
              "counts": scatter.counts.astype(np.uint32)}
    return header, arrays


def draw_data(encoding: Encoding, drawn: Corrupted, losses: np.ndarray | None, name_of: Callable[[int], str],
              tally: Tally) -> dict[str, Any]:
    """Header of the component `corruption`: one draw token by token, and the tally."""
    loss_at = {} if losses is None else dict(zip(drawn.positions.tolist(), losses.tolist(), strict=True))
    tokens = [
        {"was": token, "seen": token if drawn.outcome[n] in (UNTOUCHED, KEPT) else name_of(int(drawn.input_ids[n])),
         "outcome": OUTCOMES[drawn.outcome[n]], "loss": loss_at.get(n)}
        for n, token in enumerate(encoding.tokens)
    ]
    over = f"{counted(tally.draws, 'draw')} over {counted(tally.candidates, 'piece')}"
    return {"tokens": tokens, "tally": _tally_rows(tally), "over": over}


def _tally_rows(tally: Tally) -> list[dict[str, Any]]:
    """Each outcome counted and expected; `share` and `band` are of the chosen pieces, and of none without any."""
    parts = dict(zip(("masked", "random", "kept"), SPLIT, strict=True))
    chosen = sum(tally.counts[name] for name in parts)
    return [
        {"outcome": name, "count": tally.counts[name], "expected": tally.expected[name],
         "deviation": tally.deviation[name],
         **({"share": tally.counts[name] / chosen, "band": share_band(parts[name], chosen)}
            if chosen and name in parts else {"share": None})}
        for name in (*parts, "untouched")
    ]


def loss_line(losses: np.ndarray | None, tokens: int) -> str:
    """What the step's loss is made of, in one sentence."""
    if losses is None:
        return "This model has no masked-LM head, so there is no loss to show."
    if not len(losses):
        return "Nothing was chosen in this draw, so there is no loss."
    return (f"Loss of this step: {losses.mean():.2f} nats, the mean over the {counted(len(losses), 'chosen piece')}. "
            f"The other {tokens - len(losses)} tokens add nothing.")
