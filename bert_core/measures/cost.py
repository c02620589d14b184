"""What an encoder costs: operations and memory by formula, time by measurement.

One multiplication and one addition are two operations (FLOP). n is the number
of tokens, D hidden size, E width of the embedding tables, I intermediate size,
H heads, L layers. The formulas are of BERT's block and GPT-2's (`sizes.is_counted`).
Small terms (softmax, LayerNorm, biases, activations) are left out of the
operations, as is usual; they are in the measured time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple

import numpy as np
import torch

from bert_core import model as bert
from bert_core.config import BertConfig
from bert_core.load import Loaded
from bert_core.request import TraceRequest

#: Tokens of each sentence when batches are measured.
BATCH_TOKENS = 32
#: Runs of each size, of which the fastest counts, where the time suffices.
REPEATS = 3
FP32_BYTES = 4


class Work(NamedTuple):
    """Operations of one forward pass over n tokens, in FLOP, by part, all layers."""

    projections: float  # query, key, value and output: 8 n D^2 a layer
    scores: float  # q.k and the weighted sum of values: 4 n^2 D a layer
    feed_forward: float  # 4 n D I a layer

    @property
    def total(self) -> float:
        """All of it, in FLOP."""
        return float(sum(self))


def forward_work(config: BertConfig, tokens: int) -> Work:
    """Operations of the layers in one pass over `tokens`, heads left out."""
    n, d, i, layers = tokens, config.hidden_size, config.intermediate_size, config.num_hidden_layers
    return Work(
        projections=8.0 * n * d * d * layers,
        scores=4.0 * n * n * d * layers,
        feed_forward=4.0 * n * d * i * layers,
    )


def head_work(config: BertConfig, tokens: int) -> float:
    """Operations of the vocabulary head at so many tokens, in FLOP: 2 D E + 2 E V each; 2 D V in GPT-2's."""
    d, e, vocabulary = config.hidden_size, config.table_width, config.vocab_size
    transform = 0.0 if config.model_type == "gpt2" else 2.0 * d * e
    return tokens * (transform + 2.0 * e * vocabulary)


class Crossover(NamedTuple):
    """Lengths, in tokens, at which a part of attention overtakes the feed-forward, by formula."""

    scores: float  # 4 n^2 D = 4 n D I at n = I
    attention: float  # 8 n D^2 + 4 n^2 D = 4 n D I at n = I - 2 D; 0 where it always costs more


def crossover(config: BertConfig) -> Crossover:
    """Where n^2 wins: only the scores, and attention with its projections."""
    return Crossover(float(config.intermediate_size),
                     float(max(0, config.intermediate_size - 2 * config.hidden_size)))


class Memory(NamedTuple):
    """Bytes of the activations of one sentence, by part, all layers kept."""

    embeddings: float  # token, segment, position and their sum: 4 n E, or 3 without segments; their output: n D
    hidden: float  # what enters the first layer, and each layer's output: (L + 1) n D
    projections: float  # query, key, value, context, attention output: 5 n D a layer
    attention: float  # scores and probabilities: 2 H n^2 a layer
    feed_forward: float  # n I a layer

    @property
    def total(self) -> float:
        """All of it, in bytes."""
        return float(sum(self))


def activation_memory(config: BertConfig, tokens: int) -> Memory:
    """Bytes of what a Trace keeps of one sentence, fp32, without its tokens and what the heads give.

    What PyTorch saves for the backward pass is another set of about this size (twin-bert at 64, 256 and 510 tokens:
    1.3, 0.9 and 0.8 of it): two n I and one H n^2 a layer, and more of n D.
    """
    n, d, layers = tokens, config.hidden_size, config.num_hidden_layers
    return Memory(
        embeddings=float((kept_embeddings(config) * config.table_width + d) * n * FP32_BYTES),
        hidden=float((layers + 1) * n * d * FP32_BYTES),
        projections=float(5 * layers * n * d * FP32_BYTES),
        attention=float(2 * layers * config.num_attention_heads * n * n * FP32_BYTES),
        feed_forward=float(layers * n * config.intermediate_size * FP32_BYTES),
    )


def kept_embeddings(config: BertConfig) -> int:
    """How many (n, E) arrays a Trace keeps before LayerNorm: token, position, sum, and segment where there is one."""
    return 4 if config.type_vocab_size else 3


def generation_work(config: BertConfig, tokens: int) -> tuple[float, float]:
    """Operations for writing n tokens one by one: without and with a KV cache, in FLOP.

    Without, each new token runs the whole prefix again, as BERT must; with, a
    causal model computes one row and reads the kept keys and values. Either
    way each token is chosen by the vocabulary head at one place.
    """
    again = sum(forward_work(config, n).total for n in range(1, tokens + 1))
    d, i, layers = config.hidden_size, config.intermediate_size, config.num_hidden_layers
    kept = sum(layers * (8.0 * d * d + 4.0 * n * d + 4.0 * d * i) for n in range(1, tokens + 1))
    chosen = head_work(config, tokens)
    return again + chosen, kept + chosen


class Fit(NamedTuple):
    """time(n) = a n + b n^2, least squares on relative errors, a and b at least 0.

    Units are those of the times given; `error` is the mean of
    |fitted - measured| / measured.
    """

    a: float
    b: float
    error: float

    @property
    def crossover(self) -> float:
        """Length at which b n^2 overtakes a n; infinite where no n^2 was seen."""
        return self.a / self.b if self.b > 0 else float("inf")

    def at(self, tokens: np.ndarray) -> np.ndarray:
        """The fitted curve."""
        return self.a * tokens + self.b * tokens**2


def fit_time(tokens: Sequence[int], times: Sequence[float]) -> Fit:
    """Fit a n + b n^2 to measured times.

    Args:
        tokens: at least two different lengths.
        times: one each, positive.

    Raises:
        ValueError: fewer than two lengths, or a time that isn't positive.
    """
    n, t = np.asarray(tokens, dtype=float), np.asarray(times, dtype=float)
    if len(set(tokens)) < 2 or n.shape != t.shape or (t <= 0).any():
        raise ValueError(f"a fit needs two different lengths and positive times; got {len(n)} of them")
    rows = np.stack([n, n**2], axis=1) / t[:, None]
    best, least = None, float("inf")
    for columns in ([0, 1], [0], [1]):
        found = np.zeros(2)
        found[columns] = np.linalg.lstsq(rows[:, columns], np.ones_like(t), rcond=None)[0]
        off = rows @ found - 1.0
        squares = float(np.mean(off**2))
        if (found >= 0).all() and squares < least - 1e-12:
            best, least = Fit(float(found[0]), float(found[1]), float(np.abs(off).mean())), squares
    assert best is not None, "with one positive column the fit is positive"
    return best


class Timing(NamedTuple):
    """How long one size took: the fastest of `runs`, in ms."""

    size: int
    ms: float
    runs: int


def measure_time(run: Callable[[int], object], sizes: Sequence[int], repeats: int = REPEATS,
                 budget: float = 20.0) -> Generator[None, None, list[Timing]]:
    """Times of run(n) for each size: the fastest of up to `repeats`, order rotated; pauses after every run.

    Args:
        run: does the work for n; once for the first size before any is timed, as what runs first is slower.
        sizes: rising; those that no longer fit in the budget are left out.
        budget: seconds for everything, pauses not counted.
    """
    taken: dict[int, list[float]] = {n: [] for n in sizes}
    spent = _seconds(run, sizes[0])
    for turn in range(repeats):
        for n in (*sizes[turn:], *sizes[:turn]):
            if spent > budget:
                break
            yield
            seconds = _seconds(run, n)
            spent += seconds
            taken[n].append(1000 * seconds)
    return [Timing(n, min(times), len(times)) for n, times in taken.items() if times]


def _seconds(run: Callable[[int], object], size: int) -> float:
    before = time.perf_counter()
    run(size)
    return time.perf_counter() - before


class Measured(NamedTuple):
    """Times of one model on this machine.

    Attributes:
        lengths: one forward pass over so many tokens, one sentence.
        fit: a n + b n^2 through them, in ms.
        batches: so many sentences together, BATCH_TOKENS each.
        where: device, threads and precision.
    """

    lengths: list[Timing]
    fit: Fit
    batches: list[Timing]
    where: str


@torch.no_grad()
def measure_encoder(
    loaded: Loaded, request: TraceRequest, lengths: Sequence[int], batches: Sequence[int], budget: float
) -> Generator[None, None, Measured]:
    """Run the encoder at each length and batch size, within `budget` seconds of its own.

    For `Engine.call`: whoever else asks waits for one pass, and computes in none
    of those that are timed.

    Args:
        request: names the model; what it asks is not read.
    """
    model = loaded.model
    by_length = yield from measure_time(lambda n: _run(loaded, 1, n), lengths, budget=0.75 * budget)
    yield
    by_batch = yield from measure_time(lambda size: _run(loaded, size, BATCH_TOKENS), batches, budget=0.25 * budget)
    device = model.device.type.upper() if model.device.type != "cpu" else f"CPU, {torch.get_num_threads()} threads"
    where = f"{device} of {os.cpu_count()} cores, {str(model.dtype).removeprefix('torch.')}"
    fit = fit_time([one.size for one in by_length], [one.ms for one in by_length])
    return Measured(by_length, fit, by_batch, where)


def _run(loaded: Loaded, size: int, length: int) -> None:
    """One pass over arbitrary tokens; positions past the table start again."""
    device, config = loaded.model.device, loaded.config
    ids = (torch.arange(size * length, device=device) % (config.vocab_size - 1) + 1).reshape(size, length)
    places = (torch.arange(length, device=device) % config.max_tokens).expand(size, -1)
    seen = torch.ones_like(ids, dtype=torch.bool)
    causal = torch.full((size,), config.is_decoder, device=device)
    _, hidden = bert.encode(loaded.model, bert.Inputs(ids, torch.zeros_like(ids), seen, causal, places))
    hidden.sum().item()  # waits for a GPU to be done
