"""The Masking page's other views: before and after, the other sentence, 80/10/10, pseudo-perplexity."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import streamlit as st

from bert_core.counting import counted
from bert_core.figures import masking as figures
from bert_core.measures import masking as rule
from bert_core.measures import predictions
from bert_core.measures.surprise import masked_one_at_a_time, masked_surprise, most_scored, scored_places
from bert_core.tokenizer import Encoding
from bert_core.trace import Trace
from ui import chips, components, controls, notices, state
from ui.state import Here
from ui.views import masking

ALL_LAYERS = "all layers"
OTHER_SENTENCE = "The schoolteacher opened the [MASK] and walked out."
MAX_SEED = 999_999
#: A draw that masks one word of the first sentence and swaps another.
FIRST_SEED = 64


def before_and_after(here: Here) -> None:
    """Attention and true-token probabilities without and with the chosen masks; below the maps, whose they are."""
    encoding, picture = here.encoding, st.container()
    layers = state.loaded(here.model).config.num_hidden_layers
    layer = controls.choice("Attention of", [ALL_LAYERS, *map(str, range(1, layers + 1))], "layer", as_list=True)
    masked = masking.chosen(encoding, _to_hide(encoding))
    hint = "Click a token to hide it; everything below compares the sentence with and without it."
    with picture:
        masking.mount_gaps("gaps", encoding, masked, [], hint)
    if not masked:
        return
    parts = ("attention_probs", "mlm_positions", "mlm_logits")
    before, after = state.traces([here.request(parts=parts, all_logits=True),
                                  here.request(parts=parts, all_logits=True, masked=masked)])
    with picture:
        _attention_change(encoding, before, after, layer)
    _prediction_change(encoding, before, after)


def _to_hide(encoding: Encoding) -> tuple[int, ...]:
    """Something to begin with: the usual first choice, or the longest whole word beside gaps that were typed.

    Part of a word would be given away by the rest of it.
    """
    if not encoding.mask_positions:
        return (chips.second_word(encoding),) if encoding.content else ()
    words = Counter((encoding.sequence_ids[n], encoding.word_ids[n]) for n in encoding.content)
    there = [n for n in encoding.content if n not in encoding.mask_positions]
    whole = [n for n in there if words[encoding.sequence_ids[n], encoding.word_ids[n]] == 1] or there
    return (max(whole, key=lambda n: len(encoding.tokens[n])),) if whole else ()


def mean_attention(trace: Trace, layer: str) -> np.ndarray:
    """(Tq, Tk) mean over the heads of one layer ('3'), or over all."""
    probs = trace.attention_probs if layer == ALL_LAYERS else trace.attention_probs[int(layer) - 1:int(layer)]
    return probs.mean(axis=(0, 1))


def _attention_change(encoding: Encoding, before: Trace, after: Trace, layer: str) -> None:
    first, second = mean_attention(before, layer), mean_attention(after, layer)
    change = second - first
    limit = max(float(np.abs(change).max()), 1e-6)
    names = [f"“{token}” ({n})" for n, token in enumerate(encoding.tokens)]
    data = components.pack(
        {"rows": names, "columns": names, "row_word": "from", "column_word": "to", "size": 420,
         "ticks": list(encoding.tokens),
         "caption": "Attention, mean over heads",
         "panels": [{"title": "Before", "name": "first", "signed": False},
                    {"title": "After", "name": "second", "signed": False},
                    {"title": "Change", "name": "change", "signed": True, "limit": limit}]},
        {"first": first.astype(np.float32), "second": second.astype(np.float32), "change": change.astype(np.float32)},
    )
    components.mount("maps", "change", data)


def _prediction_change(encoding: Encoding, before: Trace, after: Trace) -> None:
    truth = list(encoding.input_ids)
    typed = set(encoding.mask_positions)
    rows = [n for n in encoding.content if n not in typed]
    first = predictions.true_probabilities(before, truth)
    second = predictions.true_probabilities(after, truth)
    data = components.pack({
        "tokens": [encoding.tokens[n] for n in rows], "first": [float(first[n]) for n in rows],
        "second": [float(second[n]) for n in rows], "second_name": "with your masks",
        "first_name": "only the typed [MASK] hidden" if typed else "nothing hidden",
        "caption": "Probability of the true piece at its own place",
    })
    components.mount("pairs", "pairs", data)


def other_sentence(here: Here) -> None:
    """One gap of this sentence against one of another, over the whole vocabulary."""
    other = controls.text("The other sentence, with its own [MASK]", "other", OTHER_SENTENCE)
    encoding, masked = here.encoding, masking.chosen(here.encoding)
    requests = [here.request(masked=masked, parts=("mlm_positions", "mlm_logits")),
                here.request(text=other, pair=None, parts=("mlm_positions", "mlm_logits"))]
    traces = state.traces(requests)
    gaps = [trace.mlm_positions[:1].tolist() for trace in traces]
    masking.mount_gaps("gaps", encoding, masked, [], masking.no_gap(encoding, masked))
    if not gaps[1]:
        is_beyond = traces[1].encoding.masks_beyond
        notices.note("The [MASK] of the other sentence lies behind this model's limit: shorten it." if is_beyond else
                     "The other sentence has no [MASK], so there is nothing to compare with: type [MASK] in it.")
    if not (gaps[0] and gaps[1]):
        return
    first, second = (predictions.gap_distribution(trace, gap[0]) for trace, gap in zip(traces, gaps, strict=True))
    tokenizer = state.loaded(here.model).tokenizer
    compared = predictions.contrast(first, second, 8)
    header, arrays = figures.scatter_data(
        predictions.vocabulary_scatter(first, second), compared, first, second,
        lambda index: predictions.piece(tokenizer, index), ("your sentence", "the other"))
    notices.result(f"First gap against first gap: the two answers differ by {compared.divergence:.3f} bits "
                   "(Jensen-Shannon; 0 is the same answer, 1 is nothing in common).")
    components.mount("vocabulary", "vocabulary", components.pack(header, arrays))


def simulator(here: Here) -> None:
    """A seeded draw of the 80/10/10 rule over one's own text, and many of them counted."""
    with controls.row():
        seed = int(controls.number("Seed", 0, MAX_SEED, "seed", FIRST_SEED))
        share = controls.slider("Share chosen, %", 0, 60, "rate", 15)
        draws = controls.slider("Draws to count", 10, 1000, "draws", 200, step=10)
    loaded, encoding = state.loaded(here.model), here.encoding
    if loaded.tokenizer.mask_id is None:
        state.stop(f"{here.model} has no [MASK] token, so the rule has nothing to put in.", state.instead())
    drawn = rule.draw(encoding, loaded.tokenizer, share / 100, seed)
    tally = rule.tally(encoding, loaded.tokenizer, share / 100, seed, draws)
    losses = None
    if "mlm" in loaded.model.heads:
        trace = state.trace(here.request(replaced=rule.replacements(drawn), all_logits=True,
                                         parts=("mlm_positions", "mlm_logits")))
        losses = rule.losses(trace, drawn)
    header = figures.draw_data(encoding, drawn, losses, lambda i: predictions.piece(loaded.tokenizer, i), tally)
    header["mean_loss"] = figures.loss_line(losses, len(encoding))
    components.mount("corruption", "corruption", components.pack(header))


def pseudo_perplexity(here: Here) -> None:
    """Each piece hidden alone, all others in sight: its probability on its chip."""
    encoding = here.encoding
    known = scored_places(encoding, state.loaded(here.model).tokenizer)
    places = known[:most_scored(state.loaded(here.model).config, len(encoding), kinds=1)]
    if not places:
        notices.note("There is nothing to score: type a sentence.")
        return
    traces = state.traces(masked_one_at_a_time(here.text, here.pair, here.model, "bidirectional", places))
    nats = masked_surprise(traces, encoding, places)
    values: list[float | None] = [None] * len(encoding)
    labels = [""] * len(encoding)
    for place, surprise in zip(places, nats.tolist(), strict=True):
        values[place], labels[place] = math.exp(-surprise), figures.percent(math.exp(-surprise))
    is_cut = len(places) < len(known)
    covered = f"the first {len(places)} of {len(known)} pieces" if is_cut else counted(len(places), "piece")
    cut = " Each piece needs a run over the whole text: more would take longer than a few seconds." if is_cut else ""
    gap = " What you typed as [MASK] stays hidden in every run." if encoding.mask_positions else ""
    chips.tokens(encoding, "scored", values=values, labels=labels, label="Tokens, each shaded by its own probability")
    notices.result(f"Pseudo-perplexity {math.exp(nats.mean()):.2f}: e to the mean surprise of {nats.mean():.4f} nats "
                   f"over {covered}; pseudo-log-likelihood −{nats.sum():.2f} nats.{cut}{gap}")
