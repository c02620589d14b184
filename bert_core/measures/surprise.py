"""Surprise of each token, in nats, under each way of reading.

A causal model's surprises add up to minus the log-likelihood of the sentence.
BERT's are taken one [MASK] at a time and add up to minus the pseudo-log-
likelihood (Salazar et al. 2020, arXiv 1910.14659): each token is guessed with
all others in sight, so that sum is no probability of the sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bert_core.measures.compare import NoReading, Readers, join, log_softmax, row_for, why_not_masked
from bert_core.serving import Engine
from bert_core.tokenizer import Encoding
from bert_core.trace import Trace, TraceRequest

Array = np.ndarray

#: Pieces that are scored at most: BERT needs a run for each.
MAX_SCORED = 96


@dataclass(frozen=True)
class Surprise:
    """One reader's surprise over the sentence.

    Attributes:
        reader: 'both', 'left', 'hidden', 'right' or 'elmo'.
        models: names of the models.
        tokens: the N scored pieces.
        nats: (N,) float64, -ln p of each; NaN where the reader can't guess it.
    """

    reader: str
    models: tuple[str, ...]
    tokens: tuple[str, ...]
    nats: Array

    @property
    def total(self) -> float:
        """Sum over the pieces that this reader can guess, nats."""
        return float(np.nansum(self.nats))

    @property
    def mean(self) -> float:
        """Nats a piece, over the pieces that this reader can guess."""
        return float(np.nanmean(self.nats)) if np.isfinite(self.nats).any() else float("nan")


def masked_one_at_a_time(text: str, pair: str | None, model: str, attention: str,
                         places: Sequence[int]) -> list[TraceRequest]:
    """A request for each place, with [MASK] there and nowhere else."""
    return [TraceRequest(text, pair, attention=attention, model=model, masked=(n,),
                         parts=("mlm_positions", "mlm_logits")) for n in places]


def masked_surprise(traces: Sequence[Trace], encoding: Encoding, places: Sequence[int]) -> Array:
    """(N,) nats from the runs of `masked_one_at_a_time`."""
    nats = []
    for trace, place in zip(traces, places, strict=True):
        row = int(np.flatnonzero(trace.mlm_positions == place)[0])
        nats.append(-log_softmax(trace.mlm_logits[row])[encoding.input_ids[place]])
    return np.array(nats)


def causal_log_probs(trace: Trace, places: Sequence[int]) -> Array:
    """(N, V) log-probabilities of a causal model for the token at each place; NaN rows where it has none."""
    rows = []
    for place in places:
        try:
            rows.append(log_softmax(trace.lm_logits[row_for(trace.config.reading_order, len(trace), place)]))
        except NoReading:
            rows.append(np.full(trace.lm_logits.shape[1], np.nan))
    return np.stack(rows) if rows else np.zeros((0, trace.lm_logits.shape[1]))


def taken(log_probs: Array, trace: Trace, places: Sequence[int]) -> Array:
    """(N,) nats of the true tokens out of (N, V) log-probabilities."""
    ids = np.asarray(trace.input_ids)[list(places)]
    return -log_probs[np.arange(len(places)), ids]


def surprises(engine: Engine, text: str, pair: str | None, readers: Readers) -> tuple[Surprise, ...]:
    """Every reader's surprise over the first MAX_SCORED pieces, in one batch for each model.

    'hidden' is left out where the masked model takes no other mask than its own.

    Raises:
        ValueError: the sentence has no pieces.
    """
    encodings = {name: engine.loaded(name).tokenizer.encode(text, pair)
                 for name in (readers.masked, readers.left, readers.right) if name}
    places = {name: scored_places(encoding) for name, encoding in encodings.items()}
    if not places[readers.masked]:
        raise ValueError("there is nothing to score: type a sentence")
    causal = [name for name in (readers.left, readers.right) if name]
    kinds = {"both": "bidirectional", "hidden": "causal"}
    if why_not_masked(engine.loaded(readers.masked)):
        del kinds["hidden"]
    batch = [r for kind in kinds.values()
             for r in masked_one_at_a_time(text, pair, readers.masked, kind, places[readers.masked])]
    batch += [TraceRequest(text, pair, model=name, parts=("lm_logits",)) for name in causal]
    traces = engine.run_many(batch)
    count, encoding = len(places[readers.masked]), encodings[readers.masked]
    tokens = {name: tuple(encodings[name].tokens[n] for n in places[name]) for name in encodings}
    found = [Surprise(reader, (readers.masked,), tokens[readers.masked],
                      masked_surprise(traces[at:at + count], encoding, places[readers.masked]))
             for reader, at in zip(kinds, range(0, len(kinds) * count, count), strict=True)]
    rest = dict(zip(causal, traces[len(kinds) * count:], strict=True))
    return tuple(found) + _causal_surprises(rest, readers, places, tokens)


def scored_places(encoding: Encoding) -> tuple[int, ...]:
    """Positions that are scored: words with a known truth, the first MAX_SCORED of them."""
    return tuple(n for n in encoding.content if n not in encoding.mask_positions)[:MAX_SCORED]


def _causal_surprises(traces: dict[str, Trace], readers: Readers, places: dict, tokens: dict) -> tuple[Surprise, ...]:
    found, log_probs = [], {}
    for reader, name in (("left", readers.left), ("right", readers.right)):
        if name:
            log_probs[reader] = causal_log_probs(traces[name], places[name])
            found.append(Surprise(reader, (name,), tokens[name], taken(log_probs[reader], traces[name], places[name])))
    if len(log_probs) == 2 and tokens[readers.left] == tokens[readers.right]:
        joined = join(log_probs["left"], log_probs["right"])
        found.append(Surprise("elmo", (readers.left, readers.right), tokens[readers.left],
                              taken(joined, traces[readers.left], places[readers.left])))
    return tuple(found)
