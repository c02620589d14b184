"""One place in one sentence, asked of several readers: the heart of both ways.

Readers, by what they may use of the sentence:

    both    BERT with [MASK] there: left and right in every layer
    left    a model trained left to right: what stands before
    hidden  the same BERT with a causal mask: not a GPT, it was never trained so
    before  the same BERT, both ways among what stands before: no token may look
            at the words after the gap (what `reveal` calls the whole left side)
    right   a model trained right to left: what stands after
    elmo    left and right joined only at the end: what each adds to a piece's
            logit is added up (see `join`). Peters et al. 2018, arXiv 1802.05365,
            concatenate the two readers' vectors, and a layer over both adds so

The true word may have several pieces. Its probability is then the chain rule's
product, piece by piece in the order of reading: BERT gets the pieces already
read back in place of their [MASK].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bert_core.load import Loaded
from bert_core.loading.check import is_ours
from bert_core.measures.predictions import piece, top_ids
from bert_core.model import Model
from bert_core.serving import Engine
from bert_core.tasks.support import log_softmax
from bert_core.tasks.vocabulary import Prediction, read_before
from bert_core.tokenizer import Encoding
from bert_core.trace import Trace, TraceRequest

Array = np.ndarray

READERS = ("both", "left", "hidden", "before", "right", "elmo")
#: Readers that are the masked model, each with the attention it runs under.
MASKED = {"both": "bidirectional", "hidden": "causal", "before": "bidirectional"}
#: A word of more pieces is not multiplied out (each piece is one more row of the batch).
MAX_PIECES = 12


@dataclass(frozen=True)
class Question:
    """A stretch of the input that the readers must guess.

    Attributes:
        text, pair: the input.
        sequence: 0 or 1, the sentence it stands in.
        start, end: code points of its sentence, end exclusive.
    """

    text: str
    pair: str | None
    sequence: int
    start: int
    end: int

    @property
    def word(self) -> str:
        """The stretch itself."""
        return (self.text if self.sequence == 0 else self.pair or "")[self.start:self.end]


@dataclass(frozen=True)
class Reading:
    """What one reader says about a Question.

    Attributes:
        reader: one of READERS.
        models: names of the models that made it.
        positions: the hidden pieces, in reading order, [CLS] is 0.
        log_probs: (V,) float64, natural log, at the piece this reader guesses
            first: the first of the word, for a right-to-left reader the last.
        truth: ids of the true word in the order this reader guesses them;
            empty where it is not known ([MASK] typed, or not in the vocabulary).
        chain: log-probability of each of them, nats; empty as `truth` or where
            there are more than MAX_PIECES.
        trace: the run, None for the two joined.
    """

    reader: str
    models: tuple[str, ...]
    positions: tuple[int, ...]
    log_probs: Array
    truth: tuple[int, ...]
    chain: tuple[float, ...]
    trace: Trace | None = None

    @property
    def log_likelihood(self) -> float | None:
        """Log-probability of the whole true word, nats; None if not known."""
        return float(sum(self.chain)) if self.chain else None

    @property
    def probability(self) -> float | None:
        """Probability of the whole true word; None if not known."""
        return None if self.log_likelihood is None else float(np.exp(self.log_likelihood))

    @property
    def rank(self) -> int | None:
        """Place of the true word's first guessed piece in the list, 1 is the best."""
        if not self.truth:
            return None
        return int((self.log_probs > self.log_probs[self.truth[0]]).sum()) + 1


class NoReading(ValueError):
    """This reader can't answer here; the message says why."""


# --- the question ------------------------------------------------------------


def word_positions(encoding: Encoding, position: int) -> tuple[int, ...]:
    """All pieces of the word that the piece at `position` belongs to.

    Raises:
        ValueError: the position is none, or a special token.
    """
    if not 0 <= position < len(encoding) or encoding.special[position]:
        raise ValueError(f"position {position} is no word; choose one of {_spans(encoding.content)}")
    if position in encoding.mask_positions:
        return (position,)
    key = (encoding.sequence_ids[position], encoding.word_ids[position])
    return tuple(n for n in encoding.content
                 if (encoding.sequence_ids[n], encoding.word_ids[n]) == key and n not in encoding.mask_positions)


def _spans(content: Sequence[int]) -> str:
    return f"{content[0]} to {content[-1]}" if content else "none: the sentence has no words"


def question_at(encoding: Encoding, position: int) -> Question:
    """The word at a position, as a stretch of text that any tokenizer can find; the space before it is no part."""
    positions = word_positions(encoding, position)
    starts, ends = zip(*(encoding.offsets[n] for n in positions), strict=True)
    whole = Question(encoding.text, encoding.pair, encoding.sequence_ids[position] or 0, min(starts), max(ends))
    space = len(whole.word) - len(whole.word.lstrip())
    return replace(whole, start=whole.start + space) if space < len(whole.word) else whole


def positions_of(encoding: Encoding, question: Question) -> tuple[int, ...]:
    """Pieces of another tokenizer that hold the question's stretch.

    Raises:
        NoReading: there is none (cut off at the model's limit).
    """
    found = tuple(n for n in encoding.content if encoding.sequence_ids[n] == question.sequence
                  and encoding.offsets[n][0] < question.end and encoding.offsets[n][1] > question.start)
    if not found:
        raise NoReading("the word lies beyond this model's limit")
    return found


def after(encoding: Encoding, positions: Sequence[int]) -> tuple[int, ...]:
    """Pieces that stand after the hidden ones, specials left out."""
    return tuple(n for n in encoding.content if n > max(positions))


# --- rows of logits ----------------------------------------------------------


def row_for(reading_order: str, length: int, position: int) -> int:
    """The row of a causal model's logits that scores the token at `position`.

    Left to right it is the token before. Right to left it is the token after;
    for the last word that is [CLS], with which that model starts to read.

    Raises:
        NoReading: nothing stands before the first token.
    """
    row = read_before(reading_order, length, position)
    if row is None:
        raise NoReading("nothing stands left of the first token, and this model has no start token")
    return row


def mlm_row(trace: Trace, position: int) -> Array:
    """(V,) logits of a masked-LM head at one position."""
    rows = np.flatnonzero(trace.mlm_positions == position)
    return trace.mlm_logits[rows[0]]


def visible(trace_kind: str, reading_order: str, length: int) -> Array:
    """(Tq, Tk) bool in reading order: which query may see which key by the direction of reading."""
    if trace_kind == "bidirectional":
        return np.ones((length, length), dtype=bool)
    order = np.arange(length)
    if reading_order == "right-to-left":
        order[1:-1] = order[1:-1][::-1]
    return order[:, None] >= order[None, :]


def allowed_pairs(trace: Trace, layer: int) -> Array:
    """(Tq, Tk) bool in reading order: what the mask of a layer, 0-based, let each query see in this run.

    A family that transformers runs may look at near tokens only in some of its layers, each in a way of its own
    (ModernBERT, GPT-Neo). Such a mask forbids distances: those at which no head of the layer gives any token any
    weight. A single weight may be 0 without a mask, where the scores lie far apart.
    """
    seen = visible(trace.attention_kind, trace.config.reading_order, len(trace))
    if is_ours(trace.config):
        return seen
    given, order = trace.attention_probs[layer].any(axis=0), np.arange(len(trace))
    reached = [distance for distance in range(-len(trace) + 1, len(trace)) if given.diagonal(distance).any()]
    return seen & np.isin(order[None, :] - order[:, None], reached)


def has_windows(trace: Trace) -> bool:
    """Whether a layer's mask forbade more in this run than the direction of reading does."""
    seen = visible(trace.attention_kind, trace.config.reading_order, len(trace))
    return any((allowed_pairs(trace, layer) != seen).any() for layer in range(trace.config.num_hidden_layers))


# --- the readers -------------------------------------------------------------


@dataclass(frozen=True)
class Readers:
    """Which models read: a masked one, and causal ones where there are any."""

    masked: str
    left: str | None = None
    right: str | None = None

    def model_of(self, reader: str) -> str:
        """The model behind one reader (for 'elmo' the left one).

        Raises:
            NoReading: there is no such model here.
        """
        name = self.masked if reader in MASKED else self.right if reader == "right" else self.left
        if name is None or (reader == "elmo" and self.right is None):
            missing = "right-to-left" if name is not None or reader == "right" else "left-to-right"
            raise NoReading(f"no {missing} model is here, so nobody can read this way")
        return name


def true_ids(engine: Engine, model: str, encoding: Encoding, positions: Sequence[int]) -> tuple[int, ...]:
    """Ids of the true pieces; () where the word is not known to the model."""
    tokenizer = engine.loaded(model).tokenizer
    ids = tuple(encoding.input_ids[n] for n in positions)
    unknown = tokenizer.id_of(tokenizer.specials.get("unk", ""))
    return () if unknown in ids or set(positions) & set(encoding.mask_positions) else ids


def masked_requests(question: Question, model: str, attention: str, positions: Sequence[int], pieces: int,
                    parts: tuple[str, ...] = (), hidden: tuple[int, ...] = ()) -> list[TraceRequest]:
    """One run with the whole word masked, then one more for each piece already guessed.

    Args:
        pieces: of the true word to score; 0 where it is not known.
        parts: wanted of the first run beside the logits.
        hidden: positions that no other token may look at.
    """
    logits = ("mlm_positions", "mlm_logits")
    return [TraceRequest(question.text, question.pair, attention=attention, model=model,
                         masked=tuple(positions[n:]), hidden=hidden, parts=logits + (parts if n == 0 else ()))
            for n in range(max(1, pieces))]


def causal_request(question: Question, model: str, rows: Sequence[int], parts: tuple[str, ...] = ()) -> TraceRequest:
    """One run of a causal model: each row already knows nothing of what it guesses.

    Args:
        rows: see `row_for`.
    """
    return TraceRequest(question.text, question.pair, model=model, parts=("lm_logits", *parts), lm_at=tuple(rows))


@dataclass(frozen=True)
class _Plan:
    """One reader's rows in the batch."""

    reader: str
    model: str
    positions: tuple[int, ...]
    truth: tuple[int, ...]
    requests: tuple[TraceRequest, ...]


def why_not_masked(loaded: Loaded) -> str:
    """Why nothing can be hidden from this model's attention, '' where our own encoder runs it."""
    if isinstance(loaded.model, Model):
        return ""
    return (f"{loaded.name} runs through transformers' own {loaded.config.model_type}, only with its own attention: "
            "the explorer can hide no words from it")


def plan(engine: Engine, question: Question, readers: Readers, reader: str, parts: tuple[str, ...] = ()) -> _Plan:
    """What has to be run for one reader.

    Raises:
        NoReading: the model is missing or takes no other mask, or the word
            lies beyond its limit.
    """
    model = readers.model_of(reader)
    if reader in ("hidden", "before") and (reason := why_not_masked(engine.loaded(model))):
        raise NoReading(reason)
    encoding = engine.loaded(model).tokenizer.encode(question.text, question.pair)
    positions = positions_of(encoding, question)
    truth = true_ids(engine, model, encoding, positions)
    if reader == "right":
        positions, truth = positions[::-1], truth[::-1]
    pieces = len(truth) if len(truth) <= MAX_PIECES else 0
    if reader in MASKED:
        unseen = after(encoding, positions) if reader == "before" else ()
        requests = masked_requests(question, model, MASKED[reader], positions, pieces, parts, unseen)
    else:
        order = engine.loaded(model).config.reading_order
        rows = [row_for(order, len(encoding), place) for place in positions[:max(1, pieces)]]
        requests = [causal_request(question, model, rows, parts)]
    return _Plan(reader, model, positions, truth, tuple(requests))


def read(engine: Engine, question: Question, readers: Readers, wanted: Sequence[str] = READERS,
         parts: tuple[str, ...] = ()) -> tuple[dict[str, Reading], dict[str, str]]:
    """Ask every reader at once: one batch for each model.

    Args:
        wanted: of READERS.
        parts: Trace arrays to keep beside the logits, for pictures.

    Returns:
        Readings by reader, and for each that can't answer the reason.
    """
    plans: list[_Plan] = []
    gaps: dict[str, str] = {}
    single = [r for r in wanted if r != "elmo"]
    for reader in single + [r for r in ("left", "right") if "elmo" in wanted and r not in single]:
        try:
            plans.append(plan(engine, question, readers, reader, parts))
        except NoReading as error:
            gaps[reader] = str(error)
    traces = iter(engine.run_many([request for p in plans for request in p.requests]))
    readings: dict[str, Reading] = {}
    for one in plans:
        readings[one.reader] = _reading(one, [next(traces) for _ in one.requests])
    if "elmo" in wanted:
        try:
            readings["elmo"] = elmo(engine, readings, gaps)
        except NoReading as error:
            gaps["elmo"] = str(error)
    return {r: readings[r] for r in READERS if r in readings and r in wanted}, gaps


def _reading(one: _Plan, runs: Sequence[Trace]) -> Reading:
    """Log-probabilities at the first guess, and along the true word."""
    scored = len(one.truth) if len(one.truth) <= MAX_PIECES else 0
    if one.reader in MASKED:
        rows = [log_softmax(mlm_row(run, p)) for run, p in zip(runs, one.positions, strict=False)]
    else:
        rows = list(log_softmax(runs[0].lm_logits))
    chain = tuple(float(row[i]) for row, i in zip(rows, one.truth[:scored], strict=False))
    return Reading(one.reader, (one.model,), tuple(sorted(one.positions)), rows[0], one.truth, chain, runs[0])


def elmo(engine: Engine, readings: Mapping[str, Reading], gaps: Mapping[str, str]) -> Reading:
    """Left and right readers joined at the end, see `join`.

    Raises:
        NoReading: one is missing, they differ in vocabulary, or the word has
            several pieces (each reader then guesses another piece first).
    """
    for side in ("left", "right"):
        if side not in readings:
            raise NoReading(gaps.get(side, f"the {side} reader was not asked"))
    left, right = readings["left"], readings["right"]
    if left.log_probs.shape != right.log_probs.shape or left.positions != right.positions:
        raise NoReading("the two readers have different vocabularies; they can't be joined")
    if len(left.positions) > 1:
        raise NoReading("the word has several pieces: the left reader guesses its first piece, the right one its last, "
                        "so there is no common list to join")
    joined = join(left.log_probs, right.log_probs, shared_bias(engine, left.models[0], right.models[0]))
    chain = tuple(float(joined[i]) for i in left.truth)
    return Reading("elmo", (*left.models, *right.models), left.positions, joined, left.truth, chain)


def join(left: Array, right: Array, bias: Array) -> Array:
    """Both readers' logits added with one bias instead of two, renormalised.

    It is the softmax of W h_left + W h_right + b, a layer over both vectors, where
    each reader's own is W h + b. A plain product of their probabilities has b,
    which is larger the commoner a piece is, twice.

    Args:
        left, right: (..., V) log-probabilities.
        bias: (V,) b, see `shared_bias`.

    Returns:
        (..., V) log-probabilities, float64.
    """
    return log_softmax(left + right - bias)


def shared_bias(engine: Engine, left: str, right: str) -> Array:
    """(V,) the mean of two models' decoder biases; a model that has none, or keeps it to itself, counts as zeros."""
    biases = []
    for name in (left, right):
        model = engine.loaded(name).model
        bias = model.weights.get(model.names.mlm_bias) if isinstance(model, Model) else None
        biases.append(np.zeros(1) if bias is None else bias.float().cpu().numpy().astype(np.float64))
    return (biases[0] + biases[1]) / 2


def top(reading: Reading, engine: Engine, count: int = 5) -> tuple[Prediction, ...]:
    """The reader's best `count` pieces with their probabilities."""
    tokenizer = engine.loaded(reading.models[0]).tokenizer
    return tuple(Prediction(piece(tokenizer, i), int(i), float(np.exp(reading.log_probs[i])))
                 for i in top_ids(reading.log_probs, count))


