"""Writing left to right: what a GPT is for, and what it costs a BERT.

Both writers put a piece at the next place, again and again: the likeliest, or
one that is drawn. The causal model reads only what is written: what stands in the places still to be
filled is out of its sight, so any word keeps them. BERT gets a [MASK] for every place
still to be filled, the only way it knows to be asked; it was trained with at
most a few, and each new word changes what it computes for all others, so
nothing can be kept from one step to the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from bert_core.config import BertConfig
from bert_core.load import Loaded
from bert_core.measures.compare import NoReading, mlm_row, row_for
from bert_core.measures.pieces import named_ids
from bert_core.serving import Engine
from bert_core.tasks.support import log_softmax, softmax
from bert_core.tokenizer import MASK, Encoding, Tokenizer
from bert_core.trace import TraceRequest

Array = np.ndarray

#: Pieces that a live try writes at most.
MAX_WRITTEN = 24
#: Keeps the places that a causal model has not filled yet; it never sees it.
FILLER = "a"


@dataclass(frozen=True)
class Written:
    """One piece a writer put down.

    Attributes:
        token, id: the piece.
        probability: that the writer gave it.
        drawn_with: the probability it was drawn with; None where the likeliest was taken.
    """

    token: str
    id: int
    probability: float
    drawn_with: float | None = None


@dataclass(frozen=True)
class Draw:
    """How a next piece is drawn.

    Attributes:
        temperature: above 0; logits are divided by it before the softmax. Near 0 the
            likeliest piece is sure, 1 leaves the model's probabilities, above 1 they flatten.
        seed: of the draws; the same one draws the same again.
    """

    temperature: float
    seed: int


@dataclass(frozen=True)
class Cost:
    """What writing n pieces after a start of s pieces takes, counted.

    Attributes:
        passes: forward passes.
        tokens: token positions put through the encoder, all passes together.
        pairs: query-key scores computed in one head of one layer.
        multiplications: multiply-adds in all layers (vocabulary projection left out).
    """

    passes: int
    tokens: int
    pairs: int
    multiplications: int


def write(engine: Engine, model: str, prompt: str, count: int, draw: Draw | None = None) -> Iterator[Written]:
    """The model's continuation of the prompt, a piece at a time.

    Args:
        model: a causal or a masked one; it decides how it is asked.
        prompt: the start; BERT's gaps are put behind it.
        count: pieces to write, at most MAX_WRITTEN and what the model's limit leaves.
        draw: how each is drawn; None takes the likeliest.

    Raises:
        ValueError: nothing fits behind the prompt.
    """
    loaded = engine.loaded(model)
    count, causal = min(count, MAX_WRITTEN), "lm" in loaded.model.heads
    text = f"{prompt} " + " ".join([FILLER if causal else MASK] * count)
    encoding = loaded.tokenizer.encode(text)
    gaps = places_after(encoding, len(prompt))[:count] if causal else trailing_gaps(encoding, count)
    if not gaps:
        raise ValueError("the start fills this model's limit; use a shorter one")
    barred, parts = forbidden(loaded), ("lm_logits",) if causal else ("mlm_logits", "mlm_positions")
    done: list[tuple[int, int]] = []
    generator = None if draw is None else np.random.default_rng(draw.seed)
    for place in gaps:
        request = TraceRequest(text, model=model, replaced=tuple(done), parts=parts)
        if causal:
            request = replace(request, lm_at=(row_for(loaded.config.reading_order, len(encoding), place),))
        run = engine.run(request, keep=False)
        log_probs = log_softmax(run.lm_logits[0] if causal else mlm_row(run, place))
        allowed, drawn_with = np.where(barred, -np.inf, log_probs), None
        if draw is None:
            chosen = int(np.argmax(allowed))
        else:
            chances = softmax(allowed / draw.temperature)
            chosen = int(generator.choice(len(chances), p=chances))
            drawn_with = float(chances[chosen])
        done.append((place, chosen))
        yield Written(loaded.tokenizer.token_of(chosen), chosen, float(np.exp(log_probs[chosen])), drawn_with)


def places_after(encoding: Encoding, end: int) -> tuple[int, ...]:
    """Positions of the pieces that stand behind the code point `end` of the text."""
    return tuple(n for n in encoding.content if encoding.offsets[n][0] >= end)


def read_before(tokenizer: Tokenizer, prompt: str) -> int:
    """Tokens that a causal model reads before it writes, [CLS] or its like counted, [SEP] not."""
    content = tokenizer.encode(prompt).content
    return content[-1] + 1 if content else 0


def trailing_gaps(encoding: Encoding, count: int) -> tuple[int, ...]:
    """Positions of the last `count` [MASK]s that stand at the end and were not cut off."""
    if encoding.truncated:
        count = max(0, count - encoding.dropped)
    return encoding.mask_positions[len(encoding.mask_positions) - count:] if count else ()


def forbidden(loaded: Loaded) -> Array:
    """(V,) bool: what no writer may put down: special tokens, [UNK], ids that name no piece."""
    tokenizer = loaded.tokenizer
    barred = np.ones(loaded.config.vocab_size, dtype=bool)
    named = named_ids(tokenizer)
    barred[named[named < len(barred)]] = False
    special = np.fromiter(map(tokenizer.id_of, tokenizer.specials.values()), dtype=np.int64)
    barred[special[special < len(barred)]] = True  # one that was added later may have no row of the table
    return barred


# --- what is computed again --------------------------------------------------


def layer_multiplications(config: BertConfig, tokens: int, pairs: int) -> int:
    """Multiply-adds of all layers for `tokens` positions with `pairs` query-key scores.

    Per token and layer 4 D^2 (query, key, value, output) + 2 D I (feed-forward);
    per score 2 D (the scores and the weighted values, over all heads).
    """
    d, i = config.hidden_size, config.intermediate_size
    return config.num_hidden_layers * (tokens * (4 * d * d + 2 * d * i) + 2 * d * pairs)


def cost_with_cache(config: BertConfig, start: int, count: int) -> Cost:
    """A causal model that keeps the keys and values of what it has read.

    Args:
        start: tokens read before the first piece is written, [CLS] counted.
        count: pieces written; the last one is not read again.
    """
    tokens = start + count - 1
    pairs = sum(n + 1 for n in range(tokens))
    return Cost(count, tokens, pairs, layer_multiplications(config, tokens, pairs))


def cost_without(config: BertConfig, start: int, count: int) -> Cost:
    """Reading everything anew for each piece: BERT, with start + count gaps + [SEP] in sight."""
    length = start + count + 1
    return Cost(count, count * length, count * length**2,
                layer_multiplications(config, count * length, count * length**2))


def costs_at_one_size(config: BertConfig, start: int, count: int) -> tuple[Cost, Cost]:
    """The same pieces written with a cache and without, by models of the same layers and widths.

    Only so do the multiplications differ by the way of reading alone.
    """
    return cost_with_cache(config, start, count), cost_without(config, start, count)


def prefix_change(engine: Engine, model: str, text: str, shorter: str) -> Array:
    """How far each layer's keys of the prefix move when more text follows, (L,) float64.

    Args:
        text, shorter: the second is the first with its end cut off.

    Returns:
        The largest absolute difference of any key number over the tokens that
        both share ([SEP] left out). 0 means that a cache may be kept.

    Raises:
        NoReading: the model gives out no keys.
    """
    if reason := engine.loaded(model).gaps.get("key"):
        raise NoReading(f"{model} shows no keys: {reason}")
    whole, part = engine.run_many([TraceRequest(t, model=model, parts=("key",)) for t in (text, shorter)])
    shared = min(len(whole), len(part)) - 1
    same = [bool(a == b) for a, b in zip(whole.input_ids[:shared], part.input_ids[:shared], strict=True)]
    shared = same.index(False) if False in same else shared
    moved = np.abs(whole.key[:, :, :shared].astype(np.float64) - part.key[:, :, :shared])
    return moved.max(axis=(1, 2, 3))
