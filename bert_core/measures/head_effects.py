"""Which head matters for an answer: each head switched off alone (Michel, Levy and Neubig 2019, arXiv 1905.10650).

Dimensions: L layers, H heads.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bert_core.config import BertConfig
from bert_core.load import Loaded
from bert_core.measures.ablation import Moved, answer_moves
from bert_core.measures.cost import forward_work
from bert_core.trace import Array, TraceRequest, run_batch

#: Runs of one step, a batch: what others ask for meanwhile waits no longer than for that.
ROWS = 16
#: Most operations of all runs together, in FLOP: some ten seconds on a laptop's two cores.
LARGEST = 0.8e12


class HeadEffects(NamedTuple):
    """One answer without each head alone, beside what the whole model says.

    Attributes:
        answer: the token or class that the whole model finds most probable.
        before: its probability there.
        divergence: (L, H) float64, KL(whole || without the head), nats: Moved.divergence of that change.
        after: (L, H) float64, probability of `answer` without the head.
        first: what is most probable without the head, head after head, layer after layer.
    """

    answer: str
    before: float
    divergence: Array
    after: Array
    first: tuple[str, ...]


def longest(config: BertConfig) -> int:
    """Most tokens at which all heads of this model are tried soon enough, by LARGEST; 0 where there are none."""
    runs = config.num_hidden_layers * config.num_attention_heads
    return max((n for n in range(1, config.max_tokens + 1) if runs * forward_work(config, n).total <= LARGEST),
               default=0)


def each_head_off(loaded: Loaded, request: TraceRequest, kind: str) -> Generator[None, None, HeadEffects]:
    """Run once as asked and once without each head; yields between the batches.

    Args:
        request: with the arrays of `kind`; what it switches off itself is off in every run.
        kind: of ablation.ANSWERS; of several gaps the first is read.
    """
    config = loaded.config
    heads = [(layer, head) for layer in range(config.num_hidden_layers) for head in range(config.num_attention_heads)]
    without = [replace(request, heads_off=(*request.heads_off, one)) for one in heads]
    whole, = run_batch(loaded, [request])
    moved: list[Moved] = []
    for start in range(0, len(without), ROWS):
        yield
        traces = run_batch(loaded, without[start:start + ROWS])
        moved += [answer_moves(loaded, kind, whole, trace, gaps=1)[0] for trace in traces]
    return _gather(moved, config.num_hidden_layers)


def _gather(moved: Sequence[Moved], layers: int) -> HeadEffects:
    """One entry a head, layer after layer, as arrays."""
    tops = [int(np.argmax(one.before)) for one in moved]  # not by its name: two classes may have the same
    answer, before = moved[0].names[tops[0]], moved[0].before[tops[0]]
    after = [one.after[top] for one, top in zip(moved, tops, strict=True)]
    first = tuple(one.names[int(np.argmax(one.after))] for one in moved)
    arrays = (np.array(values).reshape(layers, -1) for values in ([one.divergence for one in moved], after))
    return HeadEffects(answer, before, *arrays, first)
