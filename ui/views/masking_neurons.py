"""The Masking page's neuron view: which neurons speak for a guess, and the guess without them or with twice as much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import streamlit as st

from bert_core.counting import counted
from bert_core.figures.masking import percent
from bert_core.measures.ablation import Moved, masked_moves
from bert_core.measures.knowledge_neurons import Neuron, NeuronShares, neuron_shares, others_like, strongest
from bert_core.measures.predictions import gap_distribution, piece
from bert_core.measures.target import Target
from bert_core.tokenizer import Tokenizer
from bert_core.trace import Trace, TraceRequest
from ui import components, controls, notices, state
from ui.state import Here
from ui.views import masking
from ui.views.cls_answer import verdict
from ui.views.task_models import say, signed

#: Longest input, in tokens, whose neurons are weighed soon enough on two cores.
LONGEST = 96
#: What the chosen neurons give -> factor, and how the picture says it.
CHANGES = {"Nothing": (0.0, "switched off"), "Twice as much": (2.0, "giving twice as much")}
OTHER = "She borrowed a [MASK] from the library."
#: Draws of other neurons to compare with.
DRAWS = 5
#: Guesses of either run that are shown.
SHOWN = 5
PARTS = ("mlm_positions", "mlm_logits")


def draw(here: Here) -> None:
    """Which gap, which piece and how many neurons; their shares, and the answers with them changed."""
    masked, position, place = masking.ask_gap(here)
    if position is None:
        return
    loaded = state.ours(here.model, "its neurons one by one")
    if len(here.encoding) > LONGEST:
        notices.note(f"Weighing the neurons takes many runs with gradients, which is done up to {LONGEST} tokens; "
                     f"this input has {len(here.encoding)}.")
        return
    request = here.request(masked=masked, parts=PARTS)
    plain = state.trace(request)
    ids = masking.pieces_to_ask(here, plain, position)
    names = [piece(loaded.tokenizer, number) for number in ids]
    with place:
        word = names.index(controls.choice("Neurons that speak for", names, "guess"))
        count = controls.slider("How many", 1, 20, "count", 8, width=180)
        change = controls.choice("They give", list(CHANGES), "give")
    target = Target("mlm", ids[word], position, "probability")
    shares = state.or_stop(lambda: _shares(request, target))
    chosen = strongest(shares, count)
    if not chosen:
        notices.note(f"No neuron adds anything to “{names[word]}” here: choose another piece.")
        return
    _draw(here, _Asked(request, target, names[word], change), shares, chosen)


@st.cache_data(max_entries=32, show_spinner=False, hash_funcs={TraceRequest: repr, Target: repr})
def _shares(request: TraceRequest, target: Target) -> NeuronShares:
    return state.call(neuron_shares, request, target)


class _Asked(NamedTuple):
    """The run, the probability that is followed, its piece, and what is done to the neurons (of CHANGES)."""

    request: TraceRequest
    target: Target
    word: str
    change: str

    def changed(self, neurons: Sequence[Neuron], **others: Any) -> TraceRequest:
        """The run with these neurons changed."""
        factor = CHANGES[self.change][0]
        return replace(self.request, neurons=tuple((*neuron, factor) for neuron in neurons), **others)

    def probability(self, trace: Trace) -> float:
        """Of the piece, in a run of this sentence."""
        return float(gap_distribution(trace, self.target.position)[self.target.index])


def _draw(here: Here, asked: _Asked, shares: NeuronShares, chosen: Sequence[Neuron]) -> None:
    """What the neurons add, and both sentences' answers with them changed."""
    size = shares.values.shape[1]
    draws = [others_like(chosen, size, n) for n in range(DRAWS)]
    plain, changed, *others = state.traces([asked.request, asked.changed(chosen), *map(asked.changed, draws)])
    notices.result(_in_words(asked, [asked.probability(trace) for trace in (plain, changed, *others)], len(chosen),
                             shares.values.size))
    left, right = st.columns([2, 3], gap="large")
    with left:
        verdict([_side(asked.word, shares, chosen)], "neurons", f"Neurons that speak for {asked.word}")
        say("The shares of all neurons of a layer add up to what the word loses when they give nothing at the gap, "
            f"within {max(100 * shares.gap, 0.01):.2g} points.")
    with right:
        _answers(here, asked, plain, changed, chosen)


def _in_words(asked: _Asked, found: Sequence[float], count: int, size: int) -> str:
    """What became of the piece, and what as many other neurons make of it.

    Args:
        found: its probability as it is, with the neurons changed, and in each of the draws.
    """
    before, after, *others = map(percent, (*found[:2], min(found[2:]), max(found[2:])))
    return (f"{counted(count, 'neuron')} of {size:,} {CHANGES[asked.change][1]}: “{asked.word}” goes from {before} to "
            f"{after}. As many others of the same layers, drawn at random {DRAWS} times: {others[0]} to {others[1]}.")


def _side(word: str, shares: NeuronShares, chosen: Sequence[Neuron]) -> dict[str, Any]:
    """The neurons as bars: how much of the piece's probability each adds."""
    values = [float(shares.values[neuron]) for neuron in chosen]
    names = [f"layer {layer + 1}, neuron {neuron}" for layer, neuron in chosen]
    largest = max(values)
    bars = [{"label": name, "value": value, "share": value / largest, "text": f"{signed(100 * value, 1)} points",
             "below": ""} for name, value in zip(names, values, strict=True)]
    return {"title": f"What each adds to “{word}”", "text": None, "low": 0.0, "high": largest, "hidden": 0,
            "best": None, "bars": bars, "table": [list(row) for row in zip(names, values, strict=True)]}


def _answers(here: Here, asked: _Asked, plain: Trace, changed: Trace, chosen: Sequence[Neuron]) -> None:
    """This sentence's answer before and after, and another's: neurons of a word, or of this sentence?"""
    tokenizer = state.loaded(here.model).tokenizer
    blocks = [_moved(asked, plain, changed, tokenizer, asked.target.position, here.text)]
    picture = st.container()
    text = controls.text("The same neurons in another sentence with [MASK]", "also", OTHER)
    other = TraceRequest(text, model=here.model, precision=here.precision, parts=PARTS)
    before, after = state.traces([other, asked.changed(chosen, text=text, pair=None, masked=())])
    if len(before.mlm_positions):
        blocks.append(_moved(asked, before, after, tokenizer, int(before.mlm_positions[0]), text))
    else:
        notices.note("The other sentence has no [MASK]: type one where the model should guess.")
    with picture:
        components.mount("effect", "neurons_effect", components.pack({
            "blocks": [block._asdict() | {"by": "", "followed": asked.word} for block in blocks], "changed": True,
            "columns": ["piece", "as it is", CHANGES[asked.change][1]]}))


def _moved(asked: _Asked, plain: Trace, changed: Trace, tokenizer: Tokenizer, position: int, text: str) -> Moved:
    """The answer at one gap, the followed piece among those that are shown, under the sentence's own words."""
    row = plain.mlm_positions.tolist().index(position)
    return masked_moves(plain, changed, tokenizer, SHOWN, (asked.target.index,))[row]._replace(title=text)
