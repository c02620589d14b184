"""Masking: a guess put into its gap. The gaps that are left are then guessed anew, with it in sight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bert_core.measures.predictions import Gap
from bert_core.tasks.support import trimmed
from bert_core.tokenizer import Encoding, Tokenizer
from ui import chips, components, follow, state
from ui.state import Here
from ui.views import task_models

HINT = "Click a guess to put it into its gap; the other gaps are then guessed anew."
#: With what a piece begins that begins a word, in the vocabularies of SentencePiece and of byte-level BPE.
BEGINS = ("▁", "Ġ")


def mark(cards: Sequence[dict], gaps: Sequence[Gap], tokenizer: Tokenizer) -> None:
    """Say on each card where its gap is, and on each row which piece a click puts there; no special token."""
    for card, gap in zip(cards, gaps, strict=True):
        card["position"] = gap.position
        for row, guess in zip(card["lists"][0]["rows"], _in_order(gap), strict=False):
            if guess.id <= tokenizer.largest_id and guess.token not in tokenizer.specials.values():
                row["put"] = guess.id


def _in_order(gap: Gap) -> tuple:
    """The pieces of a card's rows: the guesses, and what was hidden."""
    return gap.guesses if gap.truth is None else (*gap.guesses, gap.truth)


def receive(here: Here, masked: Sequence[int], gaps: Sequence[Gap]) -> Callable[[dict[str, Any]], None]:
    """The on_event of the cards: {'put': id, 'gap': position}; of anything else, of the chips above them."""
    hide = chips.receive_positions("mask", len(here.encoding))

    def put_or_hide(message: dict[str, Any]) -> None:
        if "put" not in message:
            hide(message)
            return
        tokenizer = state.loaded(here.model).tokenizer
        place = components.number(message, "gap", len(here.encoding))
        index = components.number(message, "put", tokenizer.largest_id + 1)
        if index not in {guess.id for gap in gaps if gap.position == place for guess in _in_order(gap)}:
            raise components.BadMessage("no guess for this gap")
        text, pair = with_piece(here.encoding, place, index, tokenizer)
        moved = follow.moved(here.encoding.tokens, tokenizer.encode(text, pair).tokens)
        task_models.put(text, pair)
        chips.set_positions("mask", sorted(moved[n] for n in masked if n != place and n in moved))

    return put_or_hide


def with_piece(encoding: Encoding, position: int, index: int, tokenizer: Tokenizer) -> tuple[str, str | None]:
    """Sentence and second sentence with a piece of the vocabulary where one token stands.

    A piece that goes on a word is written to the word before it; one that begins a word, in place of one that went
    on, has a space before it.
    """
    text = (encoding.text, encoding.pair or "")[encoding.sequence_ids[position] or 0]
    start, end = trimmed(text, *encoding.offsets[position])
    piece, before = tokenizer.token_of(index), text[:start]
    marked = any(known.startswith(BEGINS) for known in tokenizer.backend.get_vocab())
    goes_on = not piece.startswith(BEGINS) if marked else piece.startswith("##")
    word = tokenizer.decode([index]).strip() if marked else piece.removeprefix("##")
    if goes_on:
        before = before.rstrip()
    elif before and not before[-1].isspace() and before[-1].isalnum():
        before += " "
    written = before + word + text[end:]
    return (encoding.text, written) if encoding.sequence_ids[position] else (written, encoding.pair)
