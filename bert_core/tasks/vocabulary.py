"""Tasks of the vocabulary heads: gaps, what comes next, and how likely a text is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bert_core.tasks.support import log_softmax, require_head, require_text, softmax
from bert_core.tokenizer import MAX_CHARACTERS
from bert_core.trace import TraceRequest

if TYPE_CHECKING:
    from bert_core.config import BertConfig
    from bert_core.load import Loaded
    from bert_core.serving.engine import Engine
    from bert_core.tokenizer import Encoding, Tokenizer
    from bert_core.trace import Trace


@dataclass(frozen=True)
class Prediction:
    """One word piece and how probable the model finds it, 0 to 1."""

    token: str
    id: int
    probability: float


@dataclass(frozen=True)
class Gap:
    """The best pieces for one [MASK]; none where it stands beyond the model's limit.

    Attributes:
        position: of the [MASK], [CLS] counted as 0.
    """

    position: int
    predictions: tuple[Prediction, ...]


@dataclass(frozen=True)
class TokenScore:
    """ln p of the piece that stands at a position, in nats."""

    position: int
    token: str
    log_probability: float


@dataclass(frozen=True)
class Score:
    """How likely a model finds a text.

    Attributes:
        log_likelihood: sum over the scored pieces, in nats; for BERT the
            pseudo-log-likelihood (Salazar et al. 2020, arXiv 1910.14659).
        pieces: every scored piece, in reading order; specials are not scored,
            nor is a [MASK] that was typed.
    """

    log_likelihood: float
    pieces: tuple[TokenScore, ...]

    @property
    def tokens(self) -> int:
        return len(self.pieces)


def top_predictions(logits: np.ndarray, tokenizer: Tokenizer, top: int) -> tuple[Prediction, ...]:
    """The `top` most probable pieces of one row of vocabulary logits.

    Args:
        logits: (V,); an id that is no piece (padding of the table) is never given.

    Raises:
        ValueError: `top` is below 1.
    """
    if top < 1:
        raise ValueError(f"top {top}: ask for at least 1 prediction")
    probabilities = softmax(logits)
    no_pieces = max(len(probabilities) - tokenizer.vocab_size, 0)
    count = min(top + no_pieces, len(probabilities))
    best = np.argpartition(-probabilities, count - 1)[:count]
    best = [int(i) for i in best[np.argsort(-probabilities[best], kind="stable")] if tokenizer.knows(i)]
    return tuple(Prediction(tokenizer.token_of(i), i, float(probabilities[i])) for i in best[:top])


def fill_mask(
    engine: Engine, text: str, pair: str | None = None, model: str | None = None, top: int = 5
) -> tuple[Gap, ...]:
    """The best pieces for every [MASK] of a text (Devlin et al. 2018, section 3.1, task 1).

    Raises:
        NoHead: the model has no masked-LM head; a causal one can't look right.
        ValueError: the text has no [MASK], or `top` is below 1.
    """
    loaded = require_head(engine, model, "mlm")
    trace = engine.run(TraceRequest(text, pair, model=model, parts=("mlm_positions", "mlm_logits")))
    beyond = trace.encoding.masks_beyond
    if not trace.encoding.mask_positions and not beyond:
        looked_at = "" if len(text) <= MAX_CHARACTERS else f" in its first {MAX_CHARACTERS:,} characters"
        raise ValueError(f"the text has no [MASK] to fill{looked_at}")
    gaps = [Gap(int(position), top_predictions(row, loaded.tokenizer, top))
            for position, row in zip(trace.mlm_positions, trace.mlm_logits, strict=True)]
    return (*gaps, *(Gap(position, ()) for position in beyond))


def continuation(engine: Engine, text: str, model: str | None = None, top: int = 5) -> tuple[Prediction, ...]:
    """What a causal model expects after a text (before it, if it reads right to left).

    Raises:
        NoHead: the model is not causal.
    """
    loaded = require_head(engine, model, "lm")
    last = last_place(loaded.tokenizer.encode(text), loaded.config)
    trace = engine.run(TraceRequest(text, model=model, parts=("lm_logits",), lm_at=(last,)))
    return top_predictions(trace.lm_row(last), loaded.tokenizer, top)


def last_read(trace: Trace) -> int:
    """Reading position of the last piece of the text that a causal model reads, before the closing special."""
    return last_place(trace.encoding, trace.config)


def last_place(encoding: Encoding, config: BertConfig) -> int:
    """The same before anything is run, a special that was typed among them; 0 where there is none of the text."""
    there = [n for n, sentence in enumerate(encoding.sequence_ids) if sentence is not None] or [0]
    return there[0] if config.reading_order == "right-to-left" else there[-1]


def known_places(encoding: Encoding) -> tuple[int, ...]:
    """Positions of the pieces with a known truth: no specials, and no [MASK] that was typed."""
    return tuple(n for n in encoding.content if n not in encoding.mask_positions)


def score(engine: Engine, text: str, pair: str | None = None, model: str | None = None) -> Score:
    """Log-likelihood of a causal model, pseudo-log-likelihood of a BERT.

    Raises:
        NoHead: the model has no vocabulary head.
        ValueError: there is nothing to score.
    """
    require_text(text)
    loaded = require_head(engine, model, "mlm", "lm")
    chain = _causal_scores if "lm" in loaded.model.heads else _masked_scores
    pieces = chain(engine, loaded, text, pair, model)
    if not pieces:
        raise ValueError("the text has no piece to score")
    return Score(float(sum(piece.log_probability for piece in pieces)), pieces)


def _causal_scores(
    engine: Engine, loaded: Loaded, text: str, pair: str | None, model: str | None
) -> tuple[TokenScore, ...]:
    """ln p of each piece given what was read before it, [CLS] included."""
    trace = engine.run(TraceRequest(text, pair, model=model, parts=("lm_logits",)))
    logs = log_softmax(trace.lm_logits)
    pieces = []
    for position in known_places(trace.encoding):
        before = read_before(loaded.config.reading_order, len(trace), position)
        if before is not None:
            pieces.append(_piece(trace.encoding, position, logs[before]))
    return tuple(pieces)


def read_before(reading_order: str, length: int, position: int) -> int | None:
    """The position that a causal model reads just before `position`: its row scores that token. None at the start.

    A right-to-left model reads [CLS] first, then the last piece before [SEP].
    """
    if reading_order == "right-to-left":
        return position + 1 if position + 1 < length - 1 else 0
    return position - 1 if position else None


def _masked_scores(
    engine: Engine, loaded: Loaded, text: str, pair: str | None, model: str | None
) -> tuple[TokenScore, ...]:
    """ln p of each piece with only that piece masked."""
    encoding = loaded.tokenizer.encode(text, pair)
    places, parts = known_places(encoding), ("mlm_positions", "mlm_logits")
    requests = [TraceRequest(text, pair, model=model, masked=(place,), parts=parts) for place in places]
    pieces = []
    for place, trace in zip(places, engine.run_many(requests), strict=True):
        row = list(trace.mlm_positions).index(place)
        pieces.append(_piece(encoding, place, log_softmax(trace.mlm_logits[row])))
    return tuple(pieces)


def _piece(encoding: Encoding, position: int, logs: np.ndarray) -> TokenScore:
    return TokenScore(position, encoding.tokens[position], float(logs[encoding.input_ids[position]]))
