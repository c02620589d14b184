"""Tasks: what stands on top of the encoder laid open: a token's logit, or two sentences' cosine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from bert_core import Trace, TraceRequest
from bert_core.figures.masking import percent
from bert_core.measures.similarity import cosine_to, sentence_vector
from bert_core.measures.softmax import softmax_steps
from bert_core.measures.token_head import TokenHead, token_head
from bert_core.tasks import Window
from bert_core.tasks.answers import candidate_logits, counted_positions
from ui import chips, components, controls, state, tables
from ui.state import Here
from ui.views import operands
from ui.views.task_models import say, signed

#: Tokens in the table of a start or an end.
BEST = 6
EDGES = ("start", "end")


def of_entities(here: Here) -> None:
    """A token's logits over the labels."""
    if not _is_open():
        return
    loaded = state.ours(here.model, "the operands of its head")
    trace = state.trace(here.request(parts=("hidden_states", "logits")))
    position = _token(trace, trace.encoding.content, trace.encoding.content[0])
    opened = token_head(loaded, trace, "token_classification", position)
    labels, logits = list(opened.labels), trace.logits[position]
    start = labels[int(logits.argmax())]
    index = labels.index(controls.choice("Open the logit of", labels, "class", start, as_list=len(labels) > 9))
    _strips(opened, index, trace.encoding.tokens[position], float(logits[index]))
    st.html(_softmax(f"Softmax over the {len(labels)} labels", "label", labels, logits, logits))


def of_answers(here: Here, windows: Sequence[Window], shown: int,
               best: tuple[int, int] | None) -> None:
    """A token's logit as the answer's start or end.

    Args:
        shown: the window that is looked at.
        best: positions of the tokens where its best answer starts and ends; None if it has none of the best.
    """
    if not windows[shown].positions or not _is_open():
        return
    loaded, window = state.ours(here.model, "the operands of its head"), windows[shown]
    trace = state.trace(TraceRequest(window.question, here.pair[window.start:window.end], model=here.model,
                                     parts=("hidden_states", "start_logits", "end_logits")))
    above = st.container()
    edge = controls.choice("Open the logit of the", EDGES, "edge")
    index, name = EDGES.index(edge), f"{edge}_logits"
    with above:
        position = _token(trace, window.positions, best[index] if best else window.positions[0])
    opened, logits = token_head(loaded, trace, "question_answering", position), trace.arrays[name]
    _strips(opened, index, trace.encoding.tokens[position], float(logits[position]))
    own = counted_positions(windows)[shown]
    chosen = {position} if position in own else set()
    rows = sorted({*chosen, *sorted(own, key=lambda n: -logits[n])[:BEST]}, key=lambda n: -logits[n])
    every = candidate_logits(windows, name)
    where = "" if len(windows) == 1 else f" of {len(windows)} windows"
    caption = f"Softmax over [CLS] and the context's tokens, {len(every):,} logits{where}"
    st.html(_softmax(caption, "token", [f"{n} {trace.encoding.tokens[n]}" for n in rows], logits[rows], every))
    if not chosen:
        say(f"“{trace.encoding.tokens[position]}” isn't in this softmax: another window has more of the context around "
            "it, and its logit there counts.")


def of_pair(first: Trace, second: Trace, model: str) -> None:
    """The cosine of two sentence vectors, which needs no layer."""
    if not _is_open("cosine"):
        return
    vectors = [sentence_vector(trace, "mean") for trace in (first, second)]
    products = vectors[0] * vectors[1]
    components.mount("operands", "cosine_operands", operands.strips(f"The cosine of two sentence vectors of {model}", [
        ("mean of the first sentence's tokens, last layer", vectors[0]),
        ("mean of the second sentence's tokens, last layer", vectors[1]), ("first × second", products)]))
    lengths = [float(np.linalg.norm(vector)) for vector in vectors]
    cosine = float(cosine_to(*vectors))
    say(f"Sum of the last strip {signed(float(products.sum()), 4, '')} ÷ (length of the first {lengths[0]:.4f} × "
        f"length of the second {lengths[1]:.4f}) = cosine {signed(cosine, 4, '')}.")


def _is_open(what: str = "layer") -> bool:
    return controls.toggle(f"Open the {what}, number by number", "opened")


def _token(trace: Trace, choices: Sequence[int], start: int) -> int:
    """The token that is looked at: one of `choices`, `start` before any is clicked."""
    fixed = sorted(set(range(len(trace))) - set(choices))
    chosen = chips.tokens(trace.encoding, "token", select="one", selected=(start,), fixed=fixed,
                          label="Tokens; choose one to open its logit", opens=True)
    return chosen[0] if chosen else start


def _strips(opened: TokenHead, index: int, token: str, traced: float) -> None:
    """Vector, weights and products, and what they add up to."""
    label = opened.labels[index]
    components.mount("operands", "token_operands", operands.strips(f"From {token} to the logit of {label}", [
        (f"“{token}”, last layer", opened.hidden), (f"weights of {label}", opened.weights[index]),
        ("vector × weights", opened.products[index])]))
    summed, bias, logit = (signed(float(value), 4) for value in (
        opened.products[index].sum(), opened.biases[index], opened.logits[index]))
    say(f"Sum of the last strip {summed} + bias {bias} = {logit}; the run itself gave {signed(traced, 4)}.")


def _softmax(caption: str, what: str, names: Sequence[str], logits: np.ndarray, every: np.ndarray) -> str:
    """Rows from logit to probability.

    Args:
        logits: of the rows.
        every: (N,), all logits that share the softmax.
    """
    steps = softmax_steps(logits, every)
    rows = [(name, signed(float(logit), 4), f"{power:.4f}", percent(p))
            for name, logit, power, p in zip(names, logits, steps.powers, steps.probabilities, strict=True)]
    columns = (what, "logit", "e^(logit − largest)", f"÷ {steps.total:.4f}")
    return tables.table(caption, columns, rows, range(1, 4), named=True)
