"""The Masking page's head view: from the gap's last vector to a piece's probability, with every operand."""

from __future__ import annotations

import streamlit as st

from bert_core.figures.masking import percent
from bert_core.measures.predictions import piece
from bert_core.measures.vocabulary_head import HeadSteps, head_steps
from ui import components, controls, state, tables
from ui.state import Here
from ui.views import masking, operands
from ui.views.task_models import say, signed


def draw(here: Here) -> None:
    """Which gap and which piece, the strips from vector to logit, and the softmax over the vocabulary."""
    masked, position, place = masking.ask_gap(here)
    if position is None:
        return
    loaded = state.ours(here.model, "the operands of its head")
    trace = state.trace(here.request(masked=masked, parts=("hidden_states", "mlm_positions", "mlm_logits")))
    ids = masking.pieces_to_ask(here, trace, position)
    names = [piece(loaded.tokenizer, number) for number in ids]
    with place:
        index = names.index(controls.choice("Open the logit of", names, "guess"))
    steps = head_steps(loaded, trace, position, ids)
    token = trace.encoding.tokens[position]
    components.mount("operands", "mlm_operands", _payload(steps, index, names[index], token))
    say(_sum_in_words(steps, index))
    st.html(_table(steps, names, trace.mlm_logits.shape[-1]))


def _payload(steps: HeadSteps, index: int, name: str, token: str) -> bytes:
    """The strips; the last vector stands first where the head keeps its width."""
    after = operands.activation_name(steps.activation)
    rows = [(f"{token}, last layer", steps.hidden)] if len(steps.hidden) == len(steps.dense) else []
    return operands.strips(f"From {token} to the logit of {name}", [
        *rows, (f"dense layer: W·{token} + b, before {after}", steps.dense), (f"{after} of it", steps.activated),
        ("after LayerNorm", steps.transformed), (f"vector of “{name}”", steps.vectors[index]),
        ("after LayerNorm × vector", steps.products[index])])


def _sum_in_words(steps: HeadSteps, index: int) -> str:
    """The sum that the last strip makes, against the run's own logit."""
    summed, bias, logit, traced = (signed(float(value), 4) for value in (
        steps.products[index].sum(), steps.biases[index], steps.logits[index], steps.traced[index]))
    return f"Sum of the last strip {summed} + bias {bias} = {logit}; the run itself gave {traced}."


def _table(steps: HeadSteps, names: list[str], size: int) -> str:
    """The softmax: a row a piece, from its logit to its probability."""
    columns = ("piece", "sum of products", "+ bias", "= logit", "e^(logit − largest)", f"÷ {steps.softmax.total:.4f}")
    operand_rows = zip(steps.products.sum(axis=-1), steps.biases, steps.logits, strict=True)
    rows = [(name, *(signed(float(value), 4) for value in values), f"{power:.4f}", percent(p))
            for name, values, power, p in zip(
                names, operand_rows, steps.softmax.powers, steps.softmax.probabilities, strict=True)]
    caption = f"Softmax over all {size:,} pieces"
    return tables.table(caption, columns, rows, range(1, 6), named=True)
