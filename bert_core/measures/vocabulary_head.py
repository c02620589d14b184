"""From a last vector to the probability of a piece, with every operand.

Devlin et al. 2018 (arXiv 1810.04805), section 3.1, task 1, and the released
code: dense, activation, LayerNorm, then the inner product with every piece's
vector and a bias, and a softmax over the vocabulary. A masked model reads the
gap's own vector, a causal one that of the token it has read last.

Dimensions: D hidden size, E width of the word table, V vocabulary, N pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from bert_core import model as bert
from bert_core.load import Loaded
from bert_core.measures.compare import mlm_row, row_for
from bert_core.measures.softmax import SoftmaxSteps, softmax_steps
from bert_core.measures.target import piece_vectors
from bert_core.trace import Array, Trace


class HeadSteps(NamedTuple):
    """Every number between a last vector and some pieces' probabilities.

    Attributes:
        source: position of the token whose vector is read.
        hidden: (D,), the Trace's last hidden state of it.
        dense: (E,), W hidden + b, before the activation.
        activated: (E,).
        activation: its name in config.json.
        transformed: (E,), after LayerNorm: what the pieces' vectors are multiplied by.
        vectors: (N, E), of the pieces: the word table's rows, or those of the decoder's own table.
        biases: (N,).
        products: (N, E), vectors x transformed; a row and its bias sum to the logit.
        logits: (N,), summed here from these operands.
        traced: (N,), the Trace's own logits.
        softmax: of these, over the Trace's logits of all V.
    """

    source: int
    hidden: Array
    dense: Array
    activated: Array
    activation: str
    transformed: Array
    vectors: Array
    biases: Array
    products: Array
    logits: Array
    traced: Array
    softmax: SoftmaxSteps


@torch.inference_mode()
def head_steps(loaded: Loaded, trace: Trace, position: int, ids: Sequence[int]) -> HeadSteps:
    """Follow the answer for one position through the head to some pieces.

    Args:
        loaded: a model with a masked-LM or a next-token head, whose layers are our own.
        trace: of it, with `hidden_states`, and `mlm_positions` and `mlm_logits` or `lm_logits`.
        position: that is guessed, [CLS] counted as 0.
        ids: the N pieces.

    Raises:
        ValueError: the position was not masked in this run.
        NoReading: a causal model has read nothing before it.
    """
    model, names = loaded.model, loaded.model.names
    source, every = _answer(trace, position)
    hidden = torch.tensor(trace.hidden_states[-1, source], dtype=model.dtype, device=model.device)  # (D,)
    activation = bert.mlm_activation(model.config)
    dense = bert.linear(model, hidden[None], names.mlm_dense)[0]  # (E,)
    activated = bert.activate(dense, activation)
    transformed = bert.layer_norm(model, activated, names.mlm_norm)
    chosen = torch.tensor(ids, device=model.device)
    vectors, biases = piece_vectors(model, chosen), model.weights[names.mlm_bias][chosen]
    products = vectors * transformed  # (N, E)
    return HeadSteps(
        source, *(_array(one) for one in (hidden, dense, activated)), activation,
        *(_array(one) for one in (transformed, vectors, biases, products, products.sum(dim=-1) + biases)),
        every[list(ids)], softmax_steps(every[list(ids)], every))


def _answer(trace: Trace, position: int) -> tuple[int, Array]:
    """Where the answer for a position is read, and its (V,) logits."""
    if trace.has("lm_logits"):
        source = row_for(trace.config.reading_order, len(trace), position)
        return source, trace.lm_row(source)
    if position not in trace.mlm_positions:
        raise ValueError(f"position {position} was not masked in this run")
    return position, mlm_row(trace, position)


def _array(tensor: Tensor) -> Array:
    """As NumPy, in float32 at least."""
    return tensor.to("cpu", torch.promote_types(tensor.dtype, torch.float32)).numpy()
