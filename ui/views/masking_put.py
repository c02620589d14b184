"""Masking: a guess put into its gap. The gaps that are left are then guessed anew, with it in sight."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

from bert_core.measures.pieces import BEGINS, marks_words
from bert_core.measures.predictions import Gap
from bert_core.tasks.support import trimmed
from bert_core.tokenizer import Encoding, Tokenizer
from ui import chips, components, follow, state
from ui.state import Here
from ui.views import task_models

HINT = "Click a guess to put it into its gap; the other gaps are then guessed again."
#: Scripts that have no space between words: BERT's tokenizer cuts Chinese characters one by one.
_CHINESE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


def mark(cards: Sequence[dict], gaps: Sequence[Gap], tokenizer: Tokenizer) -> None:
    """Say on each card where its gap is, and on each row which piece a click puts there, if it can be written."""
    can_be_put = functools.cache(functools.partial(is_written, tokenizer))  # the same piece is a guess for many gaps
    for card, gap in zip(cards, gaps, strict=True):
        card["position"] = gap.position
        for row, guess in zip(card["lists"][0]["rows"], _in_order(gap), strict=False):
            if can_be_put(guess.id):
                row["put"] = guess.id


def is_written(tokenizer: Tokenizer, index: int) -> bool:
    """Whether somebody could type this piece: no special one, no byte of a character, nothing that is cut otherwise."""
    if index > tokenizer.largest_id or tokenizer.token_of(index) in tokenizer.specials.values():
        return False
    word, goes_on = _written(tokenizer, index)
    if not word.isprintable() or not word.strip() or "\ufffd" in word:
        return False
    read = tokenizer.encode(word)
    return goes_on or [read.input_ids[n] for n in read.content] == [index]


def _written(tokenizer: Tokenizer, index: int) -> tuple[str, bool]:
    """What is typed for a piece, and whether it goes on the word before it."""
    piece = tokenizer.token_of(index)
    if marks_words(tokenizer):
        return tokenizer.decode([index]).strip(), not piece.startswith(BEGINS)
    return piece.removeprefix("##"), piece.startswith("##")


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
        old, new = here.encoding.tokens, tokenizer.encode(text, pair).tokens
        moved = {n: n for n in range(len(old))} if len(old) == len(new) else follow.moved(old, new)
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
    before, (word, goes_on) = text[:start], _written(tokenizer, index)
    if goes_on:
        before = before.rstrip()
    elif before and before[-1].isalnum() and not _CHINESE.match(before[-1]):
        before += " "
    written = before + word + text[end:]
    return (encoding.text, written) if encoding.sequence_ids[position] else (written, encoding.pair)
