"""[CLS], first picture: the classifier's answer, and which tokens move it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st

from bert_core import Trace, TraceRequest
from bert_core.measures.attribution import Attribution, leave_one_out
from bert_core.measures.cls import (
    Disagreement,
    Influence,
    accounts,
    attention_of_layer,
    disagreement,
    rank_correlation,
)
from bert_core.measures.target import Target, no_gradients, no_leaving_out
from bert_core.tasks.sentences import Classification, class_names, read_logits
from bert_core.tokenizer import Encoding
from ui import chips, components, controls, notices, state
from ui.state import Here
from ui.views.cls_reader import place_and_name
from ui.views.task_models import say, share, signed

PARTS = ("logits", "attention_probs", "hidden_states")
#: Tokens up to which the strip follows the typing; up to MOST it waits to be asked.
AT_ONCE, MOST = 48, 128
#: Accounts of what moves an answer, as Attention's attribution view calls them.
LEFT_OUT, GRADIENTS = "leave one out", "integrated gradients"
#: Labels that get a bar; a model with more has the rest in the table.
BARS = 8
#: Said below a regression's number: its range is known to whoever trained it.
SCORE = "the head's score, on the scale that it was trained on"


def answer(trace: Trace) -> Classification:
    """The classifier's answer in its own labels."""
    return read_logits(trace.config, trace.logits)


def verdict(sides: Sequence[dict[str, Any]], key: str, label: str) -> None:
    """Draw one answer, or two side by side."""
    components.mount("verdict", key, components.pack({"sides": list(sides), "label": label}))


def side(
    result: Classification, labels: Sequence[str], title: str = "", text: Sequence | None = None
) -> dict[str, Any]:
    """One side of the verdict component.

    Args:
        labels: every label, in the model's order.
        text: (what stands before, piece, changed) for each token, to be shown above the bars.
    """
    regression = not result.probabilities
    values = result.logits if regression else [result.probabilities[label] for label in labels]
    order = np.argsort(-np.asarray(values), kind="stable")[:BARS] if len(labels) > BARS else range(len(labels))
    return {
        "title": title, "text": text, "low": 0.0, "high": 1.0, "hidden": max(0, len(labels) - BARS),
        "best": None if regression else result.label,
        "bars": [{
            "label": labels[n], "value": values[n], "share": None if regression else values[n],
            "text": signed(values[n], plus="") if regression else share(values[n]),
            "below": SCORE if regression else f"logit {signed(result.logits[n])}",
        } for n in order],
        "table": [[label, value, logit] for label, value, logit in zip(labels, values, result.logits)],
    }


def labels_of(trace: Trace) -> tuple[str, ...]:
    """The model's labels, by index."""
    return class_names(trace.config, trace.logits.shape[-1])


def draw(here: Here) -> None:
    """The answer as bars, then the strip of three accounts; of two where there are no gradients."""
    trace = state.trace(here.request(parts=PARTS))
    result, labels = answer(trace), labels_of(trace)
    verdict([side(result, labels)], "cls_verdict", f"{here.model} says {result.label}")
    if not trace.encoding.content:
        notices.note("There is no token besides the special ones: what you see is the answer to nothing.")
        return
    index = _explained(labels, result)
    if not _is_weighed(len(trace)):
        return
    why_not = no_gradients(state.loaded(here.model))
    if why_not:
        _draw_without_gradients(here, trace, index, labels[index], why_not)
    else:
        _draw_strip(here, trace, _influence(here, trace, index), labels[index])


def _explained(labels: tuple[str, ...], result: Classification) -> int:
    """Index of the label whose logit is explained: the answer, unless another is asked for."""
    options = ["the answer", *labels[:50]]
    chosen = "the answer" if len(labels) == 1 else controls.choice(
        "Which tokens move", options, "explain", as_list=len(labels) > 3)
    return labels.index(result.label if chosen == "the answer" else chosen)


def _is_weighed(count: int) -> bool:
    """Whether so many tokens are left out one by one: at once, when asked for, or not at all, which is said."""
    if count > MOST:
        notices.note(f"{count} tokens: leaving out each one means {count} more runs. Up to {MOST} can be weighed.")
        return False
    return count <= AT_ONCE or controls.toggle(f"Weigh all {count} tokens ({count} more runs)", "weigh")


def _influence(here: Here, trace: Trace, index: int) -> Influence:
    """The three accounts of one logit."""
    request = TraceRequest(here.text, here.pair, model=here.model)
    left_out, gradients = state.or_stop(lambda: _attributions(request, index))
    content = tuple(n for n in trace.encoding.content if n not in trace.encoding.mask_positions)
    place, _ = place_and_name(here.model, trace.encoding)
    return Influence(trace.encoding.tokens, content, left_out.values, gradients.values,
                     attention_of_layer(trace, place=place), left_out.output, gradients.gap)


@st.cache_resource(max_entries=128, show_spinner=False)
def _attributions(request: TraceRequest, index: int) -> tuple[Attribution, Attribution]:
    return state.call(accounts, request, Target("classification", index))


def _draw_strip(here: Here, trace: Trace, strip: Influence, label: str) -> None:
    """The strip with the token on which the accounts differ most marked, and why in words."""
    differ = disagreement(strip)
    _mount_strip(trace.encoding, label, {LEFT_OUT: strip.left_out, GRADIENTS: strip.gradients}, strip.attention,
                 differ.position if differ else None)
    if differ is not None:
        say(_difference(strip, differ), strong=True)
    complete = "" if strip.gap is None else (
        f"Integrated gradients sum to the change from all-[MASK] within {100 * strip.gap:.2g} %. ")
    say(f"{LEFT_OUT.capitalize()} and {GRADIENTS}: {_adds(label, strip.output)} "
        f"{complete}{_from_where(here, trace.encoding)}")


def _adds(label: str, output: float) -> str:
    """What a signed row of the strip says."""
    return f"what each token adds to the logit of “{label}” (now {signed(output)}); red raises it, blue lowers it."


def _from_where(here: Here, encoding: Encoding) -> str:
    """What the row of attention is."""
    return f"Attention: from {place_and_name(here.model, encoding)[1]}, last layer, mean of its heads."


def _mount_strip(
    encoding: Encoding, label: str, accounts: Mapping[str, np.ndarray], attention: np.ndarray, mark: int | None
) -> None:
    """Draw the strip of signed accounts and of attention.

    Args:
        accounts: name -> (T,) change of the logit, all on one scale.
        attention: (T,) weights from the token that answers, 0 to 1.
        mark: position of the token that is framed.
    """
    limit = float(max((1e-6, *(np.abs(values).max() for values in accounts.values()))))
    header = {
        "label": f"Which tokens move the logit of {label}" if accounts else "What is looked at", "mark": mark,
        "tokens": [{"t": text, "k": kind} for text, kind in chips.describe(encoding)],
        "rows": [*({"name": name, "signed": True, "limit": limit} for name in accounts),
                 {"name": "attention", "signed": False, "limit": 1.0}],
        "hint": "Move over a token to read its numbers.",
    }
    values = np.stack([*accounts.values(), attention]).astype(np.float32)
    components.mount("influence", "cls_strip", components.pack(header, {"values": values}))


def _draw_without_gradients(here: Here, trace: Trace, index: int, label: str, why_not: str) -> None:
    """Leaving out and attention alone, or attention, and why there is no other account."""
    place, _ = place_and_name(here.model, trace.encoding)
    attention, places = attention_of_layer(trace, place=place), list(trace.encoding.content)
    notices.note(f"There are no gradients here. {why_not}.")
    if reason := no_leaving_out(state.loaded(here.model)):
        notices.note(f"No token is left out: {reason}.")
        _mount_strip(trace.encoding, label, {}, attention, None)
        say(_from_where(here, trace.encoding))
        return
    left_out = state.or_stop(lambda: _left_out(TraceRequest(here.text, here.pair, model=here.model), index))
    _mount_strip(trace.encoding, label, {LEFT_OUT: left_out.values}, attention, None)
    agreement = rank_correlation(np.abs(left_out.values[places]), attention[places])
    known = "" if agreement is None else f"Rank correlation of the two by size: {signed(agreement)}. "
    say(f"{LEFT_OUT.capitalize()}: {_adds(label, left_out.output)} {_from_where(here, trace.encoding)} {known}")


@st.cache_resource(max_entries=128, show_spinner=False)
def _left_out(request: TraceRequest, index: int) -> Attribution:
    return state.call(leave_one_out, request, Target("classification", index))


def _difference(strip: Influence, differ: Disagreement) -> str:
    """Where the three accounts part."""
    if differ.position is None:
        return f"All three rank the words alike by size. {_agreement(differ)}"
    by_left, by_gradient, by_attention = differ.ranks
    token = strip.tokens[differ.position]
    where = f" ({differ.position})" if strip.tokens.count(token) > 1 else ""
    return (f"By size they differ most on “{token}”{where}: rank {by_left} by leaving one out, {by_gradient} by "
            f"{GRADIENTS}, {by_attention} by attention. {_agreement(differ)}")


def _agreement(differ: Disagreement) -> str:
    pairs = ((f"{LEFT_OUT} and {GRADIENTS}", differ.leaving_gradients),
             (f"{LEFT_OUT} and attention", differ.leaving_attention))
    known = [f"{name} {signed(value)}" for name, value in pairs if value is not None]
    return f"Rank correlation of the sizes, whatever their signs: {', '.join(known)}. " if known else ""
