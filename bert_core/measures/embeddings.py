"""Numbers about the three embedding tables and their sum.

Devlin et al. 2018, section 3, figure 2: token + segment + position, then
LayerNorm. BERT's positions are learned, not sinusoidal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from bert_core.config import BertConfig
from bert_core.load import Loaded
from bert_core.measures.predictions import top_ids
from bert_core.measures.similarity import unit
from bert_core.model import Model, counted
from bert_core.request import check_range, reading_order

Array = np.ndarray

#: Orders in which the position ids may be handed out.
ORDERS = ("as written", "reversed", "shuffled", "all the same")


@dataclass(frozen=True)
class Neighbour:
    """A row of the word table near another one; cosine, -1 to 1."""

    id: int
    cosine: float


def word_table(model: Model) -> Array:
    """(V, E) token embeddings."""
    return model.weights[f"{model.names.word}.weight"].float().cpu().numpy()


def position_table(model: Model) -> Array:
    """(P, E) position embeddings, those before the first used row left out."""
    table = model.weights[f"{model.names.position}.weight"].float().cpu().numpy()
    return table[model.config.position_offset:]


def norm_parameters(model: Model) -> tuple[Array, Array]:
    """(E,) weight and bias of the LayerNorm after the sum."""
    name = model.names.embedding_norm
    return (model.weights[f"{name}.weight"].float().cpu().numpy(), model.weights[f"{name}.bias"].float().cpu().numpy())


def neighbours(table: Array, index: int, k: int) -> tuple[Neighbour, ...]:
    """The k rows nearest to row `index` by cosine, itself left out.

    Raises:
        ValueError: the table has no such row.
    """
    check_range("vocabulary id", [index], len(table))
    target = table[index]
    length = np.linalg.norm(target)
    if length == 0:
        return ()
    norms = np.linalg.norm(table, axis=1)
    cosine = (table @ target) / np.maximum(norms * length, 1e-12)
    cosine[index] = -np.inf
    return tuple(Neighbour(int(i), float(cosine[i])) for i in top_ids(cosine, k))


def mean_random_cosine(table: Array) -> float:
    """Average cosine over all pairs of two rows: what two unrelated pieces have.

    From the sum s of the n unit rows: s s holds every pair twice, and each row with itself.
    """
    lengths = np.sqrt(np.einsum("vd,vd->v", table, table))
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)  # a row of zeros is like no other
    total, n = (scale @ table).astype(np.float64), len(table)
    return float((total @ total - np.count_nonzero(scale)) / (n * (n - 1)))


def natural_order(config: BertConfig, length: int) -> tuple[int, ...]:
    """(T,) position ids as the model gives them out, in reading order.

    0, 1, 2 ..., but 0, T-2, ..., 1, T-1 where it reads right to left: it counts as it reads.
    """
    order = reading_order(config, length)
    return tuple(range(length)) if order is None else tuple(order.tolist())


def positions(loaded: Loaded, ids: Sequence[int], extra: int) -> tuple[int, ...]:
    """(T + extra,) rows of the position table that the tokens and the padding behind them get, in reading order.

    Those of `natural_order`, and on they go; but RoBERTa's kin and MPNet count as `model.counted` says.

    Args:
        ids: (T,) vocabulary ids.
        extra: how many tokens of padding follow.
    """
    known = loaded.config if isinstance(loaded.model, Model) else loaded.model
    padding, count = known.position_padding, len(ids)
    if padding is None:
        return (*natural_order(loaded.config, count), *range(count, count + extra))
    padded = torch.tensor([[*ids, *[loaded.config.pad_token_id] * extra]])
    return tuple(counted(padded, padding)[0].tolist())


def order(kind: str, natural: Sequence[int], seed: int) -> tuple[int, ...] | None:
    """Position ids for T tokens; the first and the last token keep theirs.

    Args:
        kind: one of ORDERS; 'all the same' gives every token position 0.
        natural: (T,) ids from `natural_order`, which are permuted.

    Returns:
        (T,) ids in reading order, or None where nothing changes.
    """
    if kind == "as written" or len(natural) < 3:
        return None
    if kind == "all the same":
        return (0,) * len(natural)
    inner = np.array(natural[1:-1])
    inner = inner[::-1] if kind == "reversed" else np.random.default_rng(seed).permutation(inner)
    return (natural[0], *inner.tolist(), natural[-1])


def row_cosines(first: Array, second: Array) -> Array:
    """(T,) cosine of each row of one (T, D) with the same row of another."""
    return (unit(first) * unit(second)).sum(axis=-1)
