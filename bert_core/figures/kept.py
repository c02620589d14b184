"""Answers of a masked-LM head that somebody keeps, to put them side by side: lines of a page, rows of a file."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import NamedTuple

from bert_core.figures.masking import percent
from bert_core.measures.predictions import Gap, Guess
from bert_core.trace import Trace

#: Guesses of a gap in its line; the file has all that were shown.
IN_LINE = 3
COLUMNS = ("sentence", "second sentence", "hidden in all", "model", "gap at", "hidden here", "rank", "guess",
           "probability")


class KeptAnswer(NamedTuple):
    """What was asked, and what came.

    Attributes:
        text, pair: as they were typed.
        masked: positions that were hidden by clicking.
        hidden: their tokens.
        model: its name.
        gaps: an answer for each gap that had a card.
        count: how many gaps there were.
    """

    text: str
    pair: str | None
    masked: tuple[int, ...]
    hidden: tuple[str, ...]
    model: str
    gaps: tuple[Gap, ...]
    count: int

    @property
    def asked(self) -> tuple[str, str | None, tuple[int, ...], str]:
        """What makes two answers answers to the same."""
        return self.text, self.pair, self.masked, self.model


def kept_answer(trace: Trace, gaps: Sequence[Gap], tokens: Sequence[str]) -> KeptAnswer:
    """The answer of a run, apart from its arrays.

    Args:
        tokens: (T,) before any was hidden.
    """
    asked = trace.request
    return KeptAnswer(asked.text, asked.pair, asked.masked, tuple(tokens[n] for n in asked.masked), trace.model,
                      tuple(gaps), len(trace.mlm_positions))


def gap_lines(answer: KeptAnswer) -> list[str]:
    """A line for each gap: 'position 4: “sun” 54 %, “moon” 10 %', and the hidden token if it isn't among them."""
    lines = []
    for gap in answer.gaps:
        best = [_said(guess) for guess in gap.guesses[:IN_LINE]]
        if gap.truth is not None and gap.truth.id not in [guess.id for guess in gap.guesses[:IN_LINE]]:
            best.append(f"hidden: {_said(gap.truth)}, rank {gap.rank}")
        lines.append(f"position {gap.position}: {', '.join(best)}")
    if answer.count > len(answer.gaps):
        lines.append(f"{len(answer.gaps)} of {answer.count} gaps")
    return lines


def _said(guess: Guess) -> str:
    return f"“{guess.token}” {percent(guess.probability)}"


def kept_csv(answers: Sequence[KeptAnswer]) -> str:
    """A row for each guess that was shown, and for a hidden token that is not among a gap's guesses.

    What a spreadsheet would take for a formula begins with an apostrophe.
    """
    out = io.StringIO()
    rows = csv.writer(out)
    rows.writerow(COLUMNS)
    for answer in answers:
        asked = [_as_text(word) for word in (answer.text, answer.pair or "", " ".join(answer.hidden), answer.model)]
        for gap in answer.gaps:
            ranked = list(enumerate(gap.guesses, 1))
            if gap.truth is not None and gap.rank is not None and gap.rank > len(ranked):
                ranked.append((gap.rank, gap.truth))
            here = "" if gap.truth is None else _as_text(gap.truth.token)
            rows.writerows([*asked, gap.position, here, rank, _as_text(guess.token), f"{guess.probability:.6g}"]
                           for rank, guess in ranked)
    return out.getvalue()


def _as_text(cell: str) -> str:
    return f"'{cell}" if cell[:1] in ("=", "+", "-", "@", "\t", "\r", "\n") else cell
