"""The Attention page's attribution view: attention, rollout, gradients and leaving out, side by side."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from bert_core.figures.masking import percent
from bert_core.measures.attribution import (
    Attribution,
    gradient_accounts,
    leave_one_out,
    rank_agreement,
)
from bert_core.measures.predictions import piece
from bert_core.measures.rollout import rollout
from bert_core.measures.target import Target, no_gradients
from bert_core.serving import EngineError
from bert_core.tasks.sentences import class_names
from bert_core.tasks.vocabulary import last_place
from bert_core.trace import Trace, TraceRequest
from ui import chips, components, controls, notices, state
from ui.state import Here
from ui.views.cls_reader import answers_from, place_and_name
from ui.views.task_models import signed

#: Longest inputs, in tokens, for which a method answers soon enough on two cores.
LONGEST_PATH, LONGEST_LEFT_OUT = 192, 96
#: Tokens times points of a path that a visitor is made to wait for; the points are doubled up to it.
POINTS = 8192
CLASSIFIER = "twin-bert-sst2"
WHY = (
    "They answer different questions. Attention says how much of a token's value is mixed in. Rollout follows that "
    "through the layers, but leaves values and feed-forward parts out. Gradients say how the answer would change for "
    "a small change, and along a path. Leaving out says what happens when a word is covered by [MASK], or hidden from "
    "a one-way model. None of them proves a cause: take several, and try the change."
)


class Question(NamedTuple):
    """What is explained: a run, one of its numbers, and where a token reads it off."""

    request: TraceRequest
    target: Target
    position: int
    words: str


def draw(here: Here) -> Here:
    """Choose what is explained, then five strips, how far they agree, and rollout from every token.

    Returns:
        The input as the model reads it whose answer is explained.
    """
    question = _question(here)
    if question is None:
        notices.note(f"{here.model} has no head whose answer could be explained.")
        return here
    trace = state.trace(_only(question.request, "attention_probs"))
    why_not = no_gradients(state.loaded(question.request.model))
    _say_left_out(len(trace), why_not)
    st.html(f'<p class="bw-lead" translate="no">{question.words}</p>')
    flow = rollout(trace.attention_probs)[-1]  # (Tq, Tk)
    methods, values = _methods(question, trace, flow, with_gradients=not why_not)
    encoding = trace.encoding  # of the model that answers, which need not be the page's
    content = [i for i in encoding.content if i != question.position]
    header = {"tokens": list(encoding.tokens), "kinds": [kind for _, kind in chips.describe(encoding)],
              "methods": methods, "why": WHY, "explained": question.position,
              "agreement": rank_agreement([np.abs(v[content]) for v in values]) if len(content) > 2 else []}
    components.mount("attention_strips", "attention_strips",
                     components.pack(header, {"values": np.stack(values).astype(np.float32)}))
    _mount_maps(trace, flow)
    return replace(here, model=question.request.model)


def _mount_maps(trace: Trace, flow: np.ndarray) -> None:
    """Every token's attention in the last layer beside its rollout (Tq, Tk)."""
    names = [f"“{token}” ({n})" for n, token in enumerate(trace.encoding.tokens)]
    header = {
        "rows": names, "columns": names, "row_word": "from", "column_word": "to", "size": 420,
        "ticks": list(trace.encoding.tokens),
        "caption": "Attention of the last layer, mean over heads, and rollout through all layers",
        "panels": [{"title": "Attention in the last layer", "name": "attention", "signed": False},
                   {"title": "Rollout through all layers", "name": "rollout", "signed": False}],
    }
    attention = trace.attention_probs[-1].mean(axis=0)
    st.html("<h2>From every token</h2>")
    components.mount("maps", "rollout", components.pack(
        header, {"attention": attention.astype(np.float32), "rollout": flow.astype(np.float32)}))


def _say_left_out(length: int, why_not: str) -> None:
    """Which methods are not shown, and why.

    Args:
        why_not: the reason why there are no gradients, '' where there are.
    """
    if why_not:
        notices.note(f"No gradients and no path: {why_not}.")
    if length > LONGEST_LEFT_OUT:
        notices.note(f"At {length} tokens leaving out takes {length} runs: it is shown up to {LONGEST_LEFT_OUT} tokens"
                     + (f", integrated gradients up to {LONGEST_PATH}." if length > LONGEST_PATH else "."))


def _question(here: Here) -> Question | None:
    """The answer that is explained: a gap's first guess, a class, or next-sentence; None where there is no head."""
    options = _options(here)
    if not options:
        return None
    chosen = controls.choice("What is explained", list(options), "explain")
    return options[chosen](here)


def _options(here: Here) -> dict[str, Callable[[Here], Question]]:
    """What can be explained with the heads at hand."""
    heads = state.loaded(here.model).model.heads
    shipped = set(state.model_names())
    options = {}
    if "mlm" in heads and here.encoding.content:
        options["A guessed word"] = _guess
    if "lm" in heads and here.encoding.content:
        options["The word before" if _reads_back(here) else "The next word"] = _next
    if "classification" in heads or CLASSIFIER in shipped:
        options["The sentiment" if "classification" not in heads else "The class"] = _class
    if "nsp" in heads and here.pair:
        options["Does B follow A?"] = _follows
    return options


def _guess(here: Here) -> Question:
    """The first guess at one [MASK]: the sentence's first, or a token chosen here."""
    encoding = here.encoding
    request, place = here.request(), next(iter(encoding.mask_positions), None)
    if place is None:
        first = chips.first_choice(encoding)
        place = next(iter(chips.tokens(encoding, "mask", "one", (first,), label="Token to guess")), first)
        request = here.request(masked=(place,))
    best = int(state.trace(_only(request, "mlm_positions", "mlm_logits")).mlm_logits[0].argmax())
    word = piece(state.loaded(here.model).tokenizer, best)
    where = f"at position {place}" + (f", where “{encoding.tokens[place]}” is hidden" if request.masked else "")
    return Question(request, Target("mlm", best, place), place, _words(word, where, here.model))


def _reads_back(here: Here) -> bool:
    """Whether the model reads from right to left, so that what it guesses next stands before the sentence."""
    return state.loaded(here.model).config.reading_order == "right-to-left"


def _next(here: Here) -> Question:
    """A causal model's first guess at what comes after all it has read."""
    place = last_place(here.encoding, state.loaded(here.model).config)
    best = int(state.trace(here.request(parts=("lm_logits",), lm_at=(place,))).lm_row(place).argmax())
    word = piece(state.loaded(here.model).tokenizer, best)
    where = "as the word before the sentence" if _reads_back(here) else "as the next word"
    return Question(here.request(), Target("lm", best, place), place, _words(word, where, here.model))


def _class(here: Here) -> Question:
    """The winning class of this model, or of the shipped classifier."""
    own = "classification" in state.loaded(here.model).model.heads
    model = here.model if own else CLASSIFIER
    request = TraceRequest(here.text, here.pair, model=model)
    logits = state.trace(_only(request, "logits")).logits
    best = int(logits.argmax())
    label = class_names(state.loaded(model).config, len(logits))[best]
    encoding = state.loaded(model).tokenizer.encode(request.text, request.pair)
    place, where = place_and_name(model, encoding)[0], f"as read at {answers_from(model, encoding)}"
    return Question(request, Target("classification", best), place, _words(label, where, model))


def _follows(here: Here) -> Question:
    _, name = place_and_name(here.model, here.encoding)
    words = _words("the second sentence following the first", f"as read at {name}", here.model)
    return Question(here.request(), Target("nsp", 0), 0, words)


def _words(answer: str, where: str, model: str) -> str:
    """The question in one line of HTML."""
    answer, where, model = map(html.escape, (answer, where, model))
    return f"What speaks for <b>{answer}</b> {where}, by {model}? Signed numbers: logits."


def _only(request: TraceRequest, *parts: str) -> TraceRequest:
    return replace(request, parts=parts)


def _methods(
    question: Question, trace: Trace, flow: np.ndarray, with_gradients: bool
) -> tuple[list[dict[str, Any]], list[np.ndarray]]:
    """Titles and (T,) values of every method that the length allows.

    Args:
        trace: the question's attention.
        flow: (Tq, Tk), its rollout through all layers.
    """
    request, target, place = question.request, question.target, question.position
    probs, length = trace.attention_probs, len(trace)  # (L, H, Tq, Tk)
    found = [
        (_method("attention", "Attention", f"last layer, heads averaged, from position {place}"),
         probs[-1, :, place].mean(axis=0)),
        (_method("rollout", "Rollout", f"followed through all layers, to position {place}"), flow[place]),
    ]
    if with_gradients and length <= LONGEST_PATH:
        simple, path = state.or_stop(lambda: _gradients(request, target, POINTS // length))
        total, gap = path.output - path.baseline, path.gap
        start = "empty vectors" if target.kind == "lm" else "all-[MASK]"
        note = f"on the way from {start}: " + (
            "nothing changes" if gap is None else f"adds up to {signed(total)}, off by {percent(gap)}")
        found += [(_method("gradient", "Gradient × input", "slope times word vector", True), simple.values),
                  (_method("path", "Integrated gradients", note, True), path.values)]
    if length <= LONGEST_LEFT_OUT:
        left = state.or_stop(lambda: _left_out_or_none(request, target))
        note = ("what is lost with the token hidden; the last one read can't be" if target.kind == "lm" else
                "what is lost with the token [MASK]")
        if left is not None:
            found.append((_method("left_out", "Leave one out", note, True), left.values))
    return [method for method, _ in found], [values for _, values in found]


def _method(key: str, title: str, note: str, signed: bool = False) -> dict[str, Any]:
    return {"key": key, "title": title, "note": note, "signed": signed}


@st.cache_data(max_entries=64, show_spinner=False, hash_funcs={TraceRequest: repr, Target: repr})
def _gradients(request: TraceRequest, target: Target, most_steps: int) -> tuple[Attribution, Attribution]:
    return state.call(gradient_accounts, request, target, most_steps)


def _left_out_or_none(request: TraceRequest, target: Target) -> Attribution | None:
    """Leave one out; None, with the reason on the page, where this model can hide no token."""
    try:
        return _left_out(request, target)
    except EngineError:  # says nothing of the model
        raise
    except ValueError as problem:
        notices.note(f"No token is left out: {problem}.")
        return None


@st.cache_data(max_entries=64, show_spinner=False, hash_funcs={TraceRequest: repr, Target: repr})
def _left_out(request: TraceRequest, target: Target) -> Attribution:
    return state.call(leave_one_out, request, target)
