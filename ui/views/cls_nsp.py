"""[CLS], the next-sentence lab: two sentences, both logits, and what moves them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import streamlit as st

from bert_core import Trace, TraceRequest
from bert_core.counting import counted
from bert_core.tasks import softmax
from ui import chips, components, controls, model_card, notices, state
from ui.state import Here
from ui.views import cls_head
from ui.views.cls_answer import verdict
from ui.views.task_models import examples, or_example, put, say, share, signed, try_buttons

PARTS = ("nsp_logits", "pooled_output")
LABELS = ("IsNext", "NotNext")
#: Share of held-out pairs a model must get right before its answer stands here without a warning.
TRUSTED = 0.7
SWAPPED, RANDOM, SAME = "B before A", "a random B", "same segment for both"


def draw(here: Here) -> Here:
    """The visitor's pair beside a variant of it, or ten pairs to predict first.

    Returns:
        The input that the picture is of.
    """
    place, first = st.container(), examples("nsp")["pairs"][0]
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        which = controls.choice("Pairs", ["Your pair", "Ten pairs to predict first"], "nsp")
        against = controls.choice("Beside it", [SWAPPED, RANDOM, SAME], "against") if which == "Your pair" else None
        if against is not None:
            with place:
                here = or_example(here, first["a"], first["b"])
            _buttons(here)
    if against is not None:
        _draw_pair(here, against)
    else:
        _draw_quiz(here)
    return here


# --- one pair ----------------------------------------------------------------


def _draw_pair(here: Here, against: str) -> None:
    """The pair's tokens with their segments, its answer, and that of the variant."""
    pairs = examples("nsp")["pairs"]
    if here.pair is None:
        say("Type a second sentence above, or try a pair:", strong=True)
        try_buttons([(pair["a"], pair["b"]) for pair in pairs[:3]], "nsp")
        return
    own, other = here.request(parts=PARTS), _variant(here, against)
    traces = state.traces([own, other])
    chips.tokens(traces[0].encoding, "nsp_tokens", labels=[f"seg {s}" for s in traces[0].encoding.token_type_ids],
                 label="Tokens with their segment ids")
    verdict([_side(traces[0], "A, then B"), _side(traces[1], _title(against, other))], "nsp_verdict",
            "Does B follow A? Your pair and a variant")
    say(_in_words(*(softmax(trace.nsp_logits)[0] for trace in traces)), strong=True)
    _warn(here.model)
    if controls.toggle("Show the segment embeddings", "segments"):
        _draw_segments(here)
    if controls.toggle("Open the head", "open_head"):
        cls_head.draw(here, "nsp")


def _warn(model: str) -> None:
    """Say how little the answer is worth, where the model's own card says so."""
    found = caution(model_card.score(model, "nsp", "accuracy"))
    if found:
        notices.note(f"{model}: {found}")


def caution(score: Mapping[str, Any] | None) -> str:
    """What a card's figure says against the answer; '' if it is good enough, or was never measured."""
    if score is None or score["value"] >= TRUSTED:
        return ""
    return (f"right about {share(score['value'])} of {score['n']} held-out pairs, where a coin would be about 50.0 %. "
            "Don't take its answer for knowledge: the lab shows how the answer is made, not whether B follows A.")


def _buttons(here: Here) -> None:
    """Swap the inputs themselves, or draw a random second sentence."""
    pool = examples("nsp")["random_b"]
    after = pool[(pool.index(here.pair) + 1) % len(pool)] if here.pair in pool else pool[0]
    st.button("Swap A and B", key="nsp_swap", on_click=put, args=(here.pair or "", here.text),
              disabled=here.pair is None)
    st.button("Put a random B", key="nsp_random", on_click=put, args=(here.text, after))


def _variant(here: Here, against: str) -> TraceRequest:
    """The request that stands beside the visitor's own."""
    if against == SWAPPED:
        return TraceRequest(here.pair, here.text, model=here.model, parts=PARTS)
    if against == RANDOM:
        pool = [text for text in examples("nsp")["random_b"] if text != here.pair]
        return TraceRequest(here.text, pool[len(here.text) % len(pool)], model=here.model, parts=PARTS)
    return here.request(parts=PARTS, segments=(0,) * len(here.encoding))


def _title(against: str, other: TraceRequest) -> str:
    if against == RANDOM:
        return f"A, then: {other.pair}"
    return {SWAPPED: "B, then A", SAME: "A, then B, all in segment 0"}[against]


def _side(trace: Trace, title: str) -> dict[str, Any]:
    """One side of the verdict: IsNext and NotNext with their logits."""
    shares = [float(p) for p in softmax(trace.nsp_logits)]
    logits = [float(v) for v in trace.nsp_logits]
    return {
        "title": title, "text": None, "best": LABELS[int(shares[1] > shares[0])], "low": 0.0, "high": 1.0, "hidden": 0,
        "bars": [{"label": label, "value": p, "share": p, "text": share(p), "below": f"logit {signed(v)}"}
                 for label, p, v in zip(LABELS, shares, logits)],
        "table": [list(row) for row in zip(LABELS, shares, logits)],
    }


def _in_words(own: float, other: float) -> str:
    return f"IsNext: {share(own)} for your pair, {share(other)} for the variant beside it."


def _draw_segments(here: Here) -> None:
    """The two rows of the segment table, and their difference, as strips."""
    model = state.loaded(here.model).model
    if model.names.segment is None:
        say(f"{here.model} has no segment embeddings.")
        return
    table = model.weights[f"{model.names.segment}.weight"].detach().cpu().float().numpy()  # (2, D)
    strips = np.stack([table[0], table[1], table[1] - table[0]])
    limit, names = float(np.abs(strips).max()), ("segment 0 (A)", "segment 1 (B)", "1 − 0")
    rows = [{"name": name, "limit": limit, "note": f"length {np.linalg.norm(values):.2f}"}
            for name, values in zip(names, strips)]
    components.mount("operands", "nsp_segments", components.pack({
        "label": f"Segment embeddings, {table.shape[1]} dimensions", "size": table.shape[1], "at": 0,
        "rows": rows,
    }, {"values": strips.astype(np.float32)}))


# --- ten pairs ---------------------------------------------------------------


def _draw_quiz(here: Here) -> None:
    """Ten pairs: first one's own guess, then the model's answer and what is true."""
    pairs = examples("nsp")["pairs"]
    traces = state.traces([TraceRequest(p["a"], p["b"], model=here.model, parts=PARTS) for p in pairs])
    shares = [float(softmax(trace.nsp_logits)[0]) for trace in traces]
    _warn(here.model)
    guesses = []
    for first in range(0, len(pairs), 2):  # two beside each other, on a phone below each other in the same order
        for column, n in zip(st.columns(2), range(first, min(first + 2, len(pairs)))):
            with column:
                guesses.append(_ask(n, pairs[n], shares[n]))
    made = [n for n, guess in enumerate(guesses) if guess is not None]
    mine = sum((guesses[n] == "follows") == pairs[n]["next"] for n in made)
    models = sum((shares[n] > 0.5) == pairs[n]["next"] for n in made)
    if made:
        say(f"Of {counted(len(made), 'pair')} you had {mine} right, {here.model} {models}.", strong=True)


def _ask(n: int, pair: dict[str, Any], p: float) -> str | None:
    """One pair; the model's answer stands there once a guess is made."""
    with st.container(border=True):
        say(f"A: {pair['a']}")
        say(f"B: {pair['b']}")
        guess = st.segmented_control(f"Pair {n + 1}: does B follow A?", ["follows", "does not"], key=f"nsp_guess_{n}")
        if guess is not None:
            truth = "B follows A" if pair["next"] else "B does not follow A"
            said = "IsNext" if p > 0.5 else "NotNext"
            say(f"The model says {said} ({share(p)} IsNext). {truth}.", strong=True)
    return guess
