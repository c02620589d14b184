"""What the Tokens page draws, as plain data for its components."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bert_core.counting import counted
from bert_core.measures.wordpiece import Cut, Word
from bert_core.tokenizer import Encoding

#: Sign in front of a piece or at its end -> what it means.
STARTS = {"Ġ": "Ġ is the space before a word.", "▁": "▁ is the space before a word."}
ENDS = {"</w>": "</w> ends a word.", "@@": "@@ says that the word goes on."}
BYTES = "Other signs than those of English are cut into bytes, each written as a letter of its own: é is Ã©."
#: Pieces of one cut that are drawn; the count says how many there are.
SHOWN_PIECES = 400


def word_data(words: Sequence[Word], chosen: int | None) -> dict[str, Any]:
    """The words, and the look-ups of the chosen one."""
    attempts = words[chosen].attempts if chosen is not None else ()
    return {
        "words": [{"raw": w.raw, "normal": w.normal or "(nothing)", "changed": w.raw != w.normal, "special": w.special}
                  for w in words],
        "word": chosen,
        "attempts": [[{"c": a.candidate, "ok": a.found} for a in group] for group in attempts],
    }


def ladder_note(word: Word | None, longest: int) -> str:
    """What happened to the chosen word, in one sentence."""
    if word is None:
        return "No word to cut."
    if word.special:
        return f"“{word.normal}” is a special token: it is taken whole, before anything is split."
    if not word.attempts:
        return (f"“{word.normal[:20]}…” has {len(word.normal)} characters; beyond {longest} a word is [UNK] "
                "without a look-up.")
    tried = sum(len(group) for group in word.attempts)
    if not word.attempts[-1][-1].found:
        return (f"“{word.normal}”: {tried} look-ups, and no piece fits what is left, "
                "so the whole word becomes [UNK].")
    return (f"“{word.normal}” becomes {counted(len(word.pieces), 'piece')} after {counted(tried, 'look-up')}: "
            "the longest candidate in the vocabulary wins each time.")


def normal_note(words: Sequence[Word]) -> str:
    """How many words normalisation changed."""
    changed = sum(word.raw != word.normal for word in words)
    if not words:
        return "There is no word in the text: only the special tokens remain."
    return (f"{counted(len(words), 'word or sign', 'words and signs')}; normalising changed {changed} of them. "
            "Choose one to see how it is cut.")


def marks_note(encoding: Encoding, byte_level: bool) -> str:
    """How many tokens there are, and what the signs mean that this tokenizer puts into them.

    Args:
        byte_level: whether its pieces are made of bytes.
    """
    pieces = [encoding.tokens[n] for n in encoding.content if n not in encoding.mask_positions]
    notes = [f"{counted(len(encoding), 'token')} {'goes' if len(encoding) == 1 else 'go'} into the model."]
    notes += [words for sign, words in STARTS.items() if any(piece.startswith(sign) for piece in pieces)]
    notes += [words for sign, words in ENDS.items() if any(piece.endswith(sign) for piece in pieces)]
    if byte_level and not all(piece.removeprefix("Ġ").isascii() for piece in pieces):
        notes.append(BYTES)
    return " ".join(notes)


def choose_word(words: Sequence[Word]) -> int | None:
    """The word to open first: the one that took most look-ups."""
    if not words:
        return None
    tried = [sum(len(group) for group in word.attempts) for word in words]
    return tried.index(max(tried))


def id_rows(
    encoding: Encoding, pad_to: int, pad_id: int, positions: Sequence[int], has_segments: bool
) -> list[dict[str, Any]]:
    """Rows of the table: ids, segments, positions, attention mask, with padding on the right.

    Args:
        positions: (T or pad_to,) position ids as the model gives them out; twin-rtl counts from the right.
        has_segments: whether the model tells two sentences apart.
    """
    count = len(encoding)
    extra = max(0, pad_to - count)
    rows = [{"name": "vocabulary id", "kind": "id", "values": [*encoding.input_ids, *[pad_id] * extra]}]
    if has_segments:
        rows.append({"name": "segment", "kind": "segment", "values": [*encoding.token_type_ids, *[0] * extra]})
    rows.append({"name": "position", "kind": "position", "values": list(positions)})
    rows.append({"name": "attention mask", "kind": "mask", "values": [1] * count + [0] * extra})
    return rows


def cut_title(cut: Cut) -> str:
    """'twin-bert, a vocabulary of 30,522': whose pieces, and of how many."""
    return f"{cut.name}, a vocabulary of {cut.vocabulary:,}" if cut.vocabulary else cut.name


def cut_note(cut: Cut, words: int) -> str:
    """'14 pieces for 9 words'."""
    shown = f"; the first {SHOWN_PIECES} are drawn" if len(cut.pieces) > SHOWN_PIECES else ""
    return f"{counted(len(cut.pieces), 'piece')} for {counted(words, 'word')}{shown}"
