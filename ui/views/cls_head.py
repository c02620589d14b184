"""[CLS], the head opened: pooler, tanh, weights, products, sum."""

from __future__ import annotations

import numpy as np

from bert_core.measures.pooler import HeadOperands, head_operands
from bert_core.tasks import softmax
from bert_core.tasks.sentences import class_probabilities, several_hold
from ui import components, controls, state
from ui.state import Here
from ui.views import operands
from ui.views.task_models import say, share, signed

#: Logits that are said in words.
MOST_SAID = 6


def draw(here: Here, head: str) -> None:
    """Every operand from [CLS] to one class's logit.

    Args:
        head: 'classification' or 'nsp'.
    """
    loaded = state.ours(here.model, "the operands of its head")
    logits = "logits" if head == "classification" else "nsp_logits"
    trace = state.trace(here.request(parts=("hidden_states", "pooled_output", logits)))
    opened = state.or_stop(lambda: head_operands(loaded, trace, head))
    labels = list(opened.labels)
    start = labels[int(np.argmax(trace.arrays[logits]))]
    index = labels.index(controls.choice("Open the logit of", labels, "class", start, as_list=len(labels) > 4))
    name = trace.encoding.tokens[0]
    components.mount("operands", "cls_operands", _payload(opened, index, name))
    say(_sum_in_words(opened, index, float(trace.arrays[logits][index])) + _shares_in_words(opened, index, here, head))


def _payload(opened: HeadOperands, index: int, name: str) -> bytes:
    """The strips; `name` is what the model calls [CLS]."""
    label, after = opened.labels[index], f"{opened.activation} of it"
    product = "weight × pooled" if opened.layer == "pooler" else f"weight × {after}"
    rows = [(f"{name}, last layer", opened.cls),
            (f"{opened.layer}: W·{name} + b, before {opened.activation}", opened.dense),
            (after, opened.pooled), (f"weight of “{label}”", opened.weight[index]), (product, opened.products[index])]
    return operands.strips(f"From {name} to the logit of {label}", rows)


def _sum_in_words(opened: HeadOperands, index: int, traced: float) -> str:
    """The sum that the last strip makes, against the run's own logit."""
    total, bias, logit = opened.products[index].sum(), opened.bias[index], opened.logits[index]
    total, bias, logit, traced = (signed(value, 4) for value in (total, bias, logit, traced))
    return f"Sum of the last strip {total} + bias {bias} = {logit}; the run itself gave {traced}. "


def _shares_in_words(opened: HeadOperands, index: int, here: Here, head: str) -> str:
    """The logits beside each other, and what becomes of this one; '' for the only one."""
    if len(opened.logits) == 1:
        return ""
    config, words = state.loaded(here.model).config, _logits_in_words(opened, index)
    if head == "nsp":
        return f"{words}; softmax makes {share(softmax(opened.logits)[index])} of it."
    if config.problem_type == "regression":
        return f"{words}."
    by = "a sigmoid" if several_hold(config, len(opened.logits)) else "softmax"
    return f"{words}; {by} makes {share(class_probabilities(config, opened.logits)[index])} of it."


def _logits_in_words(opened: HeadOperands, index: int) -> str:
    """Every logit; of many the largest others and, last, the opened one, which what follows is about."""
    named = [f"{label} {signed(value)}" for label, value in zip(opened.labels, opened.logits, strict=True)]
    if len(named) <= MOST_SAID:
        return f"Logits: {', '.join(named)}"
    largest = [n for n in np.argsort(-opened.logits, kind="stable") if n != index][:MOST_SAID - 1]
    others = ", ".join(named[n] for n in largest)
    return f"Logits: {others}, {len(named) - MOST_SAID} more, and {named[index]}"
