"""The 80/10/10 rule on one's own text: draws, tally, expectation, loss.

Devlin et al. 2018, section 3.1, task 1: 15 % of the pieces are chosen; of
those 80 % become [MASK], 10 % a random piece, 10 % stay; the loss counts on
all chosen ones, and on no other.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from bert_core.tasks.support import softmax
from bert_core.tokenizer import Encoding, Tokenizer
from bert_core.trace import Trace
from bert_core.training.corruption import MASKED, OUTCOMES, RANDOM, Corrupted, corrupt

Array = np.ndarray

SPLIT = (0.8, 0.1, 0.1)


@dataclass(frozen=True)
class Tally:
    """Counts over many draws against what is expected.

    Attributes:
        draws: number of draws.
        candidates: pieces that could be chosen in each.
        counts: outcome -> how often ('untouched', 'masked', 'random', 'kept').
        expected: outcome -> expected count.
        deviation: outcome -> standard deviation of that count.
    """

    draws: int
    candidates: int
    counts: dict[str, int]
    expected: dict[str, float]
    deviation: dict[str, float]


@functools.lru_cache(maxsize=8)
def random_pieces(tokenizer: Tokenizer) -> Array:
    """Ids that a random replacement is drawn from: all but specials and unused places."""
    vocabulary = tokenizer.backend.get_vocab()
    return np.array(sorted(i for token, i in vocabulary.items() if not _in_brackets(token)), dtype=np.int64)


def _in_brackets(token: str) -> bool:
    """Whether a piece is one of [CLS], [unused7], <mask> and their like."""
    return len(token) > 2 and (token[0] + token[-1]) in ("[]", "<>")


def may_be_chosen(encoding: Encoding, tokenizer: Tokenizer) -> Array:
    """(T,) bool, True for pieces that the rule may choose: no special token, no [UNK], no typed [MASK].

    Pre-training never asks for an [UNK] either (bert_core/training/objectives.py).
    """
    unknown = tokenizer.id_of(tokenizer.specials.get("unk", ""))
    chosen = ~np.array(encoding.special, dtype=bool) & (np.array(encoding.input_ids) != unknown)
    chosen[list(encoding.mask_positions)] = False
    return chosen


def draw(encoding: Encoding, tokenizer: Tokenizer, rate: float, seed: int, number: int = 0) -> Corrupted:
    """One seeded draw over the text.

    Args:
        rate: share of the pieces that is chosen, 0 to 1.
        number: which draw of this seed; none of another seed is the same.

    Raises:
        ValueError: the model has no [MASK].
    """
    if tokenizer.mask_id is None:
        raise ValueError("this model's tokenizer has no [MASK]")
    ids = np.array(encoding.input_ids, dtype=np.int64)
    fixed = ~may_be_chosen(encoding, tokenizer)
    return corrupt(ids, fixed, tokenizer.mask_id, random_pieces(tokenizer), np.random.default_rng((seed, number)), rate,
                   SPLIT)


def tally(encoding: Encoding, tokenizer: Tokenizer, rate: float, seed: int, draws: int) -> Tally:
    """Count outcomes over the seed's first draws."""
    counts = np.zeros(len(OUTCOMES), dtype=np.int64)
    allowed = may_be_chosen(encoding, tokenizer)
    for n in range(draws):
        outcome = draw(encoding, tokenizer, rate, seed, n).outcome[allowed]
        counts += np.bincount(outcome, minlength=len(OUTCOMES))
    total = int(allowed.sum())
    shares = {"untouched": 1 - rate, "masked": rate * SPLIT[0], "random": rate * SPLIT[1], "kept": rate * SPLIT[2]}
    return Tally(
        draws, total, dict(zip(OUTCOMES, counts.tolist(), strict=True)),
        {name: draws * total * share for name, share in shares.items()},
        {name: deviation(draws, total, rate, 1.0 if name == "untouched" else share / rate if rate else 0.0)
         for name, share in shares.items()},
    )


def deviation(draws: int, candidates: int, rate: float, part: float) -> float:
    """Standard deviation of a count over `draws`.

    In each draw the number chosen is rate x candidates rounded up or down by
    chance (variance f (1 - f), f the fraction); each chosen piece then falls
    into the outcome with probability `part` (1 for 'chosen at all').
    """
    mean = rate * candidates
    fraction = mean - np.floor(mean)
    rounding = fraction * (1 - fraction)
    return float(np.sqrt(draws * (mean * part * (1 - part) + part**2 * rounding)))


def share_band(part: float, chosen: int) -> tuple[float, float]:
    """Where an outcome's share of `chosen` pieces is expected: its chance, two standard deviations down and up.

    Each chosen piece falls into the outcome by itself, so that of a given
    number of them the share is a binomial one.
    """
    reach = 2 * float(np.sqrt(part * (1 - part) / chosen))
    return max(0.0, part - reach), min(1.0, part + reach)


def losses(trace: Trace, drawn: Corrupted) -> Array:
    """(P,) loss in nats at each chosen position: -ln p(true piece).

    Args:
        trace: a run on the corrupted ids with all_logits.
    """
    if not len(drawn.positions):
        return np.zeros(0)
    rows = softmax(trace.mlm_logits[drawn.positions])
    return -np.log(np.maximum(rows[np.arange(len(drawn.labels)), drawn.labels], 1e-300))


def replacements(drawn: Corrupted) -> tuple[tuple[int, int], ...]:
    """(position, id) of what the draw put in, for a TraceRequest."""
    changed = np.flatnonzero((drawn.outcome == MASKED) | (drawn.outcome == RANDOM))
    return tuple((int(n), int(drawn.input_ids[n])) for n in changed)
