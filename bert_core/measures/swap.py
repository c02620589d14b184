"""Vectors of one sentence put into the run of another: what moves the answer in the gap?

Interchange interventions on single vectors, as in Vig et al. 2020, Causal
Mediation Analysis for Interpreting Neural NLP, arXiv 2004.12265, and Meng et
al. 2022, Locating and Editing Factual Associations in GPT, arXiv 2202.05262,
section 2.1 (where noise stands in for the other sentence).
Dimensions: L layers, T tokens, D hidden size, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bert_core import model as bert
from bert_core.load import Loaded
from bert_core.measures.compare_writing import layer_multiplications
from bert_core.measures.layers_above import layers_above
from bert_core.measures.predictions import piece
from bert_core.trace import Array, Prepared, TraceRequest, prepare, to_inputs

#: Runs of one pass.
ROWS_A_PASS = 16
#: Multiply-adds of all runs together: some seconds on two cores, in turns with what others ask.
MAX_WORK = 400_000_000_000


class Swap(NamedTuple):
    """What each vector of the other sentence does to the answer in this one.

    Attributes:
        tokens, others: (T,) pieces of the two sentences.
        position: of the gap in both.
        answers: the best guess of this sentence and of the other.
        ends: (2, 2) log-probability of the two answers (columns), in this
            sentence and in the other (rows), nats.
        runs: (L+1, T, 2) the same with one vector taken over; row 0 is the
            embedding output's, row n the output of layer n.
    """

    tokens: tuple[str, ...]
    others: tuple[str, ...]
    position: int
    answers: tuple[str, str]
    ends: Array
    runs: Array

    @property
    def shares(self) -> Array:
        """(L+1, T): 0 where the answer stays this sentence's, 1 where it is the other's.

        How far the log-odds of the other answer against this one's have come
        from where they are here to where they are there.
        """
        odds, ends = self.runs[..., 1] - self.runs[..., 0], self.ends[:, 1] - self.ends[:, 0]
        return (odds - ends[0]) / (ends[1] - ends[0])


def swap_vectors(
    loaded: Loaded, request: TraceRequest, other: TraceRequest, position: int
) -> Generator[None, None, Swap]:
    """Take over one vector at a time and run the layers above; yields between passes.

    Args:
        other: as many tokens as `request`, the same attention.
        position: of a gap in both, counted with [CLS] as 0.

    Raises:
        ValueError: the model or the two sentences don't allow it; one line says why.
    """
    rows = _check(loaded, [prepare(loaded, one) for one in (request, other)], position)
    model, depth, length = loaded.model, loaded.config.num_hidden_layers, len(rows[0].encoding)
    inputs = to_inputs(loaded, rows[:1])
    with torch.inference_mode():
        states = _states(model, to_inputs(loaded, rows))
        logs = _read(model, states[-1], position)  # (2, V)
    answers = logs.argmax(dim=-1)
    names = tuple(piece(loaded.tokenizer, int(answer)) for answer in answers)
    if names[0] == names[1]:
        raise ValueError(f"both sentences get the same answer, “{names[0]}”: change a word that the gap depends on")
    yield
    runs = np.empty((depth + 1, length, 2))
    for start in range(depth + 1):
        for first in range(0, length, ROWS_A_PASS):
            places = torch.arange(first, min(first + ROWS_A_PASS, length), device=model.device)
            with torch.inference_mode():
                hidden = states[start][:1].repeat(len(places), 1, 1)  # (B, T, D)
                hidden[torch.arange(len(places), device=model.device), places] = states[start][1, places]
                hidden = layers_above(model, hidden, inputs, start, position)
                runs[start, places.cpu()] = _numbers(_read(model, hidden, 0)[:, answers])
            yield
    return Swap(rows[0].encoding.tokens, rows[1].encoding.tokens, position, names, _numbers(logs[:, answers]), runs)


def _check(loaded: Loaded, rows: list[Prepared], position: int) -> list[Prepared]:
    """The rows, or a ValueError that says what stands against it."""
    if "mlm" not in loaded.model.heads:
        raise ValueError(f"{loaded.name} has no trained masked-LM head; choose a model that has one, such as twin-bert")
    if not isinstance(loaded.model, bert.Model):
        raise ValueError(f"{loaded.config.model_type} runs through transformers: vectors can be put only into this "
                         "explorer's own encoder")
    sizes = [len(row.encoding) for row in rows]
    if sizes[0] != sizes[1]:
        raise ValueError(f"the two sentences have {sizes[0]} and {sizes[1]} tokens; a vector can take the place of "
                         "another only where they have the same number")
    if not 0 <= position < sizes[0]:
        raise ValueError(f"position {position} is not in this text; choose 0 to {sizes[0] - 1}")
    if (most := most_tokens(loaded)) < sizes[0]:
        raise ValueError(f"{sizes[0]} tokens are too many runs of {loaded.name} for a few seconds; {most} are not: "
                         "choose a shorter sentence")
    return rows


def most_tokens(loaded: Loaded) -> int:
    """How long a sentence MAX_WORK allows: a run for each token and layer, through the layers above it."""
    config = loaded.config
    for length in range(1, loaded.tokenizer.limit + 1):
        runs = length * (config.num_hidden_layers + 1) / 2  # through all layers
        if runs * layer_multiplications(config, length, length**2) > MAX_WORK:
            return length - 1
    return loaded.tokenizer.limit


def _states(model: bert.Model, inputs: bert.Inputs) -> list[Tensor]:
    """Embedding output and each layer's, L+1 of (B, T, D)."""
    found: list[Tensor] = []
    embeddings, _ = bert.encode(model, inputs, lambda index, done: found.append(done.hidden))
    return [embeddings.output, *found]


def _read(model: bert.Model, hidden: Tensor, position: int) -> Tensor:
    """(B, T, D) -> log-probabilities at the gap, (B, V)."""
    logits = bert.mlm_logits(model, hidden[:, position])
    return logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(dim=-1)


def _numbers(values: Tensor) -> Array:
    return values.double().cpu().numpy()


def carrier(swap: Swap) -> list[int]:
    """For each of the L+1 rows the position whose vector moves the answer most."""
    return [int(row.argmax()) for row in swap.shares]
