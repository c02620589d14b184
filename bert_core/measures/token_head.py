"""The one linear layer on top of each token, with its operands: entities and extractive answers.

Devlin et al. 2018 (arXiv 1810.04805), sections 4.2 and 5.3.

Dimensions: D hidden size, C outputs a token.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from bert_core.load import Loaded
from bert_core.tasks.sentences import class_names
from bert_core.trace import Array, Trace, check_range

#: Head of Model.heads -> its linear layer's name in the checkpoint.
LAYERS = {"token_classification": "classifier", "question_answering": "qa_outputs"}


class TokenHead(NamedTuple):
    """Every number between a token's last vector and its logits.

    Attributes:
        hidden: (D,), the Trace's last hidden state of the token.
        labels: C names; 'start' and 'end' of answers.
        weights: (C, D).
        biases: (C,).
        products: (C, D), weights x hidden; a row and its bias sum to the logit.
        logits: (C,), summed here from these operands.
    """

    hidden: Array
    labels: tuple[str, ...]
    weights: Array
    biases: Array
    products: Array
    logits: Array


def token_head(loaded: Loaded, trace: Trace, head: str, position: int) -> TokenHead:
    """Open the layer for one token.

    Args:
        loaded: a model that has the head, and whose layers are our own.
        trace: of it, with `hidden_states`.
        head: of LAYERS.
        position: of the token, [CLS] counted as 0.

    Raises:
        ValueError: there is no such position.
    """
    check_range("position", [position], len(trace))
    weights, biases = (loaded.model.weights[f"{LAYERS[head]}.{part}"] for part in ("weight", "bias"))
    dtype = torch.promote_types(weights.dtype, torch.float32)
    weights, biases = weights.to("cpu", dtype).numpy(), biases.to("cpu", dtype).numpy()
    hidden = trace.hidden_states[-1, position]
    labels = ("start", "end") if head == "question_answering" else class_names(loaded.config, len(biases))
    products = weights * hidden
    return TokenHead(hidden, labels, weights, biases, products, products.sum(axis=-1) + biases)
