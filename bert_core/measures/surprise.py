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

from bert_core.config import BertConfig
from bert_core.counting import counted
from bert_core.measures.compare import MASKED, NoReading, Readers, join, row_for, shared_bias, why_not_masked
from bert_core.measures.compare_writing import layer_multiplications
from bert_core.serving import Engine
from bert_core.tasks.support import log_softmax
from bert_core.tasks.vocabulary import known_places
from bert_core.tokenizer import Encoding, Tokenizer
from bert_core.trace import Trace, TraceRequest

Array = np.ndarray

#: Pieces that are scored at most: a curve of more can't be read.
MAX_SCORED = 96
#: Multiply-adds of all BERT's runs together: four seconds at 25 thousand million a second, which two cores did at 512
#: tokens.
MAX_WORK = 100_000_000_000


@dataclass(frozen=True)
class Surprise:
    """One reader's surprise over the sentence.

    Attributes:
        reader: 'both', 'left', 'hidden', 'right' or 'elmo'.
        models: names of the models.
        tokens: the N scored pieces.
        nats: (N,) float64, -ln p of each; NaN where the reader can't guess it.
        length: pieces of the sentence that have a known truth; more than N where only the first are scored.
        places: position of each piece in the input, [CLS] being 0.
    """

    reader: str
    models: tuple[str, ...]
    tokens: tuple[str, ...]
    nats: Array
    length: int
    places: tuple[int, ...]

    @property
    def total(self) -> float:
        """Sum over the pieces that this reader can guess, nats."""
        return float(np.nansum(self.nats))

    @property
    def mean(self) -> float:
        """Nats a piece, over the pieces that this reader can guess."""
        return float(np.nanmean(self.nats)) if np.isfinite(self.nats).any() else float("nan")

    @property
    def is_cut(self) -> bool:
        """Whether only the first pieces of the sentence are scored."""
        return len(self.nats) < self.length

    @property
    def covers(self) -> str:
        """The pieces that total and mean are of: '5 tokens', 'the first 12 of 510 tokens'."""
        guessed, count = int(np.isfinite(self.nats).sum()), len(self.nats)
        if not self.is_cut:
            return counted(guessed, "token")
        known = "" if guessed == count else f"{guessed} of "
        return f"{known}the first {count} of {self.length} tokens"


def scored_places(encoding: Encoding, tokenizer: Tokenizer) -> tuple[int, ...]:
    """`known_places` without [UNK]: what stands there is not known, and BERT was never trained to predict it."""
    unknown = tokenizer.id_of(tokenizer.specials.get("unk", ""))
    return tuple(n for n in known_places(encoding) if encoding.input_ids[n] != unknown)


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
    """Every reader's surprise over the first pieces, in one batch for each model; BERT's work decides how many.

    'hidden' is left out where the masked model takes no other mask than its own.

    Raises:
        ValueError: the sentence has no pieces.
    """
    kinds = {reader: MASKED[reader] for reader in ("both", "hidden")}
    if why_not_masked(engine.loaded(readers.masked)):
        del kinds["hidden"]
    causal = [name for name in (readers.left, readers.right) if name]
    encodings = {name: engine.loaded(name).tokenizer.encode(text, pair) for name in (readers.masked, *causal)}
    encoding = encodings[readers.masked]
    most = most_scored(engine.loaded(readers.masked).config, len(encoding), len(kinds))
    known = {name: scored_places(one, engine.loaded(name).tokenizer) for name, one in encodings.items()}
    masked = known[readers.masked][:most]
    if not masked:
        raise ValueError("there is nothing to score: type a sentence")
    batch = [r for kind in kinds.values() for r in masked_one_at_a_time(text, pair, readers.masked, kind, masked)]
    batch += [TraceRequest(text, pair, model=name, parts=("lm_logits",)) for name in causal]
    traces, count = engine.run_many(batch), len(masked)
    found = [_surprise(reader, (readers.masked,), encoding, masked,
                       masked_surprise(traces[at:at + count], encoding, masked), len(known[readers.masked]))
             for reader, at in zip(kinds, range(0, len(kinds) * count, count), strict=True)]
    rest = dict(zip(causal, traces[len(kinds) * count:], strict=True))
    return tuple(found) + _causal_surprises(engine, rest, readers, encodings, known, (encoding, masked[-1]))


def most_scored(config: BertConfig, length: int, kinds: int) -> int:
    """How many pieces MAX_WORK allows at this length: at least one, at most MAX_SCORED.

    Args:
        config: sizes of the model that needs a run for each piece.
        length: tokens of each run.
        kinds: attention masks under which each piece is guessed.
    """
    one = layer_multiplications(config, length, length**2)
    return min(MAX_SCORED, max(1, MAX_WORK // (kinds * one)))


def places_within(places: Sequence[int], encoding: Encoding, masked: Encoding, last: int) -> tuple[int, ...]:
    """Those of another tokenizer's places in the stretch that BERT is scored on, which ends with its piece `last`."""
    end = masked.sequence_ids[last], masked.offsets[last][1]
    return tuple(n for n in places if (encoding.sequence_ids[n], encoding.offsets[n][0]) < end)


def _surprise(reader: str, models: tuple[str, ...], encoding: Encoding, places: Sequence[int], nats: Array,
              length: int) -> Surprise:
    tokens = tuple(encoding.tokens[n] for n in places)
    return Surprise(reader, models, tokens, nats, length, tuple(places))


def _causal_surprises(engine: Engine, traces: dict[str, Trace], readers: Readers, encodings: dict[str, Encoding],
                      known: dict[str, tuple[int, ...]], end: tuple[Encoding, int]) -> tuple[Surprise, ...]:
    """The one-way readers, and the two joined.

    Args:
        known: each model's places that can be scored.
        end: BERT's encoding and the last place of it that is scored.
    """
    places = {name: places_within(known[name], encodings[name], *end) for name in traces}
    found, log_probs = [], {}

    def add(reader: str, name: str, models: tuple[str, ...], rows: Array) -> None:
        nats = taken(rows, traces[name], places[name])
        found.append(_surprise(reader, models, encodings[name], places[name], nats, len(known[name])))

    for reader, name in (("left", readers.left), ("right", readers.right)):
        if name:
            log_probs[reader] = causal_log_probs(traces[name], places[name])
            add(reader, name, (name,), log_probs[reader])
    if len(log_probs) == 2 and found[0].tokens == found[1].tokens:
        joined = join(log_probs["left"], log_probs["right"], shared_bias(engine, readers.left, readers.right))
        add("elmo", readers.left, (readers.left, readers.right), joined)
    return tuple(found)
