"""A token that was chosen stays chosen while its sentence is edited, and when one comes back to its page.

The address names tokens by position. Without this, a word typed in front of a
hidden one would hide its neighbour, a new sentence would come with gaps that
nobody chose, a model that cuts words otherwise would have another word hidden,
and who goes to another page and back would find none. A word that was hidden on
one page is hidden on the next one that hides words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

import streamlit as st

from bert_core import LoadError
from bert_core.tokenizer import Encoding
from ui import chips, going, state
from ui.turns import TURNS

#: Parameters of the address that name positions of the input: 'mask=3,5', 'at=2', 'cut=4-1,4-2'.
POSITIONS = ("mask", "at", "token", "key", "cut")
#: More than this share of the shorter one's words must be the same, in their order, for one to be the other, edited.
SAME = 0.5
#: Pairs of equal tokens in both inputs beyond which nobody looks which is which: that takes longer than it is worth.
MOST_ALIKE = 10_000
#: What a page still has open when one comes back to it with the same sentence.
KEPT = (*POSITIONS, "layer", "head", "off", "step", "neuron", "cell")
#: Page -> its parameter for what is hidden: pages that ask about one word take it over from each other.
HIDES = {"masking": "mask", "attention": "mask", "compare": "at"}
_READ, _HIDDEN = "_read", "_hidden"


class Read(NamedTuple):
    """What a run read: the inputs, the model, and what its address said (`chosen`: of positions).

    `is_other`: the model is not the chosen one, which lacks a head; it makes the picture instead.
    """

    text: str
    pair: str | None
    model: str
    chosen: dict[str, str]
    address: dict[str, str]
    is_other: bool = False


def note(page: str) -> None:
    """Remember what this run reads and where in it something is chosen; after the shared inputs are drawn."""
    address = st.query_params.to_dict()
    st.session_state[_READ] = Read(*_inputs(), state.here().model, _chosen(), address)
    hidden = address.get(HIDES.get(page, ""))
    if hidden or st.session_state.get(_HIDDEN, ("",))[0] == page:  # hidden here, or put back where it was hidden
        st.session_state[_HIDDEN] = (page, *_inputs(), hidden or "")
    bound = going.bound_keys(page)
    st.session_state[f"_left_{page}"] = (
        *_inputs(), {key: address[key] for key in KEPT if key in address and key not in bound})


def read_by(model: str) -> None:
    """Another model than the chosen one makes this run's picture: positions are those of its pieces."""
    before: Read | None = st.session_state.get(_READ)
    if before is not None:
        st.session_state[_READ] = before._replace(model=model, is_other=True)


def come_back(page: str) -> None:
    """Open again what was open when this page was left, if the sentence is the same and the address names nothing."""
    *inputs, kept = st.session_state.get(f"_left_{page}", ("", None, {}))
    kept = dict(kept) if tuple(inputs) == _inputs() else {}
    kept |= _hidden_elsewhere(page, kept)
    if not any(key in st.query_params for key in kept):
        for key, raw in kept.items():
            state.set_param(key, raw)


def _hidden_elsewhere(page: str, kept: dict[str, str]) -> dict[str, str]:
    """The word that was hidden last, on whatever page, if this one hides words and had another one hidden.

    Args:
        kept: what this page had open; several hidden words of which the first is the same stay.
    """
    _, *inputs, hidden = st.session_state.get(_HIDDEN, ("", "", None, ""))
    key, first = HIDES.get(page), hidden.partition(",")[0]
    if key is None or not first.isdecimal() or tuple(inputs) != _inputs():
        return {}
    return {} if kept.get(key, "").partition(",")[0] == first else {key: first if key == "at" else hidden}


def words() -> None:
    """Take what is chosen along to the edited sentence: the shared inputs' on_change.

    What came together with the new words (the browser's Back, a room, an example) is meant for them and stays.
    """
    before: Read | None = st.session_state.get(_READ)
    if before is None or not _is_chosen_still(before):
        return
    name = before.model if before.is_other else state.here().model
    old, new = _encoding(before.model, before.text, before.pair), _encoding(name, *_inputs())
    if not old or not new or old.tokens == new.tokens:
        return
    _move(before.chosen, {was: (now,) for was, now in moved(old.tokens, new.tokens).items()})


def model() -> None:
    """Take what is chosen along to the pieces of another model; at the start of a run, after the shared inputs."""
    before: Read | None = st.session_state.get(_READ)
    name = state.here().model
    if (before is None or before.is_other or before.model == name or (before.text, before.pair) != _inputs()
            or going.is_by_history() or not _is_chosen_still(before)):
        return
    old, new = (_encoding(one, *_inputs()) for one in (before.model, name))
    if old and new:
        _move(before.chosen, same_words(old, new))


def _is_chosen_still(before: Read) -> bool:
    """Whether something was chosen that nobody has put elsewhere since; no link is to blame for what fits no more."""
    for key, raw in before.address.items():
        state.make_own(key, raw)
    return bool(before.chosen) and before.chosen == _chosen()


def _move(chosen: dict[str, str], places: Mapping[int, Sequence[int]]) -> None:
    """Put what was chosen where its words are now."""
    for key, raw in chosen.items():
        kept = _rewrite(raw, places, whole=key == "mask")
        if kept != raw:
            state.set_param(key, kept)


def same_words(old: Encoding, new: Encoding) -> dict[int, tuple[int, ...]]:
    """Position of each token -> positions of what the same characters became in another model's pieces.

    Special tokens go to those of the other model in their order, if it has as many.
    """
    at: dict[tuple[int | None, int], int] = {}
    for n in new.content:
        at |= dict.fromkeys(((new.sequence_ids[n], character) for character in range(*new.offsets[n])), n)
    found = {}
    for n in old.content:
        pieces = (at.get((old.sequence_ids[n], character)) for character in range(*old.offsets[n]))
        found[n] = tuple(dict.fromkeys(piece for piece in pieces if piece is not None))
    ours, theirs = ([n for n, special in enumerate(one.special) if special] for one in (old, new))
    return found | ({n: (m,) for n, m in zip(ours, theirs, strict=True)} if len(ours) == len(theirs) else {})


def moved(old: Sequence[str], new: Sequence[str]) -> dict[int, int]:
    """Position of each old token in the edited input; {} if it is another one.

    Args:
        old, new: tokens, specials included. Of pieces that were exchanged for fewer the first stay.
    """
    steps = _steps(old, new)
    same = [n for kind, start, end, _, _ in steps if kind == "equal" for n in range(start, end) if _is_word(old[n])]
    if len(same) <= SAME * min(sum(map(_is_word, tokens)) for tokens in (old, new)):
        return {}
    found = {}
    for kind, start, end, first, last in steps:
        if kind in ("equal", "replace"):
            found |= dict(zip(range(start, end), range(first, last), strict=False))
    return found


def _steps(old: Sequence[str], new: Sequence[str]) -> list[tuple[str, int, int, int, int]]:
    """difflib's opcodes from one to the other; what repeats itself too often between both ends is exchanged whole."""
    least = min(len(old), len(new))
    start = next((n for n in range(least) if old[n] != new[n]), least)
    end = next((n for n in range(least - start) if old[-1 - n] != new[-1 - n]), least - start)
    here, there = old[start:len(old) - end], new[start:len(new) - end]
    now = Counter(there)
    if sum(count * now[token] for token, count in Counter(here).items()) > MOST_ALIKE:
        inner = [("replace", 0, len(here), 0, len(there))]
    else:
        inner = SequenceMatcher(None, here, there, autojunk=False).get_opcodes()
    return [("equal", 0, start, 0, start),
            *((kind, a + start, b + start, c + start, d + start) for kind, a, b, c, d in inner),
            ("equal", len(old) - end, len(old), len(new) - end, len(new))]


def _is_word(token: str) -> bool:
    """Whether it is one of a sentence's own words: full stops and [SEP] stand in every sentence."""
    return not token.startswith("[") and any(letter.isalnum() for letter in token)


def _rewrite(raw: str, places: Mapping[int, Sequence[int]], whole: bool = False) -> str | None:
    """'3,5' or '4-1,4-2' with every position moved, without what is gone; None if nothing is left, '-' as it is.

    Args:
        places: where each position is now; of several the first counts.
        whole: all of them do, as half a word hidden would give the other half away.
    """
    if raw == "-":
        return raw
    kept = []
    for part in raw.split(","):
        ends = [_place(end, places) for end in part.split("-")]
        if all(ends):
            kept += map(str, ends[0]) if whole else ["-".join(str(found[0]) for found in ends)]
    return ",".join(dict.fromkeys(kept)) or None


def _place(raw: str, places: Mapping[int, Sequence[int]]) -> Sequence[int]:
    """Where this position is now; nowhere if it is none."""
    try:
        return places.get(chips.position(raw), ())
    except ValueError:
        return ()


def _inputs() -> tuple[str, str | None]:
    """Sentence and second sentence, as they are typed now."""
    return st.session_state.get("text") or "", st.session_state.get("pair") or None


def _chosen() -> dict[str, str]:
    """What the address says of positions."""
    return {key: st.query_params[key] for key in POSITIONS if key in st.query_params}


def _encoding(model: str, text: str, pair: str | None) -> Encoding | None:
    """The input as this model's tokenizer cuts it, None if it can't be loaded (the page then says so)."""
    try:
        with TURNS.away(unless=state.engine().has(model)):
            return state.engine().loaded(model).tokenizer.encode(text, pair)
    except (LoadError, ValueError):
        return None
