"""Where in the shipped sentences a neuron of the feed-forward part is strong.

Geva et al. 2021, Transformer Feed-Forward Layers Are Key-Value Memories,
arXiv 2012.14913, section 3, ask the same of a language model's neurons.

Dimensions: N content tokens of the sentences, I intermediate size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bert_core.measures.heads import Sentence, corpus_traces, head_corpus
from bert_core.serving import Engine
from bert_core.tokenizer import Encoding
from bert_core.trace import Array


class Activations(NamedTuple):
    """What every neuron of one layer gives on the words of the shipped sentences.

    Attributes:
        values: (N, I) float16.
        places: (N, 2), the sentence's number and the token's position in it.
        encodings: of the sentences.
    """

    values: Array
    places: Array
    encodings: tuple[Encoding, ...]


class Place(NamedTuple):
    """One token in its sentence, and what the neuron gives there."""

    before: str
    token: str
    after: str
    value: float


def corpus_activations(
    engine: Engine, model: str | None, layer: int, corpus: Sequence[Sentence] | None = None
) -> Activations:
    """Run the sentences and keep one layer's neurons, special tokens left out.

    Args:
        layer: 0-based.
        corpus: the shipped sentences if None.

    Raises:
        MissingPart: the model gives no `intermediate`.
    """
    values, places, encodings = [], [], []
    for number, trace in enumerate(corpus_traces(engine, model, corpus or head_corpus(), ("intermediate",))):
        content = list(trace.encoding.content)
        values.append(trace.intermediate[layer, content].astype(np.float16))
        places += [(number, position) for position in content]
        encodings.append(trace.encoding)
    return Activations(np.concatenate(values), np.array(places), tuple(encodings))


def strongest_places(found: Activations, neuron: int, count: int = 5) -> tuple[Place, ...]:
    """The tokens on which a neuron gives most, largest first."""
    best = np.argsort(-found.values[:, neuron], kind="stable")[:count]
    return tuple(_place(found.encodings[sentence], position, float(found.values[row, neuron]))
                 for row, (sentence, position) in zip(best, found.places[best], strict=True))


def _place(encoding: Encoding, position: int, value: float) -> Place:
    start, end = encoding.offsets[position]
    return Place(encoding.text[:start], encoding.text[start:end], encoding.text[end:], value)
