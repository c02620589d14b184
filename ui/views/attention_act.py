"""The Attention page's act view: heads off, pairs cut, a window, and what the answers do."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from bert_core.figures.attention import heads_payload
from bert_core.figures.masking import place_title
from bert_core.load import Loaded
from bert_core.measures.ablation import ANSWERS, Moved, answer_moves
from bert_core.model import Model
from bert_core.tasks.sentences import read_logits
from bert_core.tasks.vocabulary import last_place
from bert_core.trace import Trace, TraceRequest
from ui import chips, components, controls, notices, state
from ui.state import Here
from ui.views import attention, attention_sweep

#: Words of the window's list; none is no limit.
WINDOWS = ("none", "0", "1", "2", "3", "5", "8", "13", "21")
#: Pairs and heads that a link may name.
MOST = 4096
#: Heads and pairs that a saved picture names.
NAMED = 6
#: What is asked for the answers, beside the attention.
ASKED = ("attention_probs", *ANSWERS["gap"], *ANSWERS["follows"], "pooled_output", *ANSWERS["class"])
CLASSIFIER = "twin-bert-sst2"


def draw(here: Here) -> None:
    """Controls, the answers before and after, then the grid and the head under the change."""
    layers, heads = attention.sizes(here)
    can_act = isinstance(state.loaded(here.model).model, Model)
    change, place = _change(here, layers, heads) if can_act else ({}, None)
    if not can_act:
        notices.note(f"{here.model} runs through transformers, where no head or pair can be switched off: its answers "
                     "and its attention stand as they are. Choose a BERT, such as twin-bert, to change them.")
    masked = _masked(here)
    plain, changed, judged = _run(here, masked, change)
    blocks = [*answers(here, plain, changed), *_judgement(judged, masked)]
    score = _score(here, plain, changed)
    if score:
        notices.note(score)
    if blocks:
        components.mount("effect", "effect", components.pack(
            {"blocks": blocks, "changed": any(value not in ((), None) for value in change.values())}))
    elif not score:
        notices.note(f"{here.model} has no head that answers anything; its attention still stands below.")
    _say_gap(here, masked)
    if place is not None and blocks:
        _sweep(here, change, _first(here, plain, judged), blocks[0], place)
    layer, _ = attention.opened(here)
    mode = "act" if can_act else "look"
    header, arrays = heads_payload(changed, layer, attention.first_head(here.model)[1], mode=mode)
    header |= {"jump": attention.jump(), "changed": changes_in_words(change, here.encoding.tokens)}
    components.mount("attention", "attention_act", components.pack(header, arrays),
                     on_event=_receive(here, layers, heads))


def _change(here: Here, layers: int, heads: int) -> tuple[dict[str, Any], DeltaGenerator]:
    """What is switched off: the window's control, and what the address names.

    Returns:
        Fields of a TraceRequest, and the place beside these controls for the sweep's switch.
    """
    off, cut = heads_off(layers, heads), pairs_cut(len(here.encoding))
    left, middle, right = st.columns([3.5, 2.9, 4.2], vertical_alignment="bottom")
    with left:
        window = controls.choice("Window: a token sees others at most this far away", WINDOWS, "window", as_list=True)
    with middle:
        alone = controls.many("Feed-forward off in layer", [str(n + 1) for n in range(layers)], "fed")
    any_change = off or cut or alone or window != "none"
    with right, st.container(horizontal=True, vertical_alignment="center"):
        place = st.container(width="content")
        st.button("Undo all changes", on_click=undo, disabled=not any_change)
    return {"heads_off": off, "cut": cut, "window": None if window == "none" else int(window),
            "feed_forward_off": tuple(sorted(int(n) - 1 for n in alone))}, place


def changes_in_words(change: Mapping[str, Any], tokens: Sequence[str]) -> list[str]:
    """Each change in a few words, for below a saved picture: only the first of many heads or pairs are named."""
    off = [f"{layer + 1}-{head + 1}" for layer, head in change.get("heads_off", ())]
    cut = [f"{tokens[query]} to {tokens[key]}" for query, key in change.get("cut", ())]
    fed = [str(layer + 1) for layer in change.get("feed_forward_off", ())]
    lines = [f"{what}{', '.join(some[:NAMED])}{f' and {len(some) - NAMED} more' if len(some) > NAMED else ''}"
             for what, some in (("heads off (layer-head): ", off), ("pairs cut: ", cut),
                                ("without the feed-forward part of layer ", fed)) if some]
    window = change.get("window")
    return lines if window is None else [*lines, f"a token sees others at most {window} away"]


def _masked(here: Here) -> tuple[int, ...]:
    """Which tokens are hidden to be guessed: those chosen here, none where the sentence has a [MASK] of its own."""
    encoding = here.encoding
    if encoding.mask_positions or "mlm" not in state.loaded(here.model).model.heads or not encoding.content:
        return ()
    first = chips.first_choice(encoding)
    return chips.tokens(encoding, key="mask", select="many", selected=(first,), label="Tokens to guess")


def _say_gap(here: Here, masked: Sequence[int]) -> None:
    """What the map below reads where a word of the sentence is hidden."""
    if masked:
        hidden = ", ".join(f"“{here.encoding.tokens[n]}”" for n in masked)
        words = notices.unbroken(f"The map reads the sentence with the gap: [MASK] in place of {hidden}.")
        st.html(f'<p class="bw-small" translate="no">{html.escape(words)}</p>')


def _first(here: Here, plain: Trace, judged: Sequence[Trace]) -> tuple[str, TraceRequest]:
    """Kind (of ablation.ANSWERS) of the first answer on the page, and the run of the whole model that gives it."""
    for kind in kinds(here, plain):
        return kind, replace(plain.request, parts=ANSWERS[kind])
    return "class", judged[0].request


def _sweep(here: Here, change: Mapping[str, Any], first: tuple[str, TraceRequest], shown: Mapping[str, Any],
           place: DeltaGenerator) -> None:
    """Each head off alone, for the first answer on the page.

    Args:
        shown: that answer's block.
        place: where the switch stands.
    """
    layers, heads = attention.sizes(here)
    only_heads = not any(value not in ((), None) for name, value in change.items() if name != "heads_off")
    with place:
        is_on = controls.toggle(attention_sweep.SWITCH, "sweep")
    if is_on:
        attention_sweep.draw(*first, shown, change["heads_off"], only_heads,
                             lambda message: _receive_heads(message, layers, heads))


def _run(here: Here, masked: tuple[int, ...], change: Mapping[str, Any]) -> tuple[Trace, Trace, list[Trace]]:
    """The unchanged run, the changed one, and the classifier's two of them if it is asked, as one batch.

    The classifier judges the whole sentence, before and after: what it makes of one without a word says little.
    """
    mine = state.loaded(here.model)
    asked = here.request(parts=ASKED, masked=masked)
    if "lm" in mine.model.heads:
        asked = replace(asked, parts=(*ASKED, *ANSWERS["next"]), lm_at=(last_place(here.encoding, mine.config),))
    requests = [asked, replace(asked, **change)]
    judge = _classifier(here)
    if judge:
        verdict = TraceRequest(here.text, here.pair, model=judge, parts=ANSWERS["class"])
        requests += [verdict, replace(verdict, **change)]
    plain, changed, *judged = state.traces(requests)
    return plain, changed, judged


def _judgement(judged: Sequence[Trace], masked: Sequence[int]) -> list[dict[str, Any]]:
    """What the classifier makes of the sentence, before and after; nothing where it is not asked."""
    if not judged:
        return []
    judge = judged[0].model
    moved, = answer_moves(state.loaded(judge), "class", *judged)
    title = "Sentiment of the whole sentence" if masked else "Sentiment"
    return [block(moved._replace(title=title), f"by {judge}")]


def _classifier(here: Here) -> str | None:
    """The shipped classifier, asked beside a model of the same heads and tokens that isn't one itself.

    Where they differ, a head or a position of one means nothing in the other: that is said.
    """
    mine = state.loaded(here.model)
    if "classification" in mine.model.heads or CLASSIFIER not in state.model_names():
        return None
    judge = state.loaded(CLASSIFIER)
    tokens = judge.tokenizer.encode(here.text, here.pair).tokens
    if _heads_and_words(judge) == _heads_and_words(mine) and tokens == here.encoding.tokens:
        return CLASSIFIER
    notices.note(f"{CLASSIFIER} is not asked beside {here.model}: its layers, heads or tokens are different, so the "
                 "same change can't be made in it.")
    return None


def _heads_and_words(loaded: Loaded) -> tuple[int, int, int]:
    """(L, H, V)."""
    return loaded.config.num_hidden_layers, loaded.config.num_attention_heads, loaded.tokenizer.vocab_size


def kinds(here: Here, plain: Trace) -> list[str]:
    """The answers (of ablation.ANSWERS) that this model has a head for, in the order of the page."""
    loaded = state.loaded(here.model)
    is_class = _classifies(loaded, plain) and loaded.config.problem_type != "regression"
    there = {"gap": plain.has("mlm_logits") and len(plain.mlm_positions) > 0, "next": plain.has("lm_logits"),
             "class": is_class, "follows": plain.has("nsp_logits") and here.pair is not None}
    return [kind for kind in ANSWERS if there[kind]]


def answers(here: Here, plain: Trace, changed: Trace) -> list[dict[str, Any]]:
    """Every answer that this model has a head for; those that read a gap which the sentence has not say so."""
    loaded, found, masked = state.loaded(here.model), [], plain.request.masked
    for kind in kinds(here, plain):
        moves = answer_moves(loaded, kind, plain, changed)
        if kind == "gap":
            places = plain.mlm_positions.tolist()
            hidden = [here.encoding.tokens[place] if place in masked else None for place in places]
            moves = [moved._replace(title=place_title(place, hidden[n], n + 1, len(moves)))
                     for n, (moved, place) in enumerate(zip(moves, places, strict=True))]
        by = "of the sentence with the gap" if masked and kind in ("class", "follows") else ""
        found += [block(moved, by) for moved in moves]
    return found


def _classifies(loaded: Loaded, trace: Trace) -> bool:
    return trace.has("logits") and "classification" in loaded.model.heads


def _score(here: Here, plain: Trace, changed: Trace) -> str:
    """What a regression says before and after the change, which is no probability; '' for other models."""
    loaded = state.loaded(here.model)
    if not _classifies(loaded, plain) or loaded.config.problem_type != "regression":
        return ""
    before, after = (read_logits(loaded.config, trace.logits) for trace in (plain, changed))
    return f"{before.label}: {before.probability:.3f} as it is, {after.values[before.label]:.3f} after the change."


def block(moved: Moved, by: str = "") -> dict[str, Any]:
    """One question for the component, as JSON."""
    return moved._asdict() | {"by": by}


# --- what is switched off, in the address --------------------------------------


def heads_off(layers: int, heads: int) -> tuple[tuple[int, int], ...]:
    """0-based (layer, head) that the address names as '3-9,4-1', counted from 1 there."""
    return state.param("off", _pairs(1, layers, heads), ())


def pairs_cut(length: int) -> tuple[tuple[int, int], ...]:
    """(query, key) positions that the address names as '4-1'; those beyond a shorter text are left out."""
    pairs = state.param("cut", _pairs(0, 10**6, 10**6), ())
    return tuple((q, k) for q, k in pairs if q < length and k < length)


def _pairs(first: int, rows: int, columns: int) -> Callable[[str], tuple[tuple[int, int], ...]]:
    def parse(raw: str) -> tuple[tuple[int, int], ...]:
        found = set()
        for part in raw[:12 * MOST].split(","):
            row, _, column = part.partition("-")
            pair = int(row) - first, int(column) - first
            if not (0 <= pair[0] < rows and 0 <= pair[1] < columns):
                raise ValueError(f"{part} isn't there")
            found.add(pair)
        if len(found) > MOST:
            raise ValueError("too many")
        return tuple(sorted(found))

    return parse


def _write(pairs: Sequence[tuple[int, int]], first: int) -> str | None:
    return ",".join(f"{a + first}-{b + first}" for a, b in pairs) or None


def undo() -> None:
    """Everything back on."""
    state.set_param("off", None)
    state.set_param("cut", None)
    st.session_state["window"] = "none"
    st.session_state["fed"] = []


def _receive_heads(message: Mapping[str, Any], layers: int, heads: int) -> None:
    """What a component says is switched off now, into the address."""
    cells = components.numbers(message, "heads", layers * heads)
    state.set_param("off", _write([divmod(cell, heads) for cell in cells], 1))


def _receive(here: Here, layers: int, heads: int) -> Callable[[Mapping[str, Any]], None]:
    """on_event: where the visitor is, and what of heads off and pairs cut is new."""
    look, length = attention.receive_view(here), len(here.encoding)

    def receive(message: Mapping[str, Any]) -> None:
        look(message)
        if "heads" in message:
            _receive_heads(message, layers, heads)
        if "pairs" in message:
            cells = components.numbers(message, "pairs", length * length)
            if len(cells) > MOST:
                raise components.BadMessage(f"more than {MOST} pairs")
            state.set_param("cut", _write([divmod(cell, length) for cell in cells], 0))

    return receive
