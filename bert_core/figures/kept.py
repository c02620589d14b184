"""Answers of a masked-LM head that somebody keeps, to put them side by side: lines of a page, rows of a file."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import NamedTuple

from bert_core.figures.masking import percent
from bert_core.measures.predictions import Gap
from bert_core.trace import Trace

#: Guesses of a gap in its line; the file has all that were shown.
IN_LINE = 3
COLUMNS = ("sentence", "second sentence", "hidden", "model", "gap at", "rank", "guess", "probability")


class KeptAnswer(NamedTuple):
    """What was asked, and what came.

    Attributes:
        text, pair: as they were typed.
        masked: positions that were hidden by clicking.
        model: its name.
        gaps: an answer for each gap that had a card.
    """

    text: str
    pair: str | None
    masked: tuple[int, ...]
    model: str
    gaps: tuple[Gap, ...]

    @property
    def hidden(self) -> tuple[str, ...]:
        """The tokens that were hidden there by clicking."""
        return tuple(gap.truth.token for gap in self.gaps if gap.truth is not None)


def kept_answer(trace: Trace, gaps: Sequence[Gap]) -> KeptAnswer:
    """The answer of a run, apart from its arrays."""
    asked = trace.request
    return KeptAnswer(asked.text, asked.pair, asked.masked, trace.model, tuple(gaps))


def gap_lines(answer: KeptAnswer) -> list[str]:
    """A line for each gap: 'position 4: sun 54 %, moon 10 %, light 4.1 %', and the hidden token if it isn't there."""
    lines = []
    for gap in answer.gaps:
        best = [f"{guess.token} {percent(guess.probability)}" for guess in gap.guesses[:IN_LINE]]
        truth = gap.truth
        if truth is not None and truth.token not in [guess.token for guess in gap.guesses[:IN_LINE]]:
            best.append(f"hidden: {truth.token} {percent(truth.probability)}, rank {gap.rank}")
        lines.append(f"position {gap.position}: {', '.join(best)}")
    return lines


def kept_csv(answers: Sequence[KeptAnswer]) -> str:
    """One row for each guess; what a spreadsheet would take for a formula begins with an apostrophe."""
    out = io.StringIO()
    rows = csv.writer(out)
    rows.writerow(COLUMNS)
    for answer in answers:
        asked = [_as_text(word) for word in (answer.text, answer.pair or "", " ".join(answer.hidden), answer.model)]
        for gap in answer.gaps:
            rows.writerows([*asked, gap.position, rank, _as_text(guess.token), f"{guess.probability:.6g}"]
                           for rank, guess in enumerate(gap.guesses, 1))
    return out.getvalue()


def _as_text(cell: str) -> str:
    return f"'{cell}" if cell[:1] in ("=", "+", "-", "@", "\t", "\r", "\n") else cell
