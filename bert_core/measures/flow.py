"""What of the tokens reaches one token of the last layer, on which way: attention flow, drawn as a stream.

A layer mixes: after it a token's vector is made of its own and of the others'.
Its mixing matrix, rows summing to 1, says in which shares. Followed downwards
from one token of the last layer the shares are attention rollout (Abnar and
Zuidema 2020, arXiv 2005.00928, section 3), kept at every step.

Dimensions: L layers, H heads, T tokens, Dh head size, D hidden size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bert_core.load import Loaded
from bert_core.measures.rollout import mixed_by_weights
from bert_core.model import Model
from bert_core.trace import Array, Trace, check_range

#: Trace arrays that `mixed_by_lengths` needs.
LENGTH_PARTS = ("attention_probs", "value", "hidden_states")


class Flow(NamedTuple):
    """Shares of one token of the last layer.

    Attributes:
        shares: (L+1, T), of every token before layer 1 (row 0) and after each layer; the last row is 1 at the token
            that is followed, every row sums to 1.
        edges: (L, T, T), entry [l, i, j] is what token i takes after layer l+1 from token j below it: the sum over j
            is i's share above, the sum over i is j's share below.
    """

    shares: Array
    edges: Array


def flow(mixed: Array, position: int) -> Flow:
    """Follow one token of the last layer down to the input.

    Args:
        mixed: (L, T, T), rows sum to 1.
        position: counted with [CLS] as 0.

    Raises:
        ValueError: there is no such position.
    """
    layers, length, _ = mixed.shape
    check_range("position", [position], length)
    shares = np.zeros((layers + 1, length))
    shares[layers, position] = 1.0
    edges = np.zeros((layers, length, length))
    for layer in reversed(range(layers)):
        edges[layer] = shares[layer + 1][:, None] * mixed[layer]
        shares[layer] = edges[layer].sum(axis=0)
    return Flow(shares, edges)


def by_weights(trace: Trace) -> Array:
    """Mixing by attention weights alone, (L, T, T): heads averaged, half of it for the residual (rollout)."""
    return mixed_by_weights(trace.attention_probs.astype(np.float64))


def by_lengths(trace: Trace, loaded: Loaded) -> Array:
    """Mixing by how long the vectors are that are added, (L, T, T), rows sum to 1.

    What token i takes from j is the sum over heads of weight x value x output
    projection; for j = i its own vector is added, the residual. LayerNorm's
    centring and its weight act on each part; its division acts on all alike.
    Biases belong to nobody (after Kobayashi et al. 2021, arXiv 2109.07152).

    Args:
        trace: with LENGTH_PARTS, made by `loaded`.

    Raises:
        ValueError: transformers runs the model, or all vectors that a layer adds up for a token have length 0.
    """
    if not isinstance(loaded.model, Model):
        raise ValueError(f"{loaded.name} runs through transformers: its output projections can't be read here")
    return np.stack([_lengths_of(trace, loaded.model, layer) for layer in range(trace.config.num_hidden_layers)])


def _lengths_of(trace: Trace, model: Model, layer: int) -> Array:
    """One layer's shares, (T, T).

    The square of a sum of vectors needs only their products with each other,
    (H, H) for each token: no (T, T, D) is made, which is
    1.6 GB for base size and 512 tokens.
    """
    probs, value = trace.attention_probs[layer].astype(np.float64), trace.value[layer].astype(np.float64)
    heads, _, size = value.shape
    names = model.names
    dense = model.weights[f"{names.of_layer(layer, 'attention_dense')}.weight"].double().cpu().numpy()  # (D, D)
    norm = model.weights[f"{names.of_layer(layer, 'attention_norm')}.weight"].double().cpu().numpy()  # (D,)
    by_head = dense.reshape(len(dense), heads, size).transpose(1, 2, 0)  # (H, Dh, D)
    parts = _normed((value @ by_head).transpose(1, 0, 2), norm)  # (T, H, D), what each head gives away of a token
    own = _normed(trace.hidden_states[layer].astype(np.float64), norm)  # (T, D), the residual
    weights = probs.transpose(2, 0, 1)  # (Tk, H, Tq)
    squares = (weights * (parts @ parts.transpose(0, 2, 1) @ weights)).sum(axis=1).T  # (Tq, Tk)
    itself = np.einsum("hii->ih", probs)  # (T, H)
    along = np.einsum("th,th->t", itself, (parts @ own[:, :, None])[:, :, 0])
    squares[np.diag_indices_from(squares)] += 2 * along + (own**2).sum(axis=-1)
    lengths = np.sqrt(np.maximum(squares, 0.0))
    total = lengths.sum(axis=-1, keepdims=True)
    if not total.all():
        raise ValueError(f"{trace.model}: in layer {layer + 1} all that is added up has length 0, so nothing can be "
                         "said of shares")
    return lengths / total


def _normed(x: Array, weight: Array) -> Array:
    """LayerNorm without its division and bias, (..., D)."""
    return (x - x.mean(axis=-1, keepdims=True)) * weight


def gathered(found: Flow, most: int, position: int) -> tuple[Flow, Sequence[int]]:
    """The flow between the followed token and those with the largest shares; the others, as one, come last.

    Args:
        most: rows that may stay, the others' row included.
        position: of the followed token; it always stays.

    Returns:
        The flow and the positions of its rows in reading order, without the others' row, which is there only if there
        are others.
    """
    length = found.shares.shape[1]
    if length <= most:
        return found, range(length)
    largest = found.shares.max(axis=0)
    largest[position] = np.inf
    kept = np.sort(np.argsort(-largest, kind="stable")[:most - 1])
    row_of = np.full(length, most - 1)
    row_of[kept] = np.arange(most - 1)
    member = np.eye(most)[row_of]  # (T, rows)
    return Flow(found.shares @ member, member.T @ found.edges @ member), kept.tolist()
