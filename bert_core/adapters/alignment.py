"""Where pieces stand in a text, for tokenizers that don't say: letter by letter.

Such a tokenizer changes the text before it cuts it: capitals, accents, quotation
marks, full-width letters. Both are compared without them; what is not found
stands between its neighbours.
"""

from __future__ import annotations

import bisect
import functools
import re
import unicodedata
from collections.abc import Sequence

from bert_core.tokenizer import Offsets, Span

#: What pieces carry besides the letters they stand for, at their start and at their end.
_MARKS = re.compile(r"^(?:##|▁|Ġ)(?=.)|(?:</w>|@@)$", re.DOTALL)
#: How many letters of what follows must be right, and how far ahead they may stand, where the next is not as expected.
_TRIES = ((8, 128), (2, 32), (1, 4))


def align(text: str, pieces: Sequence[str], unknown: str | None, marked: bool = False) -> list[Span]:
    """Where each piece stands.

    Args:
        text: what was split.
        pieces: as the vocabulary writes them ('bar', 'ked</w>'), in order.
        unknown: the piece that stands for any letters.
        marked: whether pieces inside a word are ('##ing').

    Returns:
        A Span a piece, in order. A piece without letters of its own has all that
        stands between its neighbours, or else its neighbour's place. Words are
        what stands between spaces; where pieces inside a word are marked, any
        other begins one as well.
    """
    folded = [_fold(char) for char in text]
    letters = "".join(folded)
    origin = [place for place, signs in enumerate(folded) for _ in signs]
    signs = ["" if piece == unknown else "".join(map(_fold, _MARKS.sub("", piece))) for piece in pieces]
    places = [_offsets(text, origin, *one) for one in _filled(_matched(letters, signs), len(letters))]
    starts = [match.start() for match in re.finditer(r"\S+", text)]
    spans: list[Span] = []
    number, last = -1, None
    for piece, place in zip(pieces, places, strict=True):
        word = bisect.bisect_right(starts, place[0])
        if word != last or (marked and not piece.startswith("##")):
            number, last = number + 1, word
        spans.append(Span(*place, number))
    return spans


@functools.lru_cache(maxsize=4096)
def _fold(char: str) -> str:
    """A letter without what tokenizers change: small, without accents, any punctuation as a full stop, no space."""
    signs = []
    for sign in unicodedata.normalize("NFKD", char).lower():
        kind = unicodedata.category(sign)[0]
        if kind == "P":
            signs.append(".")
        elif kind not in "MCZ" and not sign.isspace():
            signs.append(sign)
    return "".join(signs)


def _matched(letters: str, pieces: Sequence[str]) -> list[Offsets | None]:
    """[start, end) of each piece among the letters; None for those without letters and those not found."""
    found: list[Offsets | None] = []
    place = 0
    for number, piece in enumerate(pieces):
        if not piece:
            found.append(None)
            continue
        following = pieces[number + 1:number + 9]
        start = place if letters.startswith(piece, place) else _ahead(letters, place, piece, following)
        found.append(None if start is None else (start, start + len(piece)))
        place = place if start is None else start + len(piece)
    return found


def _ahead(letters: str, place: int, piece: str, following: Sequence[str]) -> int | None:
    """The next place where a piece stands, as what follows it shows."""
    known = following[:following.index("")] if "" in following else following
    for size, far in _TRIES:
        key = piece + "".join(known)[:max(size - len(piece), 0)]
        start = letters.find(key, place, place + far + len(key))
        if start >= 0:
            return start
    return None


def _filled(found: Sequence[Offsets | None], end: int) -> list[Offsets]:
    """The same with a place for each: what was not found stands between its neighbours, or else where one does."""
    before: list[Offsets | None] = []
    after: list[Offsets | None] = []
    for one in found:
        before.append(one or (before[-1] if before else None))
    for one in reversed(found):
        after.append(one or (after[-1] if after else None))
    filled = []
    for one, left, right in zip(found, before, reversed(after), strict=True):
        gap = (left[1] if left else 0, right[0] if right else end)
        filled.append(one or (gap if gap[0] < gap[1] else left or right or (0, 0)))
    return filled


def _offsets(text: str, origin: Sequence[int], start: int, end: int) -> Offsets:
    """Code points of letters [start, end), with the accents that stand behind the last; of no letters all the text."""
    if start == end:
        return len(text) - len(text.lstrip()), len(text.rstrip()) or len(text)
    last = origin[end - 1] + 1
    while last < len(text) and unicodedata.category(text[last])[0] == "M":
        last += 1
    return origin[start], last
